"""Waiting for MAAS: by status and events, patient with a MAAS that is away for a while."""

from __future__ import annotations

import math
from collections.abc import Awaitable, Callable
from typing import TypeVar

from provision.errors import NodeFailed, StageTimeout
from provision.maas.client import MaasClient
from provision.maas.errors import (
    MaasConflict,
    MaasError,
    MaasNoRack,
    MaasUnavailable,
    MaasUncertain,
    MaasUnreachable,
)
from provision.maas.model import Machine, MachineStatus, ResultKind
from provision.maas.reasons import failure_reason
from provision.stages.boot_watch import BootWatch
from provision.stages.job import NodeJob
from provision.waiting import Seen, until

T = TypeVar("T")

# MAAS itself, not the machine, is in the way: it restarts, is overloaded, or has no rack controller.
AWAY = (MaasUnreachable, MaasUnavailable, MaasNoRack)
_ABORTABLE = frozenset({MachineStatus.COMMISSIONING, MachineStatus.DEPLOYING})


async def machine_of(job: NodeJob) -> Machine:
    """Return the node's machine as MAAS sees it now. Raises MaasError, and NodeFailed when MAAS lost it."""
    return await _machine(job, job.state.system_id)


async def _machine(job: NodeJob, system_id: str | None) -> Machine:
    found = await job.maas.machine(system_id) if system_id else None
    if found is None:
        reason = f"MAAS no longer has machine {system_id or '(never enlisted)'}"
        raise NodeFailed(
            "enlisted", "maas-mismatch", reason, why="it was deleted there, or MAAS was restored"
        )
    return found


class Patience:
    """How long this stage goes on waiting for a MAAS that does not answer, and what it says meanwhile."""

    def __init__(self, job: NodeJob) -> None:
        self._job = job
        self._since: float | None = None

    def away(self, error: MaasError) -> None:
        """Note once that MAAS is away. Raises `error` where it has been for longer than `maas` allows."""
        now = self._job.pace.clock()
        if self._since is None:
            self._since = now
            self._job.note(f"waiting for MAAS: {error}")
        elif now - self._since > self._job.deadline("maas"):
            raise error

    def answers(self) -> None:
        """Note once that MAAS is back."""
        if self._since is not None:
            away = self._job.pace.clock() - self._since
            self._job.note(f"MAAS answers again after {away:.0f} s")
        self._since = None


async def patiently(job: NodeJob, ask: Callable[[], Awaitable[T]]) -> T:
    """Ask MAAS something that changes nothing until it answers. Raises MaasError, NodeFailed."""
    patience = Patience(job)

    async def look() -> Seen[tuple[T]]:
        try:
            answer = await ask()
        except AWAY as error:
            patience.away(error)
            return Seen(None, str(error), counts=False)
        patience.answers()
        return Seen((answer,), "")

    return (await until(look, waited_for="MAAS", deadline_s=math.inf, pace=job.pace))[0]


async def carry_out(
    job: NodeJob, what: str, act: Callable[[], Awaitable[Machine]], *, undone: frozenset[MachineStatus]
) -> None:
    """Have MAAS do something to the node's machine, once. Raises MaasError, NodeFailed.

    `undone` are the statuses in which it has not been done. Where the answer was lost the machine
    is read before anything is repeated; a MAAS that is away or overloaded is waited for.
    """
    patience = Patience(job)
    pause = job.pace.first
    lost = False
    while True:
        try:
            await act()
        except MaasUncertain as error:
            job.note(f"{what}: {error}; looking before asking again")
            lost = True
        except AWAY as error:
            patience.away(error)
        except MaasConflict:
            # After a lost answer this is MAAS saying that it is already at it.
            if not lost:
                raise
        else:
            patience.answers()
            return
        if lost:
            machine = await patiently(job, lambda: machine_of(job))
            if machine.status not in undone:
                job.note(f"{what}: MAAS had done it, status {machine.status_name}")
                return
        await job.pace.sleep(pause)
        pause = min(pause * 1.5, job.pace.longest)


async def settle(
    job: NodeJob,
    *,
    stage: str,
    wanted: frozenset[MachineStatus],
    failed: frozenset[MachineStatus],
    watch: BootWatch | None = None,
) -> Machine:
    """Wait until the machine's status is one of `wanted`.

    Raises NodeFailed with MAAS's own reason when it is one of `failed`, when the console shows a
    cause that waiting will not cure, or when the deadline of `stage` passes. A MAAS that does not
    answer is waited for, and said; that time does not count, for the machine too waits for MAAS.
    """
    patience = Patience(job)
    system_id = job.state.system_id

    async def look() -> Seen[Machine]:
        if watch is not None:
            watch.raise_if_doomed(stage)
        try:
            machine = await _machine(job, system_id)
        except AWAY as error:
            patience.away(error)
            return Seen(None, "MAAS does not answer", counts=False)
        patience.answers()
        if machine.status in failed:
            raise await _failure(job.maas.client, machine, stage=stage, watch=watch)
        done = machine if machine.status in wanted else None
        return Seen(done, f"MAAS status {machine.status_name}")

    names = " or ".join(sorted(status.name.replace("_", " ").capitalize() for status in wanted))
    try:
        return await until(
            look, waited_for=f"MAAS status {names}", deadline_s=job.deadline(stage), pace=job.pace
        )
    except StageTimeout as error:
        reason = f"no {names} within {error.seconds:.0f} s; {error.last}"
        failure = watch.explain(stage, f"{stage}-timeout", reason) if watch else None
        raise failure or NodeFailed(stage, f"{stage}-timeout", reason) from error


async def abandon(job: NodeJob) -> None:
    """End what MAAS still tries with the machine: a boot given up must not go on behind our back.

    Best effort: a MAAS that is away ends it by its own timeout.
    """
    system_id = job.state.system_id
    if not system_id:
        return
    try:
        machine = await machine_of(job)
        if machine.status in _ABORTABLE and not machine.locked:
            job.note(f"aborting {machine.status_name} in MAAS")
            await job.maas.client.abort(system_id, comment=f"muster {job.run}: given up")
    except (MaasError, NodeFailed) as error:
        job.note(f"MAAS was not told that the node is given up: {error}")


async def _failure(maas: MaasClient, machine: Machine, *, stage: str, watch: BootWatch | None) -> NodeFailed:
    """Turn MAAS's "Failed …" into a reason: from its events, its logs and the console."""
    why = await _quietly(lambda: _reason(maas, machine, stage), default="")
    reason = f'MAAS "{machine.status_name}"'
    if why:
        reason += f": {why}"
    code = f"{stage}-failed"
    return watch.explain(stage, code, reason, why=why) if watch else NodeFailed(stage, code, reason, why=why)


async def _reason(maas: MaasClient, machine: Machine, stage: str) -> str:
    events = await maas.events(machine.system_id)
    kind = ResultKind.INSTALLATION if stage == "deployed" else ResultKind.COMMISSIONING
    results = await maas.results(machine.system_id, kind, include_output=True)
    return failure_reason(events, results) or machine.status_message or ""


async def _quietly(ask: Callable[[], Awaitable[str]], *, default: str) -> str:
    """A reason that cannot be had must not hide the failure that it would explain."""
    try:
        return await ask()
    except MaasError:
        return default
