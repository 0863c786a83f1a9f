"""One namespace node behind its BMC: power, firmware, network boot, installed system."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Coroutine
from typing import Any

from lab.chassis import BootOverrideSource, SerialSink
from lab.errors import LabError
from lab.nodes import firmware
from lab.nodes.boot_service import BootService, Intent
from lab.nodes.cgroup import Group
from lab.nodes.devices import Devices
from lab.nodes.disk import Disk
from lab.nodes.faults import INSIDE, Cure, NodeFault, NodeFaults
from lab.nodes.guest import Ending, Guest, System
from lab.nodes.hardware import SICK_GPU, SWITCH_BUSES, Hardware
from lab.nodes.house import House
from lab.nodes.kernel import (
    KernelLog,
    kernel_messages,
    loader_text,
    lost_gpu_message,
    lost_gpus,
    nmi_messages,
    panic_messages,
    sxid_messages,
    xid_message,
)
from lab.nodes.live import Live
from lab.nodes.serial import SerialPort
from lab.nodes.share import Share
from lab.spec import NodeSpec

log = logging.getLogger(__name__)

_SYSTEMD = ("/lib/systemd/systemd", "--show-status=1")
# What the system says when it has done something that takes faults away.
_CURES = {"gpu-reset": Cure.GPU_RESET, "fabric-manager": Cure.SERVICE_START}
_CMDLINE = "BOOT_IMAGE=/boot/vmlinuz root=LABEL=labroot ro console=tty0 console=ttyS0,115200n8"


class NamespaceChassis:
    """A machine made of processes. It is powered while its task runs."""

    def __init__(self, spec: NodeSpec, house: House, service: BootService) -> None:
        self.spec = spec
        self.name = spec.name
        self.serial = spec.serial
        self.mac = spec.mac
        self._house = house
        self._service = service
        self._folder = house.folder / spec.name
        self._folder.mkdir(parents=True, exist_ok=True)
        self._share = Share(self._folder / "share", spec)
        self.faults = NodeFaults(self._folder / "share" / "faults")
        self.faults.on_change = self._fault_changed
        self._hardware = Hardware(self._folder / "share", self.faults)
        self.disk = Disk(self._folder / "disk.img")
        self._port = SerialPort(self._folder / "serial.log")
        self._guest = Guest(spec, house.net, Group(house.cgroup / spec.name), self._folder / "mounts")
        self._machine: asyncio.Task[None] | None = None
        self._override: BootOverrideSource = lambda: None
        self._token = ""  # of this boot, where it went by MAAS
        self._devices = Devices(self._share.folder, self._heard)
        self._kernel: KernelLog | None = None
        self._panicked = False
        self._installed_runs = False
        self._background: set[asyncio.Task[None]] = set()

    @property
    def powered(self) -> bool:
        return self._machine is not None and not self._machine.done()

    async def power_on(self, *, boot_device: str | None) -> None:
        if not self.powered:
            self._machine = asyncio.create_task(self._run(boot_device), name=f"machine {self.name}")
            self._machine.add_done_callback(self._stopped)

    async def power_off(self) -> None:
        machine, self._machine = self._machine, None
        self.faults.cure(Cure.POWER_CUT)
        if machine is not None:
            machine.cancel()
            await asyncio.gather(machine, return_exceptions=True)
        await self._guest.kill()

    async def soft_off(self) -> None:
        self._guest.ask_to_stop()

    async def reset(self, *, boot_device: str | None) -> None:
        if not self.powered:
            raise RuntimeError(f"{self.name} is off and cannot be reset")
        await self.power_off()
        await self.power_on(boot_device=boot_device)

    def attach_serial(self, sink: SerialSink) -> None:
        self._port.attach(sink)

    def write_serial(self, data: bytes) -> None:
        if self.powered:
            self._port.typed(data)

    def take_boot_override(self, source: BootOverrideSource) -> None:
        self._override = source

    def send_break(self) -> None:
        """The node's kernel takes no commands from its serial line."""

    def send_nmi(self) -> None:
        self._panic(nmi_messages())

    async def close(self) -> None:
        """Cut the power and let go of the serial line; the disk stays."""
        await self.power_off()
        for task in self._background:
            task.cancel()
        await asyncio.gather(*self._background, return_exceptions=True)
        self._port.close()
        self._devices.close()

    async def _run(self, boot_device: str | None) -> None:
        """Boot until the system powers off. Ends early only by cancellation: a cut of power."""
        try:
            while await self._boot(boot_device) is Ending.REBOOT:
                boot_device = self._override()
        except LabError as exc:
            log.exception("%s stops", self.name)
            self._port.emit(f"\n{exc}\n")
        finally:
            await self._guest.kill()

    def _stopped(self, machine: asyncio.Task[None]) -> None:
        if not machine.cancelled() and (exc := machine.exception()) is not None:
            log.error("%s: the machine stopped by a mistake of the lab", self.name, exc_info=exc)

    async def _boot(self, boot_device: str | None) -> Ending:
        emit, pace = self._port.emit, self._house.pace
        self._port.reset()
        self._token = ""
        await firmware.self_test(emit, self.spec, pace)
        if boot_device == "bios":
            emit(firmware.setup_screen(self.spec))
            await _for_ever()
        order = ("disk", "pxe") if boot_device == "disk" else ("pxe", "disk")
        while True:
            for device in order:
                tried = await (self._boot_network() if device == "pxe" else self._boot_disk())
                if tried is not None:
                    return tried
            await firmware.no_boot_device(emit, pace)

    async def _boot_network(self) -> Ending | None:
        """Return how what MAAS ordered ended, or None when the next device is to be tried."""
        lease = not self.faults.active(NodeFault.NO_LEASE)
        order = await firmware.network_boot(
            self._port.emit, self.spec, self._service, self._house.pace, lease=lease
        )
        if order is None:
            return None
        if self.faults.active(NodeFault.PXE_LOOP):
            self._port.emit("Boot image returned to firmware. Next boot option: network\n\n")
            await asyncio.sleep(self._house.pace.retry)
            return Ending.REBOOT
        self._token = order.token
        if order.intent is Intent.LOCAL:
            return None
        if order.intent is Intent.NOTHING:
            self._port.emit("MAAS has nothing for this machine, powering off\n")
            return Ending.POWEROFF
        await self._panic_if_told()
        kernel = self._start_kernel()
        live = Live(self.spec, self._house, self._guest, self._share, self._service, kernel)
        ending = await live.carry_out(order, self.disk, self._port)
        return ending if ending is not None else await _for_ever()

    async def _boot_disk(self) -> Ending | None:
        if not self.disk.installed:
            return None
        self._port.emit(loader_text())
        await self._panic_if_told()
        self._share.prepare(_CMDLINE)
        self.faults.cure(Cure.BOOT)
        lost = int(self.faults.value(NodeFault.GPU_MISSING))
        self._hardware.count(lost_gpus(lost))
        self._hardware.refresh()
        kernel = self._start_kernel()
        kernel.say(*kernel_messages(self.spec, _CMDLINE, lost))
        system = System(
            name=self.disk.hostname,
            lower=self._house.layers,
            share=self._share.folder,
            sysctl=self._house.sysctl,
            init=_SYSTEMD,
            disk=self.disk.image,
            faults={str(fault): self.faults.active(fault) for fault in INSIDE},
        )
        self._installed_runs = True  # before it starts: on a busy machine it is up before start() returns
        try:
            await self._guest.start(system, self._port.terminal)
            ending = await self._guest.wait()
        finally:
            self._installed_runs = False
        if ending is Ending.DIED:
            if not self._panicked:
                kernel.say("Kernel panic - not syncing: Attempted to kill init! exitcode=0x00000009", level=0)
            await _for_ever()
        return ending

    def _start_kernel(self) -> KernelLog:
        self._panicked = False
        self._kernel = KernelLog(self._port.emit, self._devices, self._share.kernel_log)
        return self._kernel

    def _panic(self, texts: list[str]) -> None:
        """Stop the system that runs, if one does, where a kernel would: powered, and dead."""
        if self._guest.root is not None and self._kernel is not None:
            self._panicked = True
            self._guest.stop_dead()
            self._kernel.say(*texts, level=0)

    async def _report_up(self) -> None:
        """Tell MAAS that the installed system is up, and where."""
        token = self._token or self._share.token
        await self._service.report(
            token, "boot", "finished", message="the system is up", address=self.spec.address
        )

    async def _panic_if_told(self) -> None:
        if not self.faults.active(NodeFault.KERNEL_PANIC):
            return
        self._start_kernel().say(*kernel_messages(self.spec, _CMDLINE)[:5], *panic_messages())
        await _for_ever()

    def _heard(self, word: str) -> None:
        """Act on what the installed system says: the end of its boot, a load on its GPUs, a cure."""
        if not self._installed_runs:
            return
        if word == "booted":
            self._in_background(self._report_up())
        elif word in _CURES:
            self.faults.cure(_CURES[word])
        elif word == "gpus" and self.faults.active(NodeFault.DIES_IN_GATE):
            self._in_background(self.power_off())  # too much for a power supply that is about to die

    def _fault_changed(self, fault: NodeFault) -> None:
        """Carry a fault into the system that runs, where it has a place there."""
        on = self.faults.active(fault)
        self._hardware.refresh()
        if self._guest.root is None:
            return
        if fault in INSIDE:
            self._in_background(self._guest.run("/usr/lib/lab/fault", str(fault), "set" if on else "clear"))
        elif fault is NodeFault.KERNEL_PANIC and on:
            self._panic(panic_messages())
        elif on and self._kernel is not None:
            self._kernel.say(*self._complaints(fault), level=3)

    def _complaints(self, fault: NodeFault) -> list[str]:
        """Return what the driver logs when a fault sets in, if anything."""
        value = int(self.faults.value(fault))
        if fault is NodeFault.GPU_MISSING:
            return [lost_gpu_message(bus) for bus in lost_gpus(value)]
        if fault is NodeFault.SXID:
            return sxid_messages(SWITCH_BUSES[2], value)
        codes = {NodeFault.XID: value, NodeFault.GPU_LOST: 79, NodeFault.GPU_REMAP_PENDING: 63}
        codes |= {NodeFault.GPU_REMAP_FAILED: 64, NodeFault.GPU_ECC: 48}
        return [xid_message(SICK_GPU, codes[fault])] if fault in codes else []

    def _in_background(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.create_task(work)
        self._background.add(task)
        task.add_done_callback(self._background.discard)


async def _for_ever() -> Ending:
    """Hang, as a machine does that only a cut of power brings back."""
    await asyncio.Event().wait()
    raise AssertionError
