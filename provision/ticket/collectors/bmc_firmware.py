"""What carries firmware, and in which version."""

from __future__ import annotations

from provision.ticket.artifact import File, Json
from provision.ticket.collecting import Case, Collector, Facts, Lane, Result


async def _collect(case: Case) -> Result:
    firmware = await (await case.redfish.get()).firmware()
    return Result((File("bmc/firmware.json", Json(firmware)),), facts=Facts(firmware=firmware))


BMC_FIRMWARE = Collector("bmc.firmware", Lane.REDFISH, 180.0, _collect)
