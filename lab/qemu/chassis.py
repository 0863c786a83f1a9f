"""A node that is a QEMU machine: power starts and kills a process, the serial port is a socket."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Coroutine
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Any

from lab.chassis import BootOverrideSource, SerialSink
from lab.errors import BadRequest, LabError
from lab.qemu.boot_server import BootServer
from lab.qemu.command import Launch
from lab.qemu.disk import DISK_BYTES
from lab.qemu.machine import Listeners, Machine
from lab.qemu.recipe import Assets

log = logging.getLogger(__name__)

# What the kernel prints when it hands over to user space: late enough for it to take an NMI.
_HANDOVER = b"Run /"


class Fault(StrEnum):
    """What can be wrong with a QEMU node."""

    NO_LEASE = "no-lease"  # from the next power on: link, but no DHCP server
    PXE_LOOP = "pxe-loop"  # its netboot begins again, forever
    DEPLOY_FAILS = "deploy-fails"  # the OS image cannot be fetched
    NO_SSH = "no-ssh"  # from the next power on: nothing leads to the node's sshd
    KERNEL_PANIC = "kernel-panic"  # now, and at every boot, as the kernel hands over


def _nowhere(_data: bytes) -> None:
    """Take the bytes of a serial port that nothing is plugged into."""


@dataclass(eq=False)
class QemuChassis:
    """Implements Chassis and Interruptible (lab.chassis).

    `ssh_host` and `ssh_port` are where this machine listens for the node's sshd while the node has
    power: a connection is taken even before an sshd runs, so wait for its greeting. `state_dir`
    holds the disk, QEMU's messages and its copy of the serial output.
    """

    name: str
    serial: str
    mac: str
    ssh_host: str
    ssh_port: int
    state_dir: Path
    boot_server: BootServer
    assets: Assets
    program: str = "qemu-system-x86_64"
    _sink: SerialSink = field(default=_nowhere, init=False, repr=False)
    _boot_override: BootOverrideSource | None = field(default=None, init=False, repr=False)
    _machine: Machine | None = field(default=None, init=False, repr=False)
    _lock: asyncio.Lock = field(default_factory=asyncio.Lock, init=False, repr=False)
    _faults: set[Fault] = field(default_factory=set, init=False, repr=False)
    _tasks: set[asyncio.Task[None]] = field(default_factory=set, init=False, repr=False)
    _tail: bytes = field(default=b"", init=False, repr=False)

    def __post_init__(self) -> None:
        self.boot_server.register(self.mac, self.ssh_host)

    @property
    def powered(self) -> bool:
        return self._machine is not None and self._machine.alive

    @property
    def pid(self) -> int | None:
        """QEMU's process id while the node has power."""
        return self._machine.pid if self._machine is not None and self._machine.alive else None

    async def power_on(self, *, boot_device: str | None) -> None:
        """Start QEMU; a node that has power keeps running as it is. Raises MachineFailed."""
        async with self._lock:
            if not self.powered:
                await self._stop()  # what is left of a QEMU that ended by itself
                await self._start(boot_device)

    async def power_off(self) -> None:
        async with self._lock:
            await self._stop()

    async def soft_off(self) -> None:
        """Press the power button; what runs in the node may ignore it."""
        async with self._lock:
            if self._machine is not None and self._machine.alive:
                await self._machine.press_power_button()

    async def reset(self, *, boot_device: str | None) -> None:
        async with self._lock:
            if not self.powered:
                raise RuntimeError(f"{self.name} has no power")
            await self._restart(boot_device)

    async def close(self) -> None:
        """Cut the power and wait for everything this chassis started."""
        await self.power_off()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def attach_serial(self, sink: SerialSink) -> None:
        self._sink = sink

    def write_serial(self, data: bytes) -> None:
        if self._machine is not None:
            self._machine.write_serial(data)

    def take_boot_override(self, source: BootOverrideSource) -> None:
        self._boot_override = source

    def send_break(self) -> None:
        if self._machine is not None and self._machine.alive:
            self._in_background(self._machine.send_break())

    def send_nmi(self) -> None:
        if self._machine is not None and self._machine.alive:
            self._in_background(self._machine.send_nmi())

    @property
    def faults(self) -> frozenset[Fault]:
        return frozenset(self._faults)

    def set_fault(self, name: str, on: bool = True) -> None:
        """Put a fault in force, or end it. Raises BadRequest for a name that is none of Fault."""
        try:
            fault = Fault(name)
        except ValueError as exc:
            raise BadRequest(
                self.name, f"no fault {name!r} is known", follow=f"choose from: {', '.join(Fault)}"
            ) from exc
        (self._faults.add if on else self._faults.discard)(fault)
        if fault is Fault.DEPLOY_FAILS:
            self.boot_server.refuse_image(self.mac, on)
        elif fault is Fault.PXE_LOOP:
            self.boot_server.loop(self.mac, on)
        elif fault is Fault.KERNEL_PANIC and on:
            self.send_nmi()

    async def _start(self, boot_device: str | None) -> None:
        self.state_dir.mkdir(parents=True, exist_ok=True)
        self._make_disk()
        self._tail = b""
        machine = Machine(
            self.program,
            self._launch(boot_device),
            self.state_dir,
            Listeners(
                self._said,
                lambda event, data: self._happened(machine, event, data),
                self._ended_by_itself,
            ),
        )
        self._machine = machine
        await machine.start()

    async def _stop(self) -> None:
        # Let go only when it is gone: a caller who is cancelled here leaves it for close() to end.
        if self._machine is not None:
            await self._machine.kill()
            self._machine = None

    async def _restart(self, boot_device: str | None) -> None:
        """Reset in place; where the boot order or the cabling changes, with a new QEMU."""
        assert self._machine is not None
        if self._machine.launch == self._launch(boot_device):
            await self._machine.reset()
        else:
            await self._stop()
            await self._start(boot_device)

    def _launch(self, boot_device: str | None) -> Launch:
        return Launch(
            name=self.name,
            serial=self.serial,
            mac=self.mac,
            disk=self._disk,
            boot_server=self.boot_server.guest_url,
            netboot_first=boot_device != "disk",
            ssh_forward=None if Fault.NO_SSH in self._faults else (self.ssh_host, self.ssh_port),
            lease=Fault.NO_LEASE not in self._faults,
        )

    @property
    def _disk(self) -> Path:
        return self.state_dir / "disk.raw"

    def _make_disk(self) -> None:
        if not self._disk.exists():
            with self._disk.open("wb") as file:
                file.truncate(max(DISK_BYTES, self.assets.image.stat().st_size))

    def _said(self, data: bytes) -> None:
        # Our own copy: QEMU's `logfile` doubles a byte wherever it had to wait for us.
        with (self.state_dir / "serial.log").open("ab") as record:
            record.write(data)
        self._sink(data)
        if Fault.KERNEL_PANIC in self._faults:
            seen = self._tail + data
            self._tail = seen[1 - len(_HANDOVER) :]
            if _HANDOVER in seen:
                self.send_nmi()

    def _happened(self, machine: Machine, event: str, data: dict[str, Any]) -> None:
        if event != "SHUTDOWN":
            return
        if data.get("reason") == "guest-reset":
            self._in_background(self._reboot(machine))
        else:
            self._in_background(self._power_down(machine))

    def _ended_by_itself(self) -> None:
        log.warning("%s: QEMU ended by itself; the node has no power", self.name)

    async def _reboot(self, machine: Machine) -> None:
        """Let the machine start again after it reset itself."""
        async with self._lock:
            if self._machine is machine and machine.alive:
                await self._restart(self._boot_override() if self._boot_override is not None else None)

    async def _power_down(self, machine: Machine) -> None:
        """Take the power from a machine that switched itself off."""
        async with self._lock:
            if self._machine is machine:
                await self._stop()

    def _in_background(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.create_task(self._logged(work), name=f"chassis {self.name}")
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _logged(self, work: Coroutine[Any, Any, None]) -> None:
        try:
            await work
        except LabError as exc:
            log.warning("%s: %s", exc.where, exc)
