"""What the BMC says it is, and whether its node has power. A wrong cable shows here."""

from __future__ import annotations

from dataclasses import asdict

from provision.ticket.artifact import File, Json
from provision.ticket.collecting import Case, Collector, Facts, Lane, Outcome, Result


async def _collect(case: Case) -> Result:
    bmc = await case.bmc.get()
    identity = await bmc.identity()
    power = await bmc.power_state()
    found = {**asdict(identity), "power": str(power), "serial_in_inventory": case.node.serial}
    files = (File("bmc/identity.json", Json(found)),)
    facts = Facts(identity=identity, power=power)
    expected = case.node.serial
    if expected and identity.serial and expected != identity.serial:
        reason = f"another node's BMC: its serial is {identity.serial}, the inventory says {expected}"
        return Result(files, Outcome.PARTIAL, reason, facts)
    return Result(files, facts=facts)


BMC_IDENTITY = Collector("bmc.identity", Lane.BMC, 60.0, _collect)
