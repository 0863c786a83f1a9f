"""The machine's own package sources: what nodes are made from and may fetch through the proxy."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

from lab.errors import NoService

_APT = Path("/etc/apt")
_OS_RELEASE = Path("/etc/os-release")
# Only what a mirror with an old snapshot needs; the rest of the machine's settings is its own affair.
_COPIED_SETTINGS = ("Acquire::Check-Valid-Until", "Acquire::Check-Date")


@dataclass(frozen=True, slots=True)
class Source:
    """One `deb` line of apt: where, which suite, which components, signed by which keyring file."""

    uri: str
    suite: str
    components: tuple[str, ...]
    signed_by: str | None

    @property
    def authority(self) -> tuple[str, int]:
        """Host and port that the source is fetched from."""
        parts = urlsplit(self.uri)
        return parts.hostname or "", parts.port or (443 if parts.scheme == "https" else 80)

    @property
    def line(self) -> str:
        option = f" [signed-by={self.signed_by}]" if self.signed_by else ""
        return f"deb{option} {self.uri} {self.suite} {' '.join(self.components)}"


@dataclass(frozen=True, slots=True)
class Archive:
    """All that concerns this machine's distribution, in the order of its files."""

    suite: str
    sources: tuple[Source, ...]
    settings: tuple[str, ...]  # apt.conf lines to repeat
    proxy: str | None  # the machine's own HTTP proxy for packages

    @property
    def authorities(self) -> frozenset[tuple[str, int]]:
        return frozenset(source.authority for source in self.sources)


def machine_archive(apt: Path = _APT, os_release: Path = _OS_RELEASE) -> Archive:
    """Read this machine's sources for its own release. Raises NoService when there are none."""
    suite = _codename(os_release)
    found = [
        source
        for path in sorted([apt / "sources.list", *(apt / "sources.list.d").glob("*")])
        if path.is_file()
        for source in parse_sources(path)
        if source.suite.split("-")[0].split("/")[0] == suite
    ]
    if not found:
        raise NoService(
            str(apt),
            f"holds no package source for {suite or 'this release'}",
            follow="give this machine an apt source for its own release over http",
        )
    config = _apt_config()
    settings = tuple(f'{key} "{config[key]}";' for key in _COPIED_SETTINGS if key in config)
    proxy = config.get("Acquire::http::Proxy")
    return Archive(suite, tuple(found), settings, proxy if proxy != "DIRECT" else None)


def parse_sources(path: Path) -> list[Source]:
    """Read one sources file, one-line or deb822, by its suffix as apt does."""
    text = path.read_text(encoding="utf-8")
    if path.suffix == ".sources":
        return [source for stanza in re.split(r"\n\s*\n", text) for source in _stanza(stanza)]
    if path.suffix == ".list":
        return [source for line in text.splitlines() for source in _one_line(line)]
    return []


def _stanza(text: str) -> Iterator[Source]:
    lines = [line for line in text.splitlines() if not line.startswith("#")]
    fields = {
        match[1].lower(): " ".join(match[2].split())
        for match in re.finditer(r"^([\w-]+):((?:.*)(?:\n[ \t].*)*)", "\n".join(lines), re.MULTILINE)
    }
    if "deb" not in fields.get("types", "").split() or fields.get("enabled", "yes").lower() == "no":
        return
    for uri in fields.get("uris", "").split():
        for suite in fields.get("suites", "").split():
            if uri.startswith(("http://", "https://")):
                yield Source(
                    uri, suite, tuple(fields.get("components", "").split()), _keyring(fields.get("signed-by"))
                )


def _one_line(line: str) -> Iterator[Source]:
    match = re.match(r"deb\s+(?:\[([^]]*)\]\s+)?(https?://\S+)\s+(\S+)\s+([^#]+)", line.strip())
    if match is None:
        return
    options = dict(pair.split("=", 1) for pair in (match[1] or "").split() if "=" in pair)
    yield Source(match[2], match[3], tuple(match[4].split()), _keyring(options.get("signed-by")))


def _keyring(value: str | None) -> str | None:
    """Keep a keyring that is a file; a key written into the stanza or a fingerprint is not one."""
    return value if value and value.startswith("/") and " " not in value else None


def _codename(os_release: Path) -> str:
    match = re.search(r'^VERSION_CODENAME="?([\w-]+)', os_release.read_text(encoding="utf-8"), re.MULTILINE)
    return match[1] if match else ""


def _apt_config() -> dict[str, str]:
    answer = subprocess.run(["apt-config", "dump"], capture_output=True, text=True, check=False)
    return dict(re.findall(r'^(\S+) "(.+)";$', answer.stdout, re.MULTILINE))
