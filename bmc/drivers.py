"""Opens the right driver for a BMC and always logs out."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager

from bmc.capability import Bmc, BmcTarget
from bmc.errors import Unreachable, Unsupported
from bmc.ipmi.driver import Ipmi
from bmc.ipmi.endpoint import Endpoint
from bmc.ipmi.session import Session
from bmc.ipmi.sharing import shared_endpoint
from bmc.redfish.client import Client
from bmc.redfish.driver import Redfish
from bmc.redfish.resource import Resource
from bmc.redfish.vendor import Vendor
from bmc.vendors.dell import DELL
from bmc.vendors.generic import GENERIC
from bmc.vendors.hpe import HPE
from bmc.vendors.lenovo import LENOVO
from bmc.vendors.nvidia import NVIDIA
from bmc.vendors.openbmc import OPENBMC
from bmc.vendors.supermicro import SUPERMICRO

# The first that recognises the service root; NVIDIA before OpenBMC, on which it builds.
VENDORS: tuple[Vendor, ...] = (DELL, SUPERMICRO, HPE, LENOVO, NVIDIA, OPENBMC, GENERIC)
IPMI_PROBE_S = 2.0  # "auto" asks this long, then tries Redfish: both dead is under 5 s


def vendor_of(root: Resource) -> Vendor:
    """Return the row of the table that recognises this service root."""
    return next(vendor for vendor in VENDORS if vendor.made(root))


@asynccontextmanager
async def connect(target: BmcTarget, *, endpoint: Endpoint | None = None) -> AsyncIterator[Bmc]:
    """Log in to `target`, yield its driver, log out whatever happens.

    "auto" takes IPMI where the BMC answers it at all, else Redfish; a login that is refused never
    leads to the other protocol. Raises the leaves of `bmc.errors`; a dead BMC is Unreachable in
    under 5 s.
    """
    async with AsyncExitStack() as stack:
        shared = await stack.enter_async_context(shared_endpoint(endpoint))
        if target.protocol == "redfish":
            yield await _redfish(stack, target, shared)
            return
        session = Session(shared, target)
        if target.protocol == "auto" and not await _speaks_ipmi(session):
            yield await _redfish(stack, target, shared)
            return
        await session.open(probed=target.protocol == "auto")
        stack.push_async_callback(session.close)
        yield Ipmi(session, shared)


async def _speaks_ipmi(session: Session) -> bool:
    try:
        await session.probe(IPMI_PROBE_S)
    except (Unreachable, Unsupported) as exc:
        if isinstance(exc, Unreachable) and exc.reason:  # no such name: nothing else will answer
            raise
        return False
    return True


async def _redfish(stack: AsyncExitStack, target: BmcTarget, endpoint: Endpoint) -> Redfish:
    client = Client(target, endpoint.counts)
    await client.open()
    stack.push_async_callback(client.close)
    return Redfish(client, vendor_of(client.root))


@asynccontextmanager
async def connect_redfish(target: BmcTarget, *, endpoint: Endpoint | None = None) -> AsyncIterator[Redfish]:
    """Log in over Redfish whatever `target.protocol` says: for what IPMI does not offer.

    Raises Unsupported where the BMC answers no Redfish.
    """
    async with AsyncExitStack() as stack:
        shared = await stack.enter_async_context(shared_endpoint(endpoint))
        try:
            driver = await _redfish(stack, target, shared)
        except Unreachable as exc:
            raise Unsupported(target.name, target.host, "Redfish") from exc
        yield driver


def _claims(driver: Ipmi | Redfish) -> Bmc:
    """Hold both drivers to the capabilities: mypy refuses what does not fit."""
    return driver
