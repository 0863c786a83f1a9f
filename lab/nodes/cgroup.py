"""Control groups: where a node's processes live, and the one way they are killed."""

from __future__ import annotations

import contextlib
import os
import re
import signal
import time
from pathlib import Path

from lab.errors import Refused

_MOUNTINFO = Path("/proc/self/mountinfo")


def unified_hierarchy(mountinfo: Path = _MOUNTINFO) -> Path:
    """Return where cgroup v2 is mounted, on a pure v2 machine and on a v1 hybrid one.

    Raises Refused on a machine that has only v1.
    """
    for line in mountinfo.read_text(encoding="utf-8").splitlines():
        match = re.search(r"^(?:\S+ ){4}(\S+) .* - cgroup2 ", line)
        if match is not None:
            return Path(match[1])
    raise Refused(
        "control groups",
        "this machine has no cgroup v2 hierarchy, which nodes with systemd need",
        follow="mount -t cgroup2 none /sys/fs/cgroup/unified, or use a machine with cgroup v2",
    )


class Group:
    """One control group, made on first use."""

    def __init__(self, path: Path) -> None:
        self.path = path

    @property
    def procs(self) -> Path:
        return self.path / "cgroup.procs"

    def make(self) -> None:
        """Make the group empty: what an earlier node left in it is killed and removed."""
        if self.path.is_dir():
            self.remove()
        self.path.mkdir(parents=True)

    def pids(self) -> list[int]:
        """Return every process in the group and below it, as this machine numbers them."""
        found = []
        for folder in self._folders():
            with contextlib.suppress(OSError):
                found += [int(word) for word in (folder / "cgroup.procs").read_text().split()]
        return found

    def kill(self) -> None:
        """Kill every process in the group, in one stroke where the kernel can (since 5.14)."""
        switch = self.path / "cgroup.kill"
        if switch.exists():
            with contextlib.suppress(OSError):
                switch.write_text("1")
            return
        for pid in self.pids():
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)

    def remove(self, deadline_s: float = 5.0) -> bool:
        """Kill and remove the group with all below it; False when it was still busy at the end."""
        end = time.monotonic() + deadline_s
        while self.path.is_dir():
            self.kill()
            for folder in self._folders():
                with contextlib.suppress(OSError):
                    folder.rmdir()
            if self.path.is_dir():
                if time.monotonic() > end:
                    return False
                time.sleep(0.01)
        return True

    def _folders(self) -> list[Path]:
        """All folders of the group, deepest first."""
        return [Path(folder) for folder, _, _ in os.walk(self.path, topdown=False)]
