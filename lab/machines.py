"""The machines behind the BMCs, each of its rack's kind: namespaces, QEMU, or imagined."""

from __future__ import annotations

import asyncio

import aiohttp

from lab.bmc import LightChassis
from lab.chassis import Chassis
from lab.errors import BadRequest
from lab.late import LateChassis, QemuHouse
from lab.nodes.boot_service import BootService
from lab.nodes.chassis import NamespaceChassis
from lab.nodes.clock import TimeServer
from lab.nodes.faults import LIMITS, NodeFault
from lab.nodes.house import House, build_house
from lab.nodes.proxy import PackageProxy
from lab.qemu import Fault as QemuFault
from lab.spec import CLOCK_PORT, MAAS_PORT, PROXY_PORT, LabNet, LabPaths, NodeSpec, RackKind, cache_folder

# What a QEMU node calls the same trouble.
_QEMU_NAMES = {NodeFault.SSH_DEAD: QemuFault.NO_SSH}


class Machines:
    """Makes machines; what a kind of machine shares is built with the first one of it."""

    def __init__(self, net: LabNet, paths: LabPaths, session: aiohttp.ClientSession) -> None:
        self._net = net
        self._paths = paths
        self._session = session
        self._maas_root = f"http://{net.maas_host}:{MAAS_PORT}"
        self._house: House | None = None
        self._proxy: PackageProxy | None = None
        self._clock = TimeServer()
        self._qemu = QemuHouse(cache_folder(), paths.nodes, self._maas_root)
        self._made: list[NamespaceChassis | LateChassis] = []

    async def make(self, spec: NodeSpec) -> Chassis:
        """Return the machine of one node. Raises LabError when what it shares cannot be built."""
        if spec.rack is RackKind.LIGHT:
            return LightChassis(name=spec.name, serial=spec.serial, mac=spec.mac)
        machine = (
            LateChassis(spec, self._qemu)
            if spec.rack is RackKind.REAL
            else NamespaceChassis(
                spec, await self._namespace_house(), BootService(self._session, self._maas_root, spec.mac)
            )
        )
        self._made.append(machine)
        return machine

    async def close(self) -> None:
        """Cut all power; disks stay."""
        await asyncio.gather(*(machine.close() for machine in self._made))
        await self._qemu.close()
        self._clock.close()
        if self._proxy is not None:
            await self._proxy.close()

    async def _namespace_house(self) -> House:
        if self._house is None:
            self._house = await asyncio.to_thread(build_house, self._net, self._paths)
            self._proxy = PackageProxy(self._house.archive, cache_folder() / "packages", self._session)
            await self._proxy.start(self._net.gateway, PROXY_PORT)
            await self._clock.start(self._net.gateway, CLOCK_PORT)
        return self._house


def set_machine_fault(machine: Chassis, fault: NodeFault, *, on: bool, value: float | None) -> None:
    """Put a fault into a machine or lift it. Raises BadRequest where its kind does not have it."""
    if isinstance(machine, NamespaceChassis):
        if not on:
            machine.faults.clear(fault)
            return
        most = LIMITS.get(fault, 1.0)
        if value is not None and not 0 < value <= most:
            raise BadRequest(
                str(fault), f"its value cannot be {value:g}", follow=f"give a number up to {most:g}, or none"
            )
        machine.faults.set(fault, value or 0.0)
        return
    name = str(_QEMU_NAMES.get(fault, fault))
    if isinstance(machine, LateChassis) and name in set(QemuFault):
        machine.set_fault(QemuFault(name), on=on)
    elif on:
        raise BadRequest(
            machine.name, f"its kind of node has no fault {fault}", follow="choose a node of rack lab"
        )


def machine_faults(machine: Chassis) -> dict[str, float]:
    """Return the faults that a machine carries, by the lab's names."""
    if isinstance(machine, NamespaceChassis):
        return machine.faults.all()
    if isinstance(machine, LateChassis):
        names = {inner: outer for outer, inner in _QEMU_NAMES.items()}
        return {str(names.get(fault, fault)): 1.0 for fault in machine.faults}
    return {}


def installed_system(machine: Chassis) -> str:
    """Return the name of the system on a machine's disk, where the lab knows it."""
    return machine.disk.hostname if isinstance(machine, NamespaceChassis) else ""
