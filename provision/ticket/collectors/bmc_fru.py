"""Serial numbers and part numbers, as the BMC's inventory has them."""

from __future__ import annotations

from provision.ticket.artifact import File, Json
from provision.ticket.collecting import Case, Collector, Facts, Lane, Outcome, Result


async def _collect(case: Case) -> Result:
    fru = await (await case.bmc.get()).fru()
    if not fru:
        return Result((), Outcome.ERROR, "the BMC's inventory is empty or cannot be read")
    return Result((File("bmc/fru.json", Json(fru)),), facts=Facts(fru=fru))


BMC_FRU = Collector("bmc.fru", Lane.BMC, 120.0, _collect)
