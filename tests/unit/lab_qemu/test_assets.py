"""The cache of boot files, and the images in it."""

from __future__ import annotations

import asyncio
import dataclasses
import json
import shutil
import struct
import subprocess
from pathlib import Path

import pytest

from lab.nodes.sources import Archive, Source
from lab.qemu import prepare_assets
from lab.qemu.disk import DISK_BYTES, PARTITION_START, boot_sector, make_disk_image
from lab.qemu.errors import AssetsNotMade
from lab.qemu.initrd import InitrdFiles, KernelTree, make_initrd, wanted_modules
from lab.qemu.recipe import recipe_key
from lab.qemu.tools import run_tool

ARCHIVE = Archive("trixie", (Source("http://mirror.invalid/debian", "trixie", ("main",), None),), (), None)
GUEST = Path("lab/qemu/guest").resolve()


async def test_two_that_start_at_once_make_the_files_once(tmp_path: Path) -> None:
    made: list[Path] = []

    async def make(_archive: Archive, folder: Path) -> None:
        made.append(folder)
        await asyncio.sleep(0.05)  # both are inside now
        (folder / "disk.img").write_bytes(b"image")

    first, second = await asyncio.gather(
        *(prepare_assets(tmp_path, archive=ARCHIVE, make=make) for _ in range(2))
    )
    assert first == second
    assert first.image.read_bytes() == b"image"
    assert len(made) == 1


async def test_a_making_that_fails_leaves_nothing_that_looks_finished(tmp_path: Path) -> None:
    async def fail(_archive: Archive, folder: Path) -> None:
        (folder / "disk.img").write_bytes(b"half an im")
        raise AssetsNotMade("make file system", "no space left", follow="make room")

    with pytest.raises(AssetsNotMade, match="no space left"):
        await prepare_assets(tmp_path, archive=ARCHIVE, make=fail)
    assert [path.name for path in tmp_path.iterdir()] == ["qemu.lock"]


async def test_what_a_killed_making_left_is_swept(tmp_path: Path) -> None:
    leftover = tmp_path / "qemu-0123456789abcdef.part"
    leftover.mkdir()
    (leftover / "disk.img").write_bytes(b"half an im")

    async def make(_archive: Archive, _folder: Path) -> None: ...

    await prepare_assets(tmp_path, archive=ARCHIVE, make=make)
    assert not leftover.exists()


def test_the_key_follows_the_archive() -> None:
    assert recipe_key(ARCHIVE) == recipe_key(dataclasses.replace(ARCHIVE))
    assert recipe_key(ARCHIVE) != recipe_key(dataclasses.replace(ARCHIVE, suite="forky"))


async def test_a_tool_that_fails_is_named_with_its_last_word() -> None:
    with pytest.raises(AssetsNotMade, match="sh ended with 3: no such suite"):
        await run_tool("make root file system", "sh", "-c", "echo no such suite >&2; exit 3")
    with pytest.raises(AssetsNotMade, match="muster-no-such-tool is not installed"):
        await run_tool("make root file system", "muster-no-such-tool")


def test_the_boot_sector_holds_one_bootable_partition() -> None:
    sector = boot_sector(b"\xeb\x63\x90" + bytes(509), PARTITION_START, DISK_BYTES - PARTITION_START)
    assert (len(sector), sector[:3], sector[510:]) == (512, b"\xeb\x63\x90", b"\x55\xaa")
    flag, kind, start, length = struct.unpack("<B3xB3xII", sector[446:462])
    assert (flag, kind, start, length) == (0x80, 0x83, 2048, DISK_BYTES // 512 - 2048)
    assert sector[462:510] == bytes(48)
    with pytest.raises(ValueError, match="whole sectors"):
        boot_sector(b"", 100, 512)


@pytest.mark.skipif(shutil.which("grub-mkimage") is None, reason="GRUB's tools are not installed")
async def test_a_disk_image_carries_files_and_a_boot_loader(tmp_path: Path) -> None:
    root, image = tmp_path / "root", tmp_path / "disk.img"
    (root / "etc").mkdir(parents=True)
    (root / "etc" / "hostname").write_text("lab-real-n01\n")
    await make_disk_image(root, image, tmp_path)
    data = image.read_bytes()
    assert len(data) % (1 << 20) == 0  # the installer counts whole MiB
    assert data[512:4096].strip(b"\0")
    assert b"configfile (hd0,msdos1)" in data[:PARTITION_START] or data[4096:PARTITION_START].strip(b"\0")
    system = tmp_path / "system.img"
    system.write_bytes(data[PARTITION_START:])
    subprocess.run(["e2fsck", "-fn", str(system)], check=True, capture_output=True)
    shown = subprocess.run(
        ["debugfs", "-R", "cat /etc/hostname", str(system)], check=True, capture_output=True
    )
    assert shown.stdout == b"lab-real-n01\n"


@pytest.fixture
def kernel(tmp_path: Path) -> KernelTree:
    tree = KernelTree("9.9.9-lab", tmp_path / "kernel")
    tree.modules.mkdir(parents=True)
    (tree.modules / "modules.dep").write_text(
        "kernel/net.ko: kernel/ring.ko kernel/bus.ko\nkernel/ring.ko: kernel/bus.ko\n"
        "kernel/bus.ko:\nkernel/sound-card.ko.xz:\n"
    )
    (tree.modules / "modules.builtin").write_text("kernel/ext4.ko\n")
    for index in ("modules.order", "modules.builtin.modinfo"):
        (tree.modules / index).write_bytes(b"")
    return tree


def test_modules_bring_what_they_need(kernel: KernelTree) -> None:
    assert wanted_modules(kernel, ["net", "ext4"]) == {"kernel/net.ko", "kernel/ring.ko", "kernel/bus.ko"}
    assert wanted_modules(kernel, ["sound_card"]) == {"kernel/sound-card.ko.xz"}


def test_a_module_that_the_kernel_lacks_is_an_error(kernel: KernelTree) -> None:
    with pytest.raises(AssetsNotMade, match="has no module teleport"):
        wanted_modules(kernel, ["net", "teleport"])


@pytest.mark.skipif(shutil.which("busybox") is None, reason="busybox is not installed")
async def test_a_ram_disk_holds_its_init_and_tools(kernel: KernelTree, tmp_path: Path) -> None:
    init = tmp_path / "start.sh"
    init.write_text("#!/bin/sh\n")
    target = tmp_path / "netboot.img"
    files = InitrdFiles(init, (), {"commissioning/lab-memory": init})
    await make_initrd(files, kernel, target, tmp_path / "scratch")
    listing = subprocess.run(
        "zstd -dcq netboot.img | cpio -t --quiet", shell=True, cwd=tmp_path, capture_output=True, check=True
    )
    names = set(listing.stdout.decode().split())
    wanted = {"init", "bin/busybox", "bin/wget", "bin/udhcpc", "commissioning/lab-memory", "dev", "proc"}
    assert wanted <= names


@pytest.mark.parametrize("script", sorted(GUEST.rglob("*.sh")), ids=lambda path: path.name)
def test_guest_scripts_parse(script: Path) -> None:
    shell = script.read_text().split("\n", 1)[0].removeprefix("#!")
    subprocess.run([shell, "-n", str(script)], check=True)


def test_the_inventory_has_maass_shape() -> None:
    script = GUEST / "commissioning" / "50-maas-01-commissioning"
    done = subprocess.run(["sh", str(script)], capture_output=True, check=True)
    resources = json.loads(done.stdout)["resources"]
    assert set(resources) == {"system", "cpu", "memory", "storage", "network"}
    (socket,) = resources["cpu"]["sockets"]
    processors = Path("/proc/cpuinfo").read_text().count("processor\t:")
    assert sum(len(core["threads"]) for core in socket["cores"]) == processors
    assert resources["memory"]["total"] > 0
