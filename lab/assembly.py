"""One lab put together: nodes, their BMCs, MAAS, and faults in any of them."""

from __future__ import annotations

import asyncio
import difflib
from collections.abc import Iterable
from typing import Any

import aiohttp
from ClusterShell.NodeSet import RESOLVER_NOGROUP, NodeSet, NodeSetException

from lab.bmc import BmcSpec, BmcUser, Rack, start_rack
from lab.chassis import Chassis
from lab.enlist import enlist
from lab.errors import BadRequest, NoService
from lab.faults import CATALOGUE, Carrier, FaultName, find_fault
from lab.maas import (
    IpmiPower,
    MaasConfig,
    MaasServer,
    SubnetSpec,
    UnknownMachine,
    User,
    start_maas,
)
from lab.machines import Machines, installed_system, machine_faults, set_machine_fault
from lab.nodes.faults import NodeFault
from lab.plan import Plan
from lab.secrets import LabSecrets
from lab.spec import BMC_USER, MAAS_PORT, REDFISH_PORT, LabNet, LabPaths, NodeSpec, RackKind

# Room for a QEMU node on a busy machine; MAAS itself waits longer.
_NODE_TIMEOUT_S = 300.0


class Lab:
    """A running lab. All methods run on one event loop."""

    def __init__(self, net: LabNet, paths: LabPaths, secrets: LabSecrets) -> None:
        self._net = net
        self._paths = paths
        self._secrets = secrets
        self._plan = Plan(0, 0, 0)
        self._specs: dict[str, NodeSpec] = {}
        self._chassis: dict[str, Chassis] = {}
        self._service_faults: dict[str, float] = {}
        self._machine_faults: dict[str, dict[str, float]] = {}
        self._rack = Rack()
        self._machines: Machines | None = None
        self._maas: MaasServer | None = None
        self._session: aiohttp.ClientSession | None = None
        self._growing = asyncio.Lock()

    @property
    def plan(self) -> Plan:
        return self._plan

    async def start(self, plan: Plan) -> None:
        """Bring everything up. Raises LabError and leaves nothing running when a part does not come up."""
        self._session = aiohttp.ClientSession()
        self._machines = Machines(self._net, self._paths, self._session)
        self._rack = await start_rack([])
        config = MaasConfig(
            host=self._net.maas_host,
            port=MAAS_PORT,
            users=(User(api_key=self._secrets.maas_key),),
            ssh_keys=(self._secrets.public_key,),
            subnets=(SubnetSpec(self._net.subnet, "lab", self._net.gateway),),
            state_file=self._paths.state / "maas.json",
            node_timeout=_NODE_TIMEOUT_S,
        )
        try:
            self._maas = await start_maas(config, IpmiPower())
        except OSError as exc:
            raise NoService(
                "MAAS",
                f"cannot listen on {self._net.maas_host}:{MAAS_PORT}",
                follow=f"find what holds it: ss -ltnp 'sport = :{MAAS_PORT}'",
            ) from exc
        await self.grow(plan)

    async def grow(self, plan: Plan) -> None:
        """Add the nodes of `plan` that are not there yet."""
        async with self._growing:
            for spec in plan.specs(self._net):
                if spec.name not in self._specs:
                    await self._add(spec)
            light = [spec for spec in self._specs.values() if spec.rack is RackKind.LIGHT]
            if len(light) > self._plan.light and self._session is not None:
                await enlist(self._session, self._net, self._secrets, light)
            self._plan = self._plan.with_all_of(plan)

    async def close(self) -> None:
        """Cut all power and stop all services; disks stay."""
        if self._machines is not None:
            await self._machines.close()
        await self._rack.close()
        if self._maas is not None:
            await self._maas.close()
        if self._session is not None:
            await self._session.close()

    def status(self) -> dict[str, Any]:
        """Describe every node and the services."""
        return {
            "schema": 1,
            "net": f"127.{self._net.octet}",
            "maas": self._net.maas_url,
            "faults": self._service_faults,
            "nodes": [self._describe(spec) for spec in self._specs.values()],
        }

    def set_fault(self, name: str, nodes: str | None, value: float | None) -> list[str]:
        """Put a fault in force; return whom it struck. Raises BadRequest."""
        fault = find_fault(name)
        if fault.carrier is Carrier.MAAS:
            self._set_service_fault(fault, on=True, value=value)
            return ["maas"]
        struck = self._select(nodes, fault.name)
        for node in struck:
            self._set_node_fault(fault, node, on=True, value=value)
        return struck

    def clear_faults(self, name: str | None, nodes: str | None) -> list[str]:
        """Lift one fault, or all, from some nodes or from everything. Raises BadRequest."""
        faults = [find_fault(name)] if name else list(CATALOGUE.values())
        everything = nodes is None
        lifted = list(self._specs) if everything else self._select(nodes, "--clear")
        for fault in faults:
            if fault.carrier is Carrier.MAAS:
                if everything or name:
                    self._set_service_fault(fault, on=False, value=None)
                continue
            for node in lifted:
                self._set_node_fault(fault, node, on=False, value=None)
        return lifted

    async def _add(self, spec: NodeSpec) -> None:
        assert self._machines is not None
        chassis = await self._machines.make(spec)
        user = BmcUser(BMC_USER, self._secrets.bmc_password)
        # Light nodes are for numbers: a TLS endpoint each would be most of what they cost.
        redfish_port = None if spec.rack is RackKind.LIGHT else REDFISH_PORT
        await self._rack.add(
            BmcSpec(
                chassis=chassis,
                host=spec.bmc_host,
                port=spec.bmc_port,
                users=(user,),
                redfish_port=redfish_port,
            )
        )
        self._specs[spec.name] = spec
        self._chassis[spec.name] = chassis

    def _set_service_fault(self, fault: FaultName, *, on: bool, value: float | None) -> None:
        assert self._maas is not None
        self._maas.set_fault(fault.inner, on=on, value=value)
        if on:
            self._service_faults[fault.name] = value or 1.0
        else:
            self._service_faults.pop(fault.name, None)

    def _set_node_fault(self, fault: FaultName, node: str, *, on: bool, value: float | None) -> None:
        if fault.carrier is Carrier.BMC:
            default: float = 5.0 if fault.inner == "slow" else True
            self._rack.bmc(node).set_fault(fault.inner, (value or default) if on else False)
        elif fault.carrier is Carrier.MACHINE:
            self._set_machine_fault(fault, node, on=on)
        else:
            set_machine_fault(self._chassis[node], NodeFault(fault.inner), on=on, value=value)

    def _set_machine_fault(self, fault: FaultName, node: str, *, on: bool) -> None:
        assert self._maas is not None
        own = self._machine_faults.setdefault(node, {})
        if not on and fault.name not in own:
            return
        try:
            self._maas.set_fault(fault.inner, machine=node, on=on)
        except UnknownMachine as exc:
            if not on:
                own.pop(fault.name)
                return
            raise BadRequest(
                node, "MAAS has no machine of this name yet", follow="enlist it first, then set the fault"
            ) from exc
        if on:
            own[fault.name] = 1.0
        else:
            own.pop(fault.name)

    def _select(self, nodes: str | None, what: str) -> list[str]:
        if not nodes:
            raise BadRequest(what, "names no node", follow="add --nodes, for example --nodes lab-n03")
        if nodes == "@*":
            return list(self._specs)
        if nodes.startswith("@"):
            return self._of_rack(nodes[1:])
        try:
            names = list(NodeSet(nodes, resolver=RESOLVER_NOGROUP))
        except NodeSetException as exc:
            raise BadRequest(
                "--nodes", f"{nodes!r} is no node set", follow="write it as 'lab-n[01-03]'"
            ) from exc
        for name in names:
            if name not in self._specs:
                near = difflib.get_close_matches(name, self._specs, n=1)
                hint = f"did you mean {near[0]}?" if near else "see lab.status for the names"
                raise BadRequest(name, "no node of this name is in the lab", follow=hint)
        return [str(name) for name in names]

    def _of_rack(self, rack: str) -> list[str]:
        found = [spec.name for spec in self._specs.values() if spec.rack == rack]
        if not found:
            raise BadRequest(
                f"@{rack}", "no node of such a rack is up", follow="see lab.status for the racks"
            )
        return found

    def _describe(self, spec: NodeSpec) -> dict[str, Any]:
        chassis = self._chassis[spec.name]
        bmc = self._rack.bmc(spec.name)
        faults = {_outer(Carrier.BMC, name): value for name, value in bmc.faults.all().items()}
        return {
            "name": spec.name,
            "rack": str(spec.rack),
            "power": "on" if chassis.powered else "off",
            "installed": installed_system(chassis),
            "bmc": f"{spec.bmc_host}:{spec.bmc_port}",
            "address": f"{spec.address}:{spec.ssh_port}",
            "mac": spec.mac,
            "serial": spec.serial,
            "faults": faults | machine_faults(chassis) | self._machine_faults.get(spec.name, {}),
        }


def _outer(carrier: Carrier, inner: str) -> str:
    return next(
        (fault.name for fault in CATALOGUE.values() if fault.carrier is carrier and fault.inner == inner),
        inner,
    )


def fold(names: Iterable[str]) -> str:
    """Write names as one node set."""
    return str(NodeSet.fromlist(list(names), resolver=RESOLVER_NOGROUP))
