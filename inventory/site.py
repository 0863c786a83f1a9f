"""Reads a site folder (site.yaml, profiles.yaml, racks.yaml) into the model."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path
from urllib.parse import urlsplit

from inventory import marked
from inventory.errors import SiteFileError
from inventory.marked import Fields, Value
from inventory.model import (
    CredentialRef,
    MaasEndpoint,
    MirrorEndpoint,
    Profile,
    Rack,
    RegistryEndpoint,
    Site,
    SshAccess,
    Stage,
)
from inventory.racks import Described, Names, read_rack

_SITE = {"name", "maas", "ssh", "credentials", "prepare", "spare_share", "slurm", "mirror", "registry"}
_PROFILE = {"vendor", "model", "os_image", "deadlines", "limits", "checks", "playbook"}
# Two waits inside a stage have deadlines of their own: giving a machine back, and its first SSH.
_DEADLINES = [str(stage) for stage in Stage if stage is not Stage.RACKED] + ["console", "released", "ssh"]
_WEEK = 7 * 86400.0
# kind:rest, and nothing that a password pasted by mistake would pass for
_REFERENCE = re.compile(r"env:[A-Za-z_][A-Za-z0-9_]*|file:\S.*")


def load(path: Path) -> Site:
    """Read the site folder `path`. Raises SiteFileError with file and line for every mistake."""
    if not path.is_dir():
        raise SiteFileError(path, None, "is not a folder with site.yaml, racks.yaml and profiles.yaml")
    top = marked.read(path / "site.yaml").fields(_SITE, required=("name", "maas", "ssh", "credentials"))
    credentials = {word: _credential(word, value) for word, value in _named(top["credentials"])}
    profiles = {
        word: _profile(word, value) for word, value in _named(_only(path / "profiles.yaml", "profiles"))
    }
    racks = _racks(path / "racks.yaml", Names(frozenset(profiles), frozenset(credentials)))
    return Site(
        name=top["name"].text(),
        path=path,
        maas=_maas(top["maas"]),
        ssh=_ssh(top["ssh"]),
        racks=racks,
        profiles=profiles,
        credentials=credentials,
        prepare=top.texts("prepare"),
        spare_share=top["spare_share"].number(0, 0.5) if "spare_share" in top else 0.1,
        slurm=top["slurm"].flag() if "slurm" in top else False,
        mirror=_mirror(top["mirror"]) if "mirror" in top else None,
        registry=_registry(top["registry"]) if "registry" in top else None,
    )


def _only(path: Path, key: str) -> Value:
    return marked.read(path).fields({key}, required=(key,))[key]


def _named(value: Value) -> Iterable[tuple[str, Value]]:
    return ((key.text(), entry) for key, entry in value.entries())


def _reference(value: Value) -> str:
    text = value.text()
    if not _REFERENCE.fullmatch(text):
        # The text is not repeated: it may be the secret itself.
        raise value.wrong(f"{value.name} must be a reference, env:NAME or file:PATH, never the secret itself")
    return text


def _maas(value: Value) -> MaasEndpoint:
    fields = value.fields({"url", "key"}, required=("url", "key"))
    url = _url(fields["url"], "maas.url", "http://HOST:5240/MAAS", "maas.key")
    return MaasEndpoint(url, _reference(fields["key"]))


def _mirror(value: Value) -> MirrorEndpoint:
    fields = value.fields({"url", "token"}, required=("url",))
    url = _url(fields["url"], "mirror.url", "http://HOST", "mirror.token")
    return MirrorEndpoint(url, _reference(fields["token"]) if "token" in fields else None)


def _registry(value: Value) -> RegistryEndpoint:
    fields = value.fields({"url", "username", "password"}, required=("url",))
    url = _url(fields["url"], "registry.url", "https://HOST:5000", "registry.password")
    password = _reference(fields["password"]) if "password" in fields else None
    return RegistryEndpoint(url, fields.text("username", ""), password)


def _url(value: Value, name: str, form: str, secret: str) -> str:
    url = value.text()
    parts = urlsplit(url)
    if parts.scheme not in {"http", "https"} or not parts.hostname:
        raise value.wrong(f"{name} must look like {form}, not {url}")
    if parts.username or parts.password:
        raise value.wrong(f"{name} holds a password; it belongs behind {secret}")
    return url.rstrip("/")


def _ssh(value: Value) -> SshAccess:
    fields = value.fields({"user", "key", "become"}, required=("user", "key"))
    if not (key := _reference(fields["key"])).startswith("file:"):
        raise fields["key"].wrong("ssh.key must be file:PATH: ssh reads the key itself")
    become = fields["become"].flag() if "become" in fields else True
    return SshAccess(fields["user"].text(), key, become)


def _credential(name: str, value: Value) -> CredentialRef:
    fields = value.fields({"username", "password", "kg"}, required=("username", "password"))
    kg = _reference(fields["kg"]) if "kg" in fields else None
    return CredentialRef(name, fields["username"].text(), _reference(fields["password"]), kg)


def _profile(name: str, value: Value) -> Profile:
    fields = value.fields(_PROFILE)
    return Profile(
        name=name,
        vendor=fields.text("vendor", ""),
        model=fields.text("model", ""),
        os_image=_os_image(fields),
        deadlines=_deadlines(fields["deadlines"]) if "deadlines" in fields else {},
        limits={word: entry.free() for word, entry in _named(fields["limits"])} if "limits" in fields else {},
        checks=fields.texts("checks"),
        playbook=fields.text("playbook", "site.yml"),
    )


def _os_image(fields: Fields) -> str:
    image = fields.text("os_image", "custom/debian-12")
    if not re.fullmatch(r"[^/\s]+/[^/\s]+", image):
        raise fields["os_image"].wrong(f"os_image must be OSYSTEM/SERIES as MAAS names them, not {image}")
    return image


def _deadlines(value: Value) -> dict[str, float]:
    fields = value.fields(_DEADLINES)
    return {stage: fields[stage].number(1, _WEEK) for stage in fields}


def _racks(path: Path, names: Names) -> tuple[Rack, ...]:
    described = Described()
    return tuple(read_rack(word, value, names, described) for word, value in _named(_only(path, "racks")))
