"""The lab's own layer over Debian, and what every node is told about itself."""

from __future__ import annotations

import contextlib
import shutil
from pathlib import Path

from lab.nodes.sources import Archive
from lab.spec import PROXY_PORT, LabNet

_TREE = Path(__file__).parent / "image"
# Units that have no meaning in a namespace, or that would only burn time on their own schedule.
_MASKED = (
    "apt-daily-upgrade.timer",
    "apt-daily.timer",
    "cryptsetup.target",
    "dev-hugepages.mount",
    "dev-mqueue.mount",
    "dpkg-db-backup.timer",
    "e2scrub_all.timer",
    "e2scrub_reap.service",
    "fstrim.timer",
    "getty@tty1.service",
    "integritysetup.target",
    "kmod-static-nodes.service",
    "proc-sys-fs-binfmt_misc.automount",
    "remote-fs.target",
    "sys-fs-fuse-connections.mount",
    "sys-kernel-config.mount",
    "sys-kernel-debug.mount",
    "sys-kernel-tracing.mount",
    "systemd-ask-password-console.path",
    "systemd-ask-password-wall.path",
    "systemd-binfmt.service",
    "systemd-firstboot.service",
    "systemd-pstore.service",
    "systemd-repart.service",
    "veritysetup.target",
)


def build_layer(target: Path, rootfs: Path, net: LabNet, archive: Archive) -> Path:
    """Write the layer afresh from the files under image/ and this lab's addresses."""
    work = target.with_name(f"{target.name}.part")
    shutil.rmtree(work, ignore_errors=True)
    work.mkdir(parents=True)
    for source in sorted(_TREE.rglob("*")):
        if source.is_file() and source.suffix != ".pyc":
            place = work / source.relative_to(_TREE)
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_bytes(source.read_bytes())
            place.chmod(0o755 if source.stat().st_mode & 0o100 else 0o644)
    (work / "etc/sudoers.d/90-ubuntu").chmod(0o440)
    units = work / "etc/systemd/system"
    units.mkdir(parents=True, exist_ok=True)
    wants = units / "multi-user.target.wants"
    wants.mkdir()
    for own in (*units.glob("*.service"), *units.glob("*.mount")):
        (wants / own.name).symlink_to(f"/etc/systemd/system/{own.name}")
    for unit in _MASKED:
        (units / unit).symlink_to("/dev/null")
    settings = [
        'Acquire::Languages "none";',
        f'Acquire::http::Proxy "http://{net.gateway}:{PROXY_PORT}";',
        *archive.settings,
    ]
    apt = work / "etc/apt/apt.conf.d/90lab"
    apt.parent.mkdir(parents=True, exist_ok=True)
    apt.write_text("".join(f"{line}\n" for line in settings))
    _write_sources(work, archive)
    clock = work / "etc/chrony/sources.d/lab.sources"
    clock.parent.mkdir(parents=True, exist_ok=True)
    clock.write_text(f"server {net.gateway} iburst minpoll 4 maxpoll 6\n")
    # libfaketime under a path that does not depend on the machine's architecture.
    for library in rootfs.glob("usr/lib/*/faketime/libfaketime.so.1"):
        (work / "usr/lib/lab" / library.name).symlink_to(f"/{library.relative_to(rootfs)}")
    shutil.copy(rootfs / "usr/bin/dmesg", work / "usr/lib/lab/dmesg")  # the real one, behind ours
    shutil.rmtree(target, ignore_errors=True)
    work.rename(target)
    return target


def _write_sources(work: Path, archive: Archive) -> None:
    """Give nodes the machine's sources over http: the proxy speaks https where the source wants it."""
    lines = [source.line.replace("https://", "http://") for source in archive.sources]
    (work / "etc/apt/sources.list").write_text("".join(f"{line}\n" for line in lines))
    for keyring in {source.signed_by for source in archive.sources if source.signed_by}:
        place = work / keyring.lstrip("/")
        place.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(keyring, place)


def copy_sysctl(target: Path) -> Path:
    """Copy this machine's kernel settings as plain files, without those of the network."""
    shutil.rmtree(target, ignore_errors=True)
    root = Path("/proc/sys")
    (target / "net").mkdir(parents=True)
    for section in ("debug", "dev", "fs", "kernel", "vm"):
        for source in (root / section).rglob("*"):
            place = target / source.relative_to(root)
            if source.is_dir():
                place.mkdir(parents=True, exist_ok=True)
                continue
            place.parent.mkdir(parents=True, exist_ok=True)
            content = b""
            with contextlib.suppress(OSError):
                content = source.read_bytes()
            place.write_bytes(content)
            place.chmod(source.stat().st_mode & 0o777)
    return target
