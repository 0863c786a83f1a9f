"""The event log, decoded, and its records as they came."""

from __future__ import annotations

from bmc.capability import SelEntry
from provision.ticket.artifact import File, Json, Text
from provision.ticket.collecting import Case, Collector, Lane, Result


async def _collect(case: Case) -> Result:
    entries = await (await case.bmc.get()).sel()
    text = "".join(_line(entry) for entry in entries)
    return Result((File("bmc/sel.txt", Text(text.encode())), File("bmc/sel.json", Json(entries))))


def _line(entry: SelEntry) -> str:
    time = f"{entry.time:%Y-%m-%dT%H:%M:%SZ}" if entry.time else "clock not set       "
    ended = "" if entry.asserted else " (deasserted)"
    return f"{entry.record_id:>6}  {time}  {entry.severity:<8}  {entry.sensor}  {entry.event}{ended}\n"


BMC_SEL = Collector("bmc.sel", Lane.BMC, 300.0, _collect)
