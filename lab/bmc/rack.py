"""A rack of BMCs in one process, each on its own address."""

from __future__ import annotations

import asyncio
import difflib
from collections.abc import Iterator, Mapping, Sequence
from typing import TypeVar

from lab.bmc.bmc import Bmc
from lab.bmc.endpoint import Endpoint
from lab.bmc.redfish.endpoint import RedfishEndpoint
from lab.bmc.spec import BmcSpec
from lab.errors import BadRequest, NoService

Found = TypeVar("Found")


class Rack:
    """The running BMCs by the name of their machine."""

    def __init__(self) -> None:
        self._endpoints: dict[str, Endpoint] = {}
        self._redfish: dict[str, RedfishEndpoint] = {}

    def __iter__(self) -> Iterator[Bmc]:
        return (endpoint.bmc for endpoint in self._endpoints.values())

    def __len__(self) -> int:
        return len(self._endpoints)

    def bmc(self, name: str) -> Bmc:
        """Return one BMC. Raises BadRequest, naming the nearest, for an unknown name."""
        return _find(name, self._endpoints).bmc

    def redfish(self, name: str) -> RedfishEndpoint:
        """Return the Redfish side of a BMC. Raises BadRequest where its spec has none."""
        return _find(name, self._redfish)

    async def add(self, spec: BmcSpec) -> Bmc:
        """Start one more BMC. Raises NoService where its address cannot be had."""
        if spec.chassis.name in self._endpoints:
            raise BadRequest("rack of BMCs", f"{spec.chassis.name} stands twice", follow="give each a name")
        endpoint = Endpoint(Bmc(spec))
        loop = asyncio.get_running_loop()
        try:
            await loop.create_datagram_endpoint(lambda: endpoint, local_addr=(spec.host, spec.port))
        except OSError as exc:
            await endpoint.bmc.close()
            raise _taken(spec, spec.port, "udp") from exc
        self._endpoints[spec.chassis.name] = endpoint
        if spec.redfish_port is not None:
            redfish = RedfishEndpoint(endpoint.bmc)
            try:
                await redfish.start()
            except OSError as exc:
                raise _taken(spec, spec.redfish_port, "tcp") from exc
            self._redfish[spec.chassis.name] = redfish
        return endpoint.bmc

    async def close(self) -> None:
        """Stop all; the machines stay as they are."""
        for redfish in self._redfish.values():
            await redfish.close()
        self._redfish.clear()
        for endpoint in self._endpoints.values():
            await endpoint.close()
            await endpoint.bmc.close()
        self._endpoints.clear()


async def start_rack(specs: Sequence[BmcSpec]) -> Rack:
    """Start a BMC for each spec, all or none. Raises NoService where an address cannot be had."""
    rack = Rack()
    try:
        for spec in specs:
            await rack.add(spec)
    except BaseException:
        await rack.close()
        raise
    return rack


def _find(name: str, known: Mapping[str, Found]) -> Found:
    if name in known:
        return known[name]
    near = difflib.get_close_matches(name, known, n=1)
    hint = f"did you mean {near[0]}?" if near else "see the rack's list of nodes"
    raise BadRequest("rack of BMCs", f"no BMC is called {name!r}", follow=hint)


def _taken(spec: BmcSpec, port: int, protocol: str) -> NoService:
    option = "-lunp" if protocol == "udp" else "-ltnp"
    return NoService(
        f"BMC of {spec.chassis.name}",
        f"cannot listen on {spec.host}:{port}/{protocol}",
        follow=f"find what holds it: ss {option} 'sport = :{port}'",
    )
