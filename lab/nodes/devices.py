"""The pipes between a node and the lab: its kernel log, and word of what happens inside."""

from __future__ import annotations

import asyncio
import contextlib
import fcntl
import os
from collections.abc import Callable
from pathlib import Path

_PIPE_BYTES = 1024 * 1024  # a pipe in packet mode holds a message a page: 256 messages


class Devices:
    """Named pipes in a node's share, held open so that no program inside ever waits for a reader."""

    def __init__(self, share: Path, heard: Callable[[str], None]) -> None:
        """Call `heard` with each word from inside: "gpus" when asked for, "booted" at the end of a boot."""
        self._share = share
        self._heard = heard
        self._loop = asyncio.get_running_loop()
        self._kmsg = -1
        self._sequence = 0
        self._asked = self._open("asked", os.O_RDWR)
        self._loop.add_reader(self._asked, self._hear)

    def boot(self) -> None:
        """Begin an empty kernel log, and forget what the last system said that nobody has read."""
        with contextlib.suppress(BlockingIOError):
            os.read(self._asked, 4096)
        self._close_kmsg()
        (self._share / "kmsg").unlink(missing_ok=True)
        self._kmsg = self._open("kmsg", os.O_RDWR)
        # Packet mode, so that a reader gets a message a read as from the real device.
        flags = fcntl.fcntl(self._kmsg, fcntl.F_GETFL)
        fcntl.fcntl(self._kmsg, fcntl.F_SETFL, flags | os.O_DIRECT)
        with contextlib.suppress(OSError):
            fcntl.fcntl(self._kmsg, fcntl.F_SETPIPE_SZ, _PIPE_BYTES)
        self._sequence = 0

    def log_kernel(self, text: str, *, since_boot_s: float, level: int = 6) -> None:
        """Write one message where the system's journal reads the kernel's, in /dev/kmsg's own form."""
        if self._kmsg < 0:
            return
        record = f"{level},{self._sequence},{since_boot_s * 1e6:.0f},-;{text}\n"
        self._sequence += 1
        with contextlib.suppress(BlockingIOError):
            os.write(self._kmsg, record.encode())

    def close(self) -> None:
        self._loop.remove_reader(self._asked)
        os.close(self._asked)
        self._close_kmsg()

    def _open(self, name: str, flags: int) -> int:
        path = self._share / name
        if not path.exists():
            os.mkfifo(path)
            path.chmod(0o666)
        return os.open(path, flags | os.O_NONBLOCK | os.O_CLOEXEC)

    def _hear(self) -> None:
        with contextlib.suppress(BlockingIOError):
            for word in os.read(self._asked, 4096).decode(errors="replace").split():
                self._heard(word)

    def _close_kmsg(self) -> None:
        if self._kmsg >= 0:
            os.close(self._kmsg)
            self._kmsg = -1
