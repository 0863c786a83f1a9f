"""One running operating system: processes in namespaces of their own, started and killed as one."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import signal
import socket
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path

from lab.errors import LabError
from lab.nodes.cgroup import Group
from lab.nodes.network import plug, unplug
from lab.spec import LabNet, NodeSpec

log = logging.getLogger(__name__)

_INIT = Path(__file__).parent / "boot" / "init.sh"
_ENTER = 'echo $$ > "$0" && exec "$@"'
_READY_S = 30.0


class Ending(StrEnum):
    """How an operating system came to its end."""

    REBOOT = "reboot"
    POWEROFF = "poweroff"
    DIED = "died"


@dataclass(frozen=True, slots=True)
class System:
    """What to run: root file system layers (top first), disk, and the program that is PID 1."""

    name: str
    lower: tuple[Path, ...]
    share: Path  # becomes /run/lab
    sysctl: Path  # a copy of /proc/sys that becomes the node's own
    init: tuple[str, ...]
    disk: Path | None = None
    live: bool = False  # root in memory; the disk, if any, is at /target
    out: Path | None = None  # becomes /run/lab-out, for what the system leaves behind
    # Put into the root before its init starts (true), or taken out of what an earlier boot left there.
    faults: Mapping[str, bool] = field(default_factory=dict)


class Guest:
    """A node's operating system from its first process to its last."""

    def __init__(self, spec: NodeSpec, net: LabNet, group: Group, folder: Path) -> None:
        self._spec = spec
        self._net = net
        self._group = group
        self._folder = folder
        self._process: asyncio.subprocess.Process | None = None

    @property
    def pids(self) -> list[int]:
        return self._group.pids()

    @property
    def root(self) -> Path | None:
        """The node's root file system seen from here, or None while none runs."""
        init = self._init_pid()
        return Path(f"/proc/{init}/root") if init else None

    async def start(self, system: System, terminal: int) -> None:
        """Start `system` with the terminal device `terminal` as its serial line.

        Raises LabError with the complaint of the first program when it does not come up.
        """
        self._folder.mkdir(parents=True, exist_ok=True)
        await asyncio.to_thread(self._group.make)
        inner = Group(self._group.path / "node")
        inner.make()
        Group(self._group.path / "outer").make()
        ours, theirs = socket.socketpair()
        with theirs:
            self._process = await asyncio.create_subprocess_exec(
                *("sh", "-c", _ENTER, str(inner.procs)),
                *("unshare", "--mount", "--uts", "--ipc", "--net", "--cgroup", "--pid", "--time"),
                *_clock_offsets(),
                *("--fork", "--kill-child", "sh", str(_INIT)),
                stdin=terminal,
                stdout=terminal,
                stderr=theirs.fileno(),
                env=self._environment(system),
                start_new_session=True,
            )
        reader, writer = await asyncio.open_unix_connection(sock=ours)
        try:
            await self._hand_over(reader, writer)
        finally:
            writer.close()

    async def wait(self) -> Ending:
        """Wait for the end and clear what is left. PID 1 dies by SIGHUP when it asked to reboot."""
        if self._process is None:
            return Ending.DIED
        code = await self._process.wait()
        self._process = None
        await self._clear()
        if code in {-signal.SIGHUP, 128 + signal.SIGHUP}:
            return Ending.REBOOT
        return Ending.POWEROFF if code in {0, -signal.SIGINT, 128 + signal.SIGINT} else Ending.DIED

    async def kill(self) -> None:
        """Cut the power: every process dies at once."""
        self._group.kill()
        if self._process is not None:
            await self.wait()
        else:
            await self._clear()

    def stop_dead(self) -> None:
        """Kill every process and leave the rest to `wait`."""
        self._group.kill()

    def ask_to_stop(self) -> bool:
        """Press the power button: systemd shuts down in order. False when no system listens."""
        init = self._init_pid()
        if init is None:
            return False
        with contextlib.suppress(ProcessLookupError):
            os.kill(init, signal.SIGRTMIN + 4)
        return True

    async def run(self, *command: str) -> None:
        """Run a program inside, as root; its failure is logged and nothing more."""
        init = self._init_pid()
        if init is None:
            return
        process = await asyncio.create_subprocess_exec(
            *("nsenter", "--target", str(init), "--all", "--", *command),
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
        )
        output, _ = await process.communicate()
        if process.returncode:
            text = output.decode(errors="replace").strip()
            log.warning("%s: %s ended with %d: %s", self._spec.name, command, process.returncode, text)

    async def _hand_over(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Plug the cable once the namespaces exist, then wait until init has taken over."""
        process = self._process
        complaints: list[str] = []
        while line := (await asyncio.wait_for(reader.readline(), _READY_S)).decode(errors="replace").strip():
            if line == "ready" and process is not None:
                # The process that holds the namespaces open is not one of the node's own.
                (self._group.path / "outer" / "cgroup.procs").write_text(str(process.pid))
                await plug(self._net, self._spec.link, process.pid)
                writer.write(b"plugged\n")
            elif line == "up":
                return
            else:
                complaints.append(line)
        await self.kill()
        text = complaints[-1] if complaints else "no reason given"
        raise LabError(self._spec.name, f"its namespaces did not come up: {text}", follow="see the lab's log")

    async def _clear(self) -> None:
        await unplug(self._spec.link)
        if not await asyncio.to_thread(self._group.remove):
            log.warning("%s: its control group %s is still busy", self._spec.name, self._group.path)

    def _init_pid(self) -> int | None:
        """Return PID 1 of the node as this machine numbers it: the only child of `unshare`."""
        if self._process is None or self._process.returncode is not None:
            return None
        outer = self._process.pid
        with contextlib.suppress(OSError, ValueError, IndexError):
            return int(Path(f"/proc/{outer}/task/{outer}/children").read_text().split()[0])
        return None

    def _environment(self, system: System) -> dict[str, str]:
        environment = {
            "PATH": "/usr/sbin:/usr/bin:/sbin:/bin",
            "LAB_NAME": system.name,
            "LAB_FOLDER": str(self._folder),
            "LAB_LOWER": ":".join(str(layer) for layer in system.lower),
            "LAB_SHARE": str(system.share),
            "LAB_SYSCTL": str(system.sysctl),
            "LAB_MAC": self._spec.mac,
            "LAB_ADDRESS": self._spec.address,
            "LAB_INIT": " ".join(system.init),
        }
        if system.disk is not None:
            environment["LAB_DISK"] = str(system.disk)
        if system.out is not None:
            environment["LAB_OUT"] = str(system.out)
        if system.faults:
            environment["LAB_FAULTS"] = " ".join(
                f"{name}={'boot' if on else 'lift'}" for name, on in system.faults.items()
            )
        if system.live:
            environment["LAB_LIVE"] = "yes"
        return environment


def _clock_offsets() -> tuple[str, ...]:
    """Make the node's uptime begin now."""
    uptime = int(float(Path("/proc/uptime").read_text().split()[0]))
    return f"--boottime=-{uptime}", f"--monotonic=-{uptime}"
