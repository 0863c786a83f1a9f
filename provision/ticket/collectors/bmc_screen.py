"""The screen as the BMC sees it now. A picture cannot be redacted, so only the internal profile has it."""

from __future__ import annotations

from provision.ticket.artifact import File, Opaque
from provision.ticket.collecting import Case, Collector, Lane, Outcome, Result
from provision.ticket.redact import Profile


async def _collect(case: Case) -> Result:
    if case.audience is Profile.VENDOR:
        return Result((), Outcome.SKIPPED, "a picture cannot be redacted; --profile internal has it")
    shot = await (await case.redfish.get()).screenshot()
    suffix = "png" if shot.media_type == "image/png" else "bin"
    return Result((File(f"console/screen-now.{suffix}", Opaque(shot.data)),))


BMC_SCREEN = Collector("bmc.screen", Lane.REDFISH, 120.0, _collect)
