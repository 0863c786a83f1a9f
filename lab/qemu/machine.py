"""One running QEMU, from its start to its death."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import socket
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from lab.qemu.command import SERIAL_ID, Launch, Lines, command_line
from lab.qemu.errors import MachineFailed
from lab.qemu.qmp import EventSink, Qmp

log = logging.getLogger(__name__)

_ANSWER_S = 60.0  # a loaded lab machine is slow; one that needs longer than this is stuck


@dataclass(frozen=True, slots=True)
class Listeners:
    """Who hears of what the machine does; `exit` is called when QEMU ends and nobody killed it."""

    serial: Callable[[bytes], None]
    event: EventSink
    exit: Callable[[], None]


class Machine:
    """Owns one QEMU process. It dies with this process, and is killed by its own process id only."""

    def __init__(self, program: str, launch: Launch, folder: Path, listeners: Listeners) -> None:
        self.launch = launch
        self._program = program
        self._folder = folder
        self._listeners = listeners
        self._qmp = Qmp(launch.name, self._heard)
        self._process: asyncio.subprocess.Process | None = None
        self._serial: asyncio.WriteTransport | None = None
        self._serial_ended = asyncio.Event()
        self._watch: asyncio.Task[None] | None = None
        self._was_reset = asyncio.Event()
        self._killed = False

    @property
    def pid(self) -> int | None:
        return self._process.pid if self._process is not None else None

    @property
    def alive(self) -> bool:
        return self._process is not None and self._process.returncode is None

    async def start(self) -> None:
        """Start QEMU and the machine in it. Raises MachineFailed with QEMU's own last line."""
        serial_ours, serial_theirs = socket.socketpair()
        monitor_ours, monitor_theirs = socket.socketpair()
        # Both ends exist before QEMU does, so its first byte has somewhere to go.
        with contextlib.ExitStack() as theirs:
            theirs.callback(serial_theirs.close)
            theirs.callback(monitor_theirs.close)
            loop = asyncio.get_running_loop()
            self._serial, _ = await loop.create_unix_connection(
                lambda: _SerialLine(self._listeners.serial, self._serial_ended), sock=serial_ours
            )
            reader, writer = await asyncio.open_unix_connection(sock=monitor_ours, limit=1 << 20)
            lines = Lines(serial_theirs.fileno(), monitor_theirs.fileno())
            await self._spawn(lines)
        self._watch = asyncio.create_task(self._await_exit(), name=f"qemu {self.launch.name}")
        try:
            async with asyncio.timeout(_ANSWER_S):
                await self._qmp.connect(reader, writer)
        except (MachineFailed, TimeoutError) as exc:
            writer.close()
            await self.kill()
            raise MachineFailed(
                self.launch.name, f"QEMU did not start: {self._last_line()}", follow=f"read {self._log}"
            ) from exc

    async def kill(self) -> None:
        """End QEMU at once, and return when it is gone."""
        self._killed = True
        if self._process is not None and self._process.returncode is None:
            with contextlib.suppress(ProcessLookupError):
                self._process.kill()
        if self._watch is not None:
            await asyncio.shield(self._watch)
        await self._qmp.close()

    async def reset(self) -> None:
        """Reset the machine and let it run, also when it is paused at the end of a run."""
        self._was_reset.clear()
        await self._command("set-action", reboot="reset")
        await self._command("system_reset")
        try:
            async with asyncio.timeout(_ANSWER_S):
                await self._was_reset.wait()
        except TimeoutError as exc:
            raise MachineFailed(self.launch.name, "QEMU did not reset", follow=f"read {self._log}") from exc
        await self._command("set-action", reboot="shutdown")
        await self._command("cont")

    async def press_power_button(self) -> None:
        await self._command("system_powerdown")

    async def send_nmi(self) -> None:
        await self._command("inject-nmi")

    async def send_break(self) -> None:
        await self._command("chardev-send-break", id=SERIAL_ID)

    def write_serial(self, data: bytes) -> None:
        if self._serial is not None and not self._serial.is_closing():
            self._serial.write(data)

    @property
    def _log(self) -> Path:
        return self._folder / "qemu.log"

    async def _spawn(self, lines: Lines) -> None:
        argv = command_line(self._program, self.launch, lines)
        with self._log.open("ab") as record:
            self._process = await asyncio.create_subprocess_exec(
                *("setpriv", "--pdeathsig", "KILL", "--", *argv),
                stdin=asyncio.subprocess.DEVNULL,
                stdout=record,
                stderr=record,
                pass_fds=(lines.serial_fd, lines.monitor_fd),
                start_new_session=True,
            )

    async def _await_exit(self) -> None:
        assert self._process is not None
        await self._process.wait()
        await self._serial_ended.wait()  # what it wrote last is still on its way to us
        if not self._killed:
            self._listeners.exit()

    async def _command(self, name: str, **arguments: object) -> None:
        try:
            async with asyncio.timeout(_ANSWER_S):
                await self._qmp.execute(name, **arguments)
        except TimeoutError as exc:
            raise MachineFailed(
                self.launch.name, f"QEMU does not answer {name}", follow=f"read {self._log}"
            ) from exc

    def _heard(self, event: str, data: dict[str, object]) -> None:
        if event == "RESET":
            self._was_reset.set()
        self._listeners.event(event, data)

    def _last_line(self) -> str:
        lines = self._log.read_text(errors="replace").splitlines()
        return lines[-1] if lines else "it said nothing"


class _SerialLine(asyncio.Protocol):
    """Our end of the machine's first serial port."""

    def __init__(self, sink: Callable[[bytes], None], ended: asyncio.Event) -> None:
        self._sink = sink
        self._ended = ended

    def data_received(self, data: bytes) -> None:
        self._sink(data)

    def connection_lost(self, _exc: Exception | None) -> None:
        """QEMU ended, perhaps with typed bytes unread (a reset): its exit status says more."""
        self._ended.set()
