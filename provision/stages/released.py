"""released: for a re-image, the machine has been given back since the run began."""

from __future__ import annotations

from datetime import UTC, datetime

from inventory.admission import ADMITTED
from provision.errors import NodeFailed
from provision.maas.model import MachineStatus
from provision.stages.commissioned import refuse_locked, right_machine
from provision.stages.idle import refuse_in_use
from provision.stages.job import DEPLOY_ASKED, NodeJob, Reached
from provision.stages.maas_wait import carry_out, machine_of, patiently, settle

_TO_RELEASE = frozenset({MachineStatus.DEPLOYED, MachineStatus.FAILED_DEPLOYMENT, MachineStatus.ALLOCATED})
_UNDER_WAY = frozenset({MachineStatus.RELEASING, MachineStatus.DISK_ERASING})
_FAILED = frozenset({MachineStatus.FAILED_RELEASING, MachineStatus.FAILED_DISK_ERASING, MachineStatus.BROKEN})
_READY = frozenset({MachineStatus.READY})


async def reach(job: NodeJob) -> Reached:
    """Release the machine if this run has not deployed it yet. Raises MaasError, BmcError, NodeFailed."""
    machine = await patiently(job, lambda: machine_of(job))
    refuse_locked(machine, "released")
    if machine.status in _READY or asked_here(job):
        return Reached(f"MAAS status {machine.status_name}", already=True)
    if machine.status in _TO_RELEASE:
        await right_machine(job)
        await refuse_in_use(job, "released")
        _leave_pool(job)
        job.note(f"releasing from {machine.status_name}: {job.options.reason}")
        comment = f"muster {job.run}: {job.options.reason}"
        await carry_out(
            job,
            "releasing",
            lambda: job.maas.client.release(machine.system_id, comment=comment),
            undone=_TO_RELEASE,
        )
    elif machine.status not in _UNDER_WAY:
        reason = f"MAAS status {machine.status_name}: not a state to release from"
        raise NodeFailed("released", "maas-state", reason)
    await settle(job, stage="released", wanted=_READY, failed=_FAILED)
    # MAAS has switched it off: whatever ran there is over, also where the deployment is never asked for.
    job.access.store.observe(job.node.name, run=job.run, last_power_loss_at=datetime.now(UTC))
    return Reached("MAAS status Ready")


def _leave_pool(job: NodeJob) -> None:
    """A node about to be wiped is in no pool for jobs, even where the run's start was cut short."""
    if job.state.pool in ADMITTED:
        why = f"re-image: {job.options.reason}"
        job.access.store.set_pool(job.node.name, None, by=job.options.who, why=why, run=job.run)


def asked_here(job: NodeJob) -> bool:
    """Whether this run has already asked for its deployment, so that what stands is to be kept."""
    asked = job.access.store.events(node=job.node.name, run=job.run, kinds=[DEPLOY_ASKED], limit=1)
    return bool(asked)
