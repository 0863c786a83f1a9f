"""Every sensor, with its thresholds."""

from __future__ import annotations

from provision.ticket.artifact import File, Json
from provision.ticket.collecting import Case, Collector, Lane, Result


async def _collect(case: Case) -> Result:
    readings = await (await case.bmc.get()).sensors()
    return Result((File("bmc/sensors.json", Json(readings)),))


BMC_SENSORS = Collector("bmc.sensors", Lane.BMC, 180.0, _collect)
