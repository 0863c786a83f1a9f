"""Initial RAM disks of busybox, one init script and the few kernel modules it needs."""

from __future__ import annotations

import lzma
import shutil
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from lab.qemu.errors import AssetsNotMade
from lab.qemu.tools import run_tool

_FOLDERS = ("bin", "sbin", "dev", "etc", "mnt", "proc", "root", "sys", "tmp")


@dataclass(frozen=True, slots=True)
class KernelTree:
    """An unpacked kernel package: `version`, and the folder that holds lib/modules."""

    version: str
    root: Path

    @property
    def modules(self) -> Path:
        return self.root / "lib" / "modules" / self.version


@dataclass(frozen=True, slots=True)
class InitrdFiles:
    """What goes into one RAM disk: its init, and other files by their place in it."""

    init: Path
    modules: tuple[str, ...]
    extra: Mapping[str, Path]


async def make_initrd(files: InitrdFiles, kernel: KernelTree, target: Path, scratch: Path) -> None:
    """Write the compressed RAM disk `target`. Raises AssetsNotMade."""
    tree = scratch / target.name
    for folder in _FOLDERS:
        (tree / folder).mkdir(parents=True, exist_ok=True)
    await _install_busybox(tree / "bin")
    shutil.copy(files.init, tree / "init")
    (tree / "init").chmod(0o755)
    for place, source in files.extra.items():
        (tree / place).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(source, tree / place)
        (tree / place).chmod(0o755)
    await install_modules(kernel, wanted_modules(kernel, files.modules), tree)
    listing = "\n".join(sorted(str(path.relative_to(tree)) for path in tree.rglob("*")))
    archive = scratch / f"{target.name}.cpio"
    await run_tool(
        f"pack {target.name}",
        *("cpio", "--quiet", "-o", "-H", "newc", "-R", "+0:+0", "-F", str(archive)),
        stdin=listing.encode(),
        cwd=tree,
    )
    await run_tool(f"compress {target.name}", "zstd", "-q", "-f", "-9", str(archive), "-o", str(target))


def wanted_modules(kernel: KernelTree, names: Iterable[str]) -> set[str]:
    """Return the files of the named modules and of all they depend on, relative to `kernel.modules`.

    Built-in names need no file. Raises AssetsNotMade for a name that this kernel does not know.
    """
    needs = read_dependencies((kernel.modules / "modules.dep").read_text(encoding="ascii"))
    built_in = {
        _module_name(line) for line in (kernel.modules / "modules.builtin").read_text("ascii").split()
    }
    by_name = {_module_name(file): file for file in needs}
    wanted: set[str] = set()
    for name in names:
        if name in by_name:
            wanted |= {by_name[name], *needs[by_name[name]]}
        elif name not in built_in:
            raise AssetsNotMade(
                f"kernel {kernel.version}",
                f"has no module {name}",
                follow="use a kernel package that has it",
            )
    return wanted


def read_dependencies(text: str) -> dict[str, tuple[str, ...]]:
    """Read modules.dep: each module's file and the files it needs, theirs included."""
    lines = (line.partition(":") for line in text.splitlines() if ":" in line)
    return {file: tuple(rest.split()) for file, _, rest in lines}


async def install_modules(kernel: KernelTree, files: Iterable[str], tree: Path) -> None:
    """Copy module files into `tree` and index them there, unpacked, as busybox wants them."""
    folder = tree / "lib" / "modules" / kernel.version
    for file in files:
        source, place = kernel.modules / file, folder / file
        place.parent.mkdir(parents=True, exist_ok=True)
        if source.suffix == ".xz":
            place.with_suffix("").write_bytes(lzma.decompress(source.read_bytes()))
        else:
            shutil.copy(source, place)
    folder.mkdir(parents=True, exist_ok=True)
    for index in ("modules.order", "modules.builtin", "modules.builtin.modinfo"):
        shutil.copy(kernel.modules / index, folder / index)
    await run_tool("index kernel modules", "depmod", "-b", str(tree), kernel.version)


def _module_name(file: str) -> str:
    return file.rsplit("/", 1)[-1].split(".", 1)[0].replace("-", "_")


async def _install_busybox(folder: Path) -> None:
    program = shutil.which("busybox")
    if program is None:
        raise AssetsNotMade(
            "make initrd", "busybox is not installed", follow="run ./muster as root once: it installs it"
        )
    shutil.copy(program, folder / "busybox")
    for applet in (await run_tool("list busybox applets", program, "--list")).split():
        if applet != "busybox":
            (folder / applet).symlink_to("busybox")
