"""Runs collectors: each in its own time, none able to keep the others from what they can get."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field, fields, replace
from datetime import datetime
from enum import StrEnum

from bmc.capability import Bmc, BmcIdentity, FirmwareItem, PowerState
from bmc.errors import BmcError, Unreachable, Unsupported
from bmc.redfish.driver import Redfish
from health.readers.smi import SmiReport
from inventory.errors import InventoryError
from inventory.model import Node
from inventory.model import Profile as HardwareProfile
from provision.access import Access
from provision.errors import ProvisionError
from provision.ticket.artifact import File
from provision.ticket.lines import Host, HostDead, Login
from provision.ticket.redact import Profile

Fru = dict[str, dict[str, str]]


class Outcome(StrEnum):
    """How a collector fared."""

    COMPLETE = "complete"
    PARTIAL = "partial"
    ERROR = "error"  # it was asked for and did not come
    SKIPPED = "skipped"  # there was nothing to ask, or nothing to ask for


class Lane(StrEnum):
    """Whom a collector asks. Lanes run side by side."""

    BMC = "bmc"  # over one login, one after the other: BMCs have few sessions and slow processors
    REDFISH = "redfish"  # the same, over Redfish
    HOST = "host"  # by SSH, a few at once
    HERE = "here"  # our own files and store


@dataclass(frozen=True, slots=True)
class Facts:
    """What the summary is written from, as far as it was found."""

    identity: BmcIdentity | None = None
    power: PowerState | None = None
    fru: Fru | None = None
    firmware: tuple[FirmwareItem, ...] | None = None
    smi: SmiReport | None = None  # of now
    good_smi: SmiReport | None = None  # of the last time that the gate said yes

    def merged(self, other: Facts) -> Facts:
        """Return both; what `other` knows counts."""
        known = {f.name: v for f in fields(other) if (v := getattr(other, f.name)) is not None}
        return replace(self, **known)


@dataclass(frozen=True, slots=True)
class Result:
    """What a collector brings. `reason` says what is missing, where it is not complete."""

    files: tuple[File, ...] = ()
    outcome: Outcome = Outcome.COMPLETE
    reason: str = ""
    facts: Facts = field(default_factory=Facts)


@dataclass(frozen=True, slots=True)
class Report:
    """A line of collection.json."""

    collector: str
    outcome: Outcome
    seconds: float
    reason: str
    files: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Case:
    """One node whose ticket is made, and the ways to it. `dump`: have the BMC make its own dump too."""

    access: Access
    node: Node
    profile: HardwareProfile
    now: datetime
    bmc: Login[Bmc]
    redfish: Login[Redfish]
    host: Host
    audience: Profile = Profile.VENDOR
    dump: bool = True


@dataclass(frozen=True, slots=True)
class Collector:
    """One row of the table. `timeout_s` is all that it may take."""

    id: str
    lane: Lane
    timeout_s: float
    collect: Callable[[Case], Awaitable[Result]]


@dataclass(frozen=True, slots=True)
class Collected:
    """All that the collectors brought, in the order of the table."""

    reports: tuple[Report, ...]
    files: tuple[File, ...]
    facts: Facts


_SIDE_BY_SIDE = 3  # commands on the node at once


async def collect(case: Case, collectors: Sequence[Collector]) -> Collected:
    """Run every collector. Raises nothing of theirs: what fails is in the reports."""
    found: dict[str, tuple[Report, Result]] = {}
    turn = asyncio.Semaphore(_SIDE_BY_SIDE)

    async def one(collector: Collector) -> None:
        found[collector.id] = await _run(case, collector)

    async def lane(rows: Sequence[Collector]) -> None:
        for row in rows:
            await one(row)

    async def taking_turns(row: Collector) -> None:
        async with turn:
            await one(row)

    try:
        async with asyncio.TaskGroup() as group:
            for name in Lane:
                rows = [row for row in collectors if row.lane is name]
                if name is Lane.HOST:
                    for row in rows:
                        group.create_task(taking_turns(row))
                else:
                    group.create_task(lane(rows))
    finally:
        await case.bmc.close()
        await case.redfish.close()
    facts = Facts()
    for row in collectors:
        facts = facts.merged(found[row.id][1].facts)
    return Collected(
        reports=tuple(found[row.id][0] for row in collectors),
        files=tuple(file for row in collectors for file in found[row.id][1].files),
        facts=facts,
    )


async def _run(case: Case, collector: Collector) -> tuple[Report, Result]:
    loop = asyncio.get_running_loop()
    began = loop.time()
    try:
        async with asyncio.timeout(collector.timeout_s) as limit:
            result = await collector.collect(case)
    except Exception as exc:  # noqa: BLE001  a collector that breaks must not cost the ticket
        if limit.expired():
            result = Result((), Outcome.ERROR, f"not done within {collector.timeout_s:g} s")
        else:
            result = _failed(exc)
        if limit.expired() or isinstance(exc, Unreachable):
            await _forget(case, collector.lane)
    files = tuple(file.path for file in result.files)
    took = round(loop.time() - began, 3)
    return Report(collector.id, result.outcome, took, " ".join(result.reason.split()), files), result


async def _forget(case: Case, lane: Lane) -> None:
    """Give up a login in whose middle something broke; the next collector logs in anew."""
    if lane is Lane.BMC:
        await case.bmc.close()
    elif lane is Lane.REDFISH:
        await case.redfish.close()


def _failed(exc: Exception) -> Result:
    if isinstance(exc, Unsupported):
        dead = isinstance(exc.__cause__, Unreachable)  # an answer that it would need to be there for
        reason = f"nothing answers {exc.feature}" if dead else f"the BMC {exc.what()}"
        return Result((), Outcome.SKIPPED, reason)
    if isinstance(exc, BmcError):
        return Result((), Outcome.ERROR, f"BMC {exc.host}: {exc.what()}")
    if isinstance(exc, HostDead):
        return Result((), Outcome.SKIPPED, exc.reason)
    if isinstance(exc, ProvisionError | InventoryError):
        return Result((), Outcome.ERROR, str(exc))
    return Result((), Outcome.ERROR, f"it broke with {type(exc).__name__}: {exc}")
