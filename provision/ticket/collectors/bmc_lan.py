"""How the BMC is on its network."""

from __future__ import annotations

from bmc.capability import Bmc
from bmc.ipmi.driver import Ipmi
from bmc.redfish.driver import Redfish
from provision.ticket.artifact import File, Json
from provision.ticket.collecting import Case, Collector, Lane, Outcome, Result


async def _collect(case: Case) -> Result:
    found = await _settings(await case.bmc.get())
    if found is None:
        return Result((), Outcome.SKIPPED, "the BMC does not tell its network settings")
    return Result((File("bmc/lan.json", Json(found)),))


async def _settings(bmc: Bmc) -> object:
    if isinstance(bmc, Ipmi):
        return await bmc.lan()
    if isinstance(bmc, Redfish):
        path = (await bmc.layout()).manager.link("EthernetInterfaces")
        return [member.data for member in await bmc.client.members(path)] if path else None
    return None


BMC_LAN = Collector("bmc.lan", Lane.BMC, 60.0, _collect)
