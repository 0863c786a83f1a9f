"""QEMU nodes of a lab: their boot files and boot server are made when the first one is powered on."""

from __future__ import annotations

import asyncio
import logging
from pathlib import Path

from lab.chassis import BootOverrideSource, SerialSink
from lab.errors import LabError
from lab.qemu import BootServer, QemuChassis, prepare_assets, start_boot_server
from lab.qemu import Fault as QemuFault
from lab.spec import NodeSpec

log = logging.getLogger(__name__)

_MAKING = "\r\nThe lab is making the boot files of its QEMU nodes, once; later starts reuse them.\r\n"


class QemuHouse:
    """What all QEMU nodes of one lab share."""

    def __init__(self, cache: Path, folder: Path, maas_root: str) -> None:
        self._cache = cache
        self._folder = folder
        self._maas_root = maas_root
        self._server: BootServer | None = None
        self._making = asyncio.Lock()

    async def node(self, spec: NodeSpec) -> QemuChassis:
        """Return the machine of one node, making what it boots from first. Raises LabError."""
        async with self._making:
            assets = await prepare_assets(self._cache)
            if self._server is None:
                self._server = await start_boot_server(assets, self._maas_root)
        return QemuChassis(
            name=spec.name,
            serial=spec.serial,
            mac=spec.mac,
            ssh_host=spec.address,
            ssh_port=spec.ssh_port,
            state_dir=self._folder / spec.name,
            boot_server=self._server,
            assets=assets,
        )

    async def close(self) -> None:
        if self._server is not None:
            await self._server.close()


class LateChassis:
    """A QEMU node that becomes one at its first power on; its fans run while that takes time."""

    def __init__(self, spec: NodeSpec, house: QemuHouse) -> None:
        self.name = spec.name
        self.serial = spec.serial
        self.mac = spec.mac
        self._spec = spec
        self._house = house
        self._real: QemuChassis | None = None
        self._starting: asyncio.Task[None] | None = None
        self._sink: SerialSink = lambda _: None
        self._override: BootOverrideSource = lambda: None
        self.faults: set[QemuFault] = set()

    @property
    def powered(self) -> bool:
        starting = self._starting is not None and not self._starting.done()
        return starting or (self._real is not None and self._real.powered)

    async def power_on(self, *, boot_device: str | None) -> None:
        if self.powered:
            return
        if self._real is not None:
            await self._real.power_on(boot_device=boot_device)
        else:
            self._starting = asyncio.create_task(self._become_real(boot_device))

    async def power_off(self) -> None:
        if self._starting is not None:
            self._starting.cancel()
            await asyncio.gather(self._starting, return_exceptions=True)
        if self._real is not None:
            await self._real.power_off()

    async def soft_off(self) -> None:
        if self._real is not None:
            await self._real.soft_off()

    async def reset(self, *, boot_device: str | None) -> None:
        if not self.powered:
            raise RuntimeError(f"{self.name} is off and cannot be reset")
        if self._real is not None and self._real.powered:
            await self._real.reset(boot_device=boot_device)

    def attach_serial(self, sink: SerialSink) -> None:
        self._sink = sink
        if self._real is not None:
            self._real.attach_serial(sink)

    def write_serial(self, data: bytes) -> None:
        if self._real is not None:
            self._real.write_serial(data)

    def take_boot_override(self, source: BootOverrideSource) -> None:
        self._override = source
        if self._real is not None:
            self._real.take_boot_override(source)

    def send_break(self) -> None:
        if self._real is not None:
            self._real.send_break()

    def send_nmi(self) -> None:
        if self._real is not None:
            self._real.send_nmi()

    def set_fault(self, fault: QemuFault, *, on: bool) -> None:
        (self.faults.add if on else self.faults.discard)(fault)
        if self._real is not None:
            self._real.set_fault(str(fault), on)

    async def close(self) -> None:
        await self.power_off()
        if self._real is not None:
            await self._real.close()

    async def _become_real(self, boot_device: str | None) -> None:
        self._sink(_MAKING.encode())
        try:
            real = await self._house.node(self._spec)
        except LabError as exc:
            self._cannot_start(exc)
            return
        self._real = real
        real.attach_serial(self._sink)
        real.take_boot_override(self._override)
        for fault in self.faults:
            real.set_fault(str(fault), True)
        try:
            await real.power_on(boot_device=boot_device)
        except LabError as exc:
            self._cannot_start(exc)

    def _cannot_start(self, exc: LabError) -> None:
        log.error("%s cannot start: %s: %s", self.name, exc.where, exc)
        self._sink(f"\r\n{exc.where}: {exc}\r\n".encode())
