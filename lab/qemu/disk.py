"""A disk image that a BIOS boots: MBR, GRUB in the gap behind it, one ext4 partition.

Made from files alone: no loop device, no mount, no boot loader inside the root file system.
"""

from __future__ import annotations

import struct
from pathlib import Path

from lab.qemu.tools import run_tool

SECTOR = 512
PARTITION_START = 1 << 20
DISK_BYTES = 4 << 30  # the node's disk; the image is as small as its files and grows at first boot
LABEL = "labroot"

_GRUB = Path("/usr/lib/grub/i386-pc")
_GRUB_MODULES = (
    *("biosdisk", "part_msdos", "ext2", "linux", "normal"),
    *("serial", "terminal", "configfile", "echo", "minicmd", "boot"),
)
_GRUB_START = """\
serial --unit=0 --speed=115200
terminal_input serial
terminal_output serial
set root=(hd0,msdos1)
set prefix=(hd0,msdos1)/boot/grub
configfile (hd0,msdos1)/boot/grub/grub.cfg
"""
# GRUB 2.06 cannot read metadata_csum_seed, and older e2fsprogs do not know names they would have to
# switch off: so every feature is named.
_FEATURES = (
    "none,has_journal,ext_attr,resize_inode,dir_index,filetype,extent,64bit,flex_bg,sparse_super,"
    "large_file,huge_file,dir_nlink,extra_isize"
)
_SLACK_BYTES = 24 << 20  # journal, inode tables, and what the first boot writes before the file system grows


async def make_disk_image(root: Path, image: Path, scratch: Path) -> None:
    """Write `image` with the files under `root`, sized to fit them. Raises AssetsNotMade."""
    used = int((await run_tool("measure root file system", "du", "-s", "-B1", str(root))).split()[0])
    megabytes = (used + used // 50 + _SLACK_BYTES >> 20) + 1
    with image.open("wb") as file:
        file.truncate(PARTITION_START + (megabytes << 20))
    await run_tool(
        "make file system",
        *("mke2fs", "-q", "-F", "-t", "ext4", "-L", LABEL, "-m", "0", "-O", _FEATURES),
        *("-J", "size=4", "-E", f"offset={PARTITION_START},lazy_itable_init=1,lazy_journal_init=1"),
        *("-d", str(root), str(image), f"{megabytes << 10}k"),
    )
    core = await _grub_core(scratch)
    boot_code = (_GRUB / "boot.img").read_bytes()
    with image.open("r+b") as file:
        file.write(boot_sector(boot_code, PARTITION_START, DISK_BYTES - PARTITION_START))
        file.write(core)


def boot_sector(boot_code: bytes, start: int, length: int) -> bytes:
    """Return the first sector: GRUB's code and one bootable Linux partition. Bytes, whole sectors."""
    if start % SECTOR or length % SECTOR:
        raise ValueError(f"partition {start}+{length} is not made of whole sectors")
    far = b"\xfe\xff\xff"  # beyond what cylinder, head and sector can say: read the sector numbers
    entry = struct.pack("<B3sB3sII", 0x80, far, 0x83, far, start // SECTOR, length // SECTOR)
    sector = bytearray(boot_code[:SECTOR].ljust(SECTOR, b"\0"))
    sector[440:446] = b"LAB1\0\0"
    sector[446:510] = entry.ljust(64, b"\0")
    sector[510:512] = b"\x55\xaa"
    return bytes(sector)


async def _grub_core(scratch: Path) -> bytes:
    """Return GRUB's second stage, which finds its configuration on the first partition."""
    start, core = scratch / "grub-start.cfg", scratch / "core.img"
    start.write_text(_GRUB_START, encoding="ascii")
    await run_tool(
        "make GRUB core",
        *("grub-mkimage", "-O", "i386-pc", "-o", str(core), "-p", "(hd0,msdos1)/boot/grub"),
        *("-c", str(start), *_GRUB_MODULES),
    )
    data = core.read_bytes()
    if len(data) > PARTITION_START - SECTOR:
        raise ValueError(f"GRUB core of {len(data)} bytes does not fit before the partition")
    return data
