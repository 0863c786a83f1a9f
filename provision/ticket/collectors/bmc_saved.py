"""What was read from the BMC earlier, before power was cut and at failures: all there is once it is dead."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

from provision.ticket.artifact import Artifact, File, Json, Text
from provision.ticket.collecting import Case, Collector, Lane, Outcome, Result

_MOST = 3


async def _collect(case: Case) -> Result:
    paths = await asyncio.to_thread(_newest, case.access.settings.state, case.node.name)
    if not paths:
        return Result((), Outcome.SKIPPED, "nothing was saved before")
    return Result(tuple(File(f"bmc/earlier/{path.name}", _read(path)) for path in paths))


def _newest(state: Path, node: str) -> list[Path]:
    found = [*state.glob(f"captures/{node}/bmc-*.json"), *state.glob(f"runs/*/{node}/bmc-*.json")]
    by_time = {path.name: path for path in found}  # the name is the time
    return [by_time[name] for name in sorted(by_time)[-_MOST:]]


def _read(path: Path) -> Artifact:
    data = path.read_bytes()
    try:
        return Json(json.loads(data))
    except ValueError:
        return Text(data)


BMC_SAVED = Collector("bmc.earlier", Lane.HERE, 30.0, _collect)
