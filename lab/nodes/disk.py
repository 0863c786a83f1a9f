"""A node's system disk: a sparse file with a file system of its own, so that it can fill up."""

from __future__ import annotations

import asyncio
from pathlib import Path

from lab.errors import LabError

SIZE_BYTES = 8 * 1024**3


class Disk:
    """One disk. `installed` is true from the end of an installation until the next one begins."""

    def __init__(self, image: Path) -> None:
        self.image = image
        self._mark = image.with_suffix(".installed")

    @property
    def installed(self) -> bool:
        return self._mark.exists() and self.image.exists()

    @property
    def hostname(self) -> str:
        """The name that the installed system has."""
        return self._mark.read_text(encoding="utf-8").strip() if self.installed else ""

    async def format(self) -> None:
        """Wipe the disk and make an empty file system on it. Raises LabError when that fails."""
        self._mark.unlink(missing_ok=True)
        self.image.unlink(missing_ok=True)
        with self.image.open("wb") as blank:
            blank.truncate(SIZE_BYTES)
        # No journal and no discard: the file survives a killed node, and nothing is written twice.
        process = await asyncio.create_subprocess_exec(
            *("mke2fs", "-q", "-F", "-t", "ext4", "-O", "^has_journal", "-m", "0", "-L", "labroot"),
            *("-E", "lazy_itable_init=1,nodiscard", str(self.image)),
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
        )
        output, _ = await process.communicate()
        if process.returncode != 0:
            raise LabError(
                str(self.image),
                f"mke2fs failed: {output.decode(errors='replace').strip()}",
                follow="check the free space of this machine",
            )

    def mark_installed(self, hostname: str) -> None:
        self._mark.write_text(f"{hostname}\n", encoding="utf-8")

    def wipe(self) -> None:
        self._mark.unlink(missing_ok=True)
        self.image.unlink(missing_ok=True)
