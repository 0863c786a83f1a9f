"""Everything recorded of this node, and earlier tickets of the same serial under another name."""

from __future__ import annotations

import asyncio

from inventory.records import Event
from provision.ticket.artifact import File, JsonLines
from provision.ticket.collecting import Case, Collector, Lane, Outcome, Result
from provision.ticket.ledger import tickets_of

_MOST = 10_000


async def _collect(case: Case) -> Result:
    events = await asyncio.to_thread(case.access.store.events, node=case.node.name, limit=_MOST)
    tickets = await asyncio.to_thread(tickets_of, case.access.store, case.node)
    own = {event.id for event in events}
    every = sorted([*events, *(event for event in tickets if event.id not in own)], key=lambda e: e.id)
    files = (File("history.jsonl", JsonLines([_told(event) for event in every])),)
    if len(events) == _MOST:
        return Result(files, Outcome.PARTIAL, f"the last {_MOST} events")
    return Result(files)


def _told(event: Event) -> dict[str, object]:
    return {
        "time": event.ts,
        "node": event.node,
        "kind": event.kind,
        "stage": event.stage,
        "actor": event.actor,
        "run": event.run,
        "message": event.message,
        "data": event.data,
    }


HISTORY = Collector("history", Lane.HERE, 60.0, _collect)
