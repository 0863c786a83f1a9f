"""Waiting for MAAS: by status and events, patient with a MAAS that is away for a while."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from provision.errors import NodeFailed, StageTimeout
from provision.maas.client import MaasClient
from provision.maas.errors import MaasError, MaasUnreachable
from provision.maas.model import Machine, MachineStatus, ResultKind
from provision.maas.reasons import failure_reason
from provision.stages.boot_watch import BootWatch
from provision.stages.job import NodeJob
from provision.waiting import Seen, until

_ABORTABLE = frozenset({MachineStatus.COMMISSIONING, MachineStatus.DEPLOYING})


async def machine_of(job: NodeJob, maas: MaasClient) -> Machine:
    """Return the node's machine as MAAS sees it now. Raises NodeFailed when MAAS lost it."""
    system_id = job.state.system_id
    found = await maas.machines(ids=[system_id]) if system_id else ()
    if not found:
        reason = f"MAAS no longer has machine {system_id or '(never enlisted)'}"
        raise NodeFailed(
            "enlisted", "maas-mismatch", reason, why="it was deleted there, or MAAS was restored"
        )
    return found[0]


async def settle(
    job: NodeJob,
    maas: MaasClient,
    *,
    stage: str,
    wanted: frozenset[MachineStatus],
    failed: frozenset[MachineStatus],
    watch: BootWatch | None = None,
) -> Machine:
    """Wait until the machine's status is one of `wanted`.

    Raises NodeFailed with MAAS's own reason when it is one of `failed`, when the console shows a
    cause that waiting will not cure, or when the deadline of `stage` passes. A MAAS that does not
    answer is waited for, and said.
    """
    answering = True

    async def look() -> Seen[Machine]:
        nonlocal answering
        if watch is not None:
            watch.raise_if_doomed(stage)
        try:
            machine = await machine_of(job, maas)
        except MaasUnreachable as error:
            if answering:
                job.note(f"MAAS does not answer, waiting: {error}")
            answering = False
            return Seen(None, "MAAS does not answer")
        if not answering:
            job.note("MAAS answers again")
        answering = True
        if machine.status in failed:
            raise await _failure(maas, machine, stage=stage, watch=watch)
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
        async with job.access.maas() as maas:
            machine = await machine_of(job, maas)
            if machine.status in _ABORTABLE and not machine.locked:
                job.note(f"aborting {machine.status_name} in MAAS")
                await maas.abort(system_id, comment=f"muster {job.run}: given up")
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
