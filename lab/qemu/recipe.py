"""What a QEMU node's kernel, netboot environment and disk image are made of."""

from __future__ import annotations

import hashlib
import shutil
from dataclasses import dataclass
from pathlib import Path

from lab.nodes.sources import Archive
from lab.qemu.disk import make_disk_image
from lab.qemu.initrd import InitrdFiles, KernelTree, install_modules, make_initrd, wanted_modules
from lab.qemu.tools import run_tool

KERNEL_ARGUMENTS = "console=ttyS0,115200 mitigations=off unknown_nmi_panic"

_HERE = Path(__file__).resolve().parent
_GUEST = _HERE / "guest"
_PACKAGES = (
    *("ca-certificates", "chrony", "dbus", "e2fsprogs", "ethtool", "iproute2", "iputils-ping", "kmod"),
    *(
        "lshw",
        "openssh-server",
        "pciutils",
        "procps",
        "python3",
        "python3-apt",
        "sudo",
        "systemd-sysv",
        "udev",
    ),
)
# Every byte is written through an emulated network card at each install.
_UNREAD = (
    *("/usr/share/doc/*", "/usr/share/man/*", "/usr/share/locale/*", "/usr/share/info/*"),
    *("/usr/share/zoneinfo/right/*", "/usr/share/zoneinfo/posix/*", "/usr/lib/udev/hwdb.d/*"),
    "/usr/lib/x86_64-linux-gnu/gconv/*",
)
# Merges /usr at the start, which spares usrmerge and the whole of perl.
_MERGED_USR = "/usr/share/mmdebstrap/hooks/maybe-merged-usr"
_BOOT_MODULES = ("virtio_pci", "virtio_net", "virtio_blk", "virtio_rng", "af_packet")
# The system's own: what udev loads on this machine, and what containers and firewalls ask for.
_SYSTEM_MODULES = (
    *("button", "evdev", "virtio_balloon", "loop", "overlay", "tun", "veth", "bridge", "br_netfilter"),
    *("nf_tables", "nf_conntrack", "nft_compat", "nft_chain_nat", "nft_ct", "xt_conntrack", "xt_MASQUERADE"),
    *("xt_addrtype", "dummy", "fuse", "vfat", "nls_ascii", "nls_cp437"),
)
_GRUB_MENU = """\
set timeout=0
menuentry 'Debian GNU/Linux' {{
  echo 'Loading Linux {version} ...'
  linux /boot/vmlinuz root=LABEL=labroot {arguments}
  echo 'Loading initial ramdisk ...'
  initrd /boot/initrd.img
}}
"""


@dataclass(frozen=True, slots=True)
class Assets:
    """The files that nodes boot from, in one folder of the cache."""

    folder: Path

    @property
    def kernel(self) -> Path:
        return self.folder / "vmlinuz"

    @property
    def initrd(self) -> Path:
        """The netboot environment: commissions, installs, rescues."""
        return self.folder / "netboot.img"

    @property
    def image(self) -> Path:
        """What an install writes to the disk, byte for byte."""
        return self.folder / "disk.img"


def recipe_key(archive: Archive) -> str:
    """Return the hash of everything that decides what the assets hold."""
    digest = hashlib.sha256()
    for line in (archive.suite, *(source.line for source in archive.sources), *archive.settings):
        digest.update(f"{line}\n".encode())
    makers = [_HERE / name for name in ("recipe.py", "disk.py", "initrd.py")]
    for path in (*makers, *sorted(path for path in _GUEST.rglob("*") if path.is_file())):
        digest.update(f"{path.relative_to(_HERE)}\0".encode() + path.read_bytes() + b"\0")
    return digest.hexdigest()[:16]


async def make_assets(archive: Archive, folder: Path) -> None:
    """Make all of Assets in `folder`, an empty one. Needs root. Raises AssetsNotMade."""
    scratch = folder / "scratch"
    packages, root = scratch / "packages", scratch / "root"
    packages.mkdir(parents=True)
    await _make_root(archive, root, packages)
    kernel = await _unpack_kernel(packages, scratch / "kernel")
    assets = Assets(folder)
    shutil.copy(kernel.root / "boot" / f"vmlinuz-{kernel.version}", assets.kernel)
    await make_initrd(_netboot_files(), kernel, assets.initrd, scratch)
    await _install_kernel(kernel, assets.kernel, root, scratch)
    await make_disk_image(root, assets.image, scratch)
    shutil.rmtree(scratch)


async def _make_root(archive: Archive, root: Path, packages: Path) -> None:
    settings = list(archive.settings)
    if archive.proxy:
        settings.append(f'Acquire::http::Proxy "{archive.proxy}";')
    await run_tool(
        "make root file system",
        *("mmdebstrap", "--mode=root", "--variant=minbase", "--format=directory", "--quiet"),
        f"--hook-dir={_MERGED_USR}",
        *('--aptopt=Apt::Install-Recommends "false";', "--dpkgopt=force-unsafe-io"),
        *(f"--aptopt={line}" for line in settings),
        *(f"--dpkgopt=path-exclude={pattern}" for pattern in _UNREAD),
        f"--include={','.join(_PACKAGES)}",
        f'--customize-hook=sh {_GUEST}/customize.sh "$1"',
        *(archive.suite, str(root), "-"),
        stdin="".join(f"{source.line}\n" for source in archive.sources).encode(),
        environ={"KERNEL_FOLDER": str(packages)},
    )


async def _unpack_kernel(packages: Path, target: Path) -> KernelTree:
    (package,) = packages.glob("linux-image-*.deb")
    await run_tool("unpack kernel", "dpkg-deb", "-x", str(package), str(target))
    (modules,) = (target / "lib" / "modules").iterdir()
    await run_tool("index kernel modules", "depmod", "-b", str(target), modules.name)
    return KernelTree(modules.name, target)


async def _install_kernel(kernel: KernelTree, image: Path, root: Path, scratch: Path) -> None:
    boot = root / "boot"
    shutil.copy(image, boot / "vmlinuz")
    await install_modules(kernel, wanted_modules(kernel, (*_BOOT_MODULES, *_SYSTEM_MODULES)), root)
    start = InitrdFiles(_GUEST / "disk.sh", ("virtio_pci", "virtio_blk"), {})
    await make_initrd(start, kernel, boot / "initrd.img", scratch)
    menu = _GRUB_MENU.format(version=kernel.version, arguments=KERNEL_ARGUMENTS)
    (boot / "grub").mkdir()
    (boot / "grub" / "grub.cfg").write_text(menu, encoding="ascii")


def _netboot_files() -> InitrdFiles:
    scripts = {f"commissioning/{path.name}": path for path in (_GUEST / "commissioning").iterdir()}
    extra = {"bin/dhcp-bound": _GUEST / "dhcp-bound.sh", **scripts}
    return InitrdFiles(_GUEST / "netboot.sh", _BOOT_MODULES, extra)
