"""When power was lost, cut or given back, as far as it went through us."""

from __future__ import annotations

from provision.ticket.artifact import File, Json
from provision.ticket.collecting import Case, Collector, Lane, Result

_KINDS = ("power", "bmc-reset", "deploy-asked")
_MOST = 1000


async def _collect(case: Case) -> Result:
    store = case.access.store
    found = {
        "last_power_loss_at": store.node(case.node.name).last_power_loss_at,
        "events": [
            {"time": event.ts, "kind": event.kind, "actor": event.actor, "message": event.message}
            for event in store.events(node=case.node.name, kinds=_KINDS, limit=_MOST)
        ],
    }
    return Result((File("bmc/power-events.json", Json(found)),))


BMC_POWER_EVENTS = Collector("bmc.power-events", Lane.HERE, 30.0, _collect)
