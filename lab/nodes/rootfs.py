"""The one Debian root file system that all nodes share, made once and cached outside the checkout."""

from __future__ import annotations

import fcntl
import hashlib
import json
import logging
import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from lab.errors import NoService
from lab.nodes.sources import Archive

log = logging.getLogger(__name__)

PACKAGES = (
    "apt",
    "ca-certificates",
    "chrony",
    "dbus",
    "ethtool",
    "faketime",
    "iproute2",
    "iputils-ping",
    "kmod",
    "lshw",
    "openssh-server",
    "pciutils",
    "procps",
    "python3",
    "python3-apt",
    "python3-yaml",
    "sudo",
    "systemd",
    "systemd-sysv",
)

# Run by mmdebstrap with $1 = the new root. No key and no machine id is left: each deploy makes its own.
_CUSTOMIZE = r"""
set -eu
chroot "$1" useradd --create-home --shell /bin/bash --groups sudo ubuntu
chroot "$1" usermod --password '*' ubuntu
rm -f "$1"/etc/ssh/ssh_host_* "$1"/etc/hostname
: > "$1"/etc/machine-id
rm -rf "$1"/var/cache/apt/*.bin "$1"/usr/share/man "$1"/usr/share/locale
"""


def recipe_key(archive: Archive) -> str:
    """Return the hash of everything that decides what the root file system holds."""
    recipe = [
        archive.suite,
        [source.line for source in archive.sources],
        archive.settings,
        PACKAGES,
        _CUSTOMIZE,
    ]
    return hashlib.sha256(json.dumps(recipe).encode()).hexdigest()[:16]


def rootfs_folder(archive: Archive, cache: Path) -> Path:
    """Return where the root file system for this archive lies, or will."""
    return cache / f"rootfs-{recipe_key(archive)}"


def ensure_rootfs(archive: Archive, cache: Path, logs: Path) -> Path:
    """Return the cached root file system, making it first where it is missing.

    Two labs that start at once make it once: the second waits for the first one's lock. A making
    that was killed leaves nothing that looks finished. Raises NoService with the last line of
    mmdebstrap's log when packages cannot be had.
    """
    target = rootfs_folder(archive, cache)
    if target.is_dir():
        return target
    cache.mkdir(parents=True, exist_ok=True)
    with _locked(cache / "rootfs.lock"):
        if not target.is_dir():
            _make(archive, target, logs)
    return target


def _make(archive: Archive, target: Path, logs: Path) -> None:
    log.info("making the root file system %s (once; later starts reuse it)", target)
    work = target.with_name(f"{target.name}.part")
    shutil.rmtree(work, ignore_errors=True)
    for leftover in target.parent.glob("rootfs-*.part"):
        shutil.rmtree(leftover, ignore_errors=True)
    options = [f"--aptopt={line}" for line in archive.settings]
    if archive.proxy:
        options.append(f'--aptopt=Acquire::http::Proxy "{archive.proxy}";')
    command = [
        "mmdebstrap",
        "--mode=root",
        "--variant=minbase",
        "--format=directory",
        "--skip=output/dev",
        "--skip=cleanup/apt/lists",  # a node's first update then fetches only what has changed
        '--aptopt=Acquire::Languages "none";',
        '--aptopt=Apt::Install-Recommends "false";',
        "--dpkgopt=force-unsafe-io",
        "--dpkgopt=path-exclude=/usr/share/doc/*",
        "--dpkgopt=path-exclude=/usr/share/man/*",
        "--dpkgopt=path-exclude=/usr/share/locale/*",
        f"--include={','.join(PACKAGES)}",
        f"--customize-hook={_CUSTOMIZE}",
        *options,
        archive.suite,
        str(work),
        "-",
    ]
    logs.mkdir(parents=True, exist_ok=True)
    record = logs / "rootfs.log"
    lines = "".join(f"{source.line}\n" for source in archive.sources)
    environ = {**os.environ, "LC_ALL": "C.UTF-8"}
    with record.open("wb") as output:
        done = subprocess.run(
            command, input=lines.encode(), stdout=output, stderr=output, check=False, env=environ
        )
    if done.returncode != 0:
        shutil.rmtree(work, ignore_errors=True)
        raise NoService(
            "root file system",
            f"mmdebstrap failed: {_last_error(record)}",
            follow=f"read {record}, check that this machine's apt sources answer, then start again",
        )
    work.rename(target)


def _last_error(record: Path) -> str:
    lines = [line for line in record.read_text(errors="replace").splitlines() if line.strip()]
    errors = [line for line in lines if line.startswith(("E:", "Err:"))]
    return (errors or lines or ["no output"])[-1]


@contextmanager
def _locked(path: Path) -> Iterator[None]:
    with path.open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield
