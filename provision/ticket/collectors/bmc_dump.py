"""The vendor's own dump (TSR, Active Health System and the like), where the BMC makes one."""

from __future__ import annotations

from pathlib import PurePath

from provision.ticket.artifact import File, Opaque
from provision.ticket.collecting import Case, Collector, Lane, Outcome, Result

_DUMP_S = 1200.0


async def _collect(case: Case) -> Result:
    if not case.dump:
        return Result((), Outcome.SKIPPED, "not asked for (--no-dump)")
    name, data = await (await case.redfish.get()).support_dump(deadline_s=_DUMP_S)
    # The name came over the network: only its last part, and only what a file name needs.
    safe = "".join(c if c.isalnum() or c in "._-" else "_" for c in PurePath(name).name).strip(".")
    return Result((File(f"bmc/vendor/{safe or 'dump.bin'}", Opaque(data)),))


BMC_DUMP = Collector("bmc.vendor-dump", Lane.REDFISH, _DUMP_S + 120.0, _collect)
