"""released: for a re-image, the machine has been given back since the run began."""

from __future__ import annotations

from datetime import datetime

from provision.errors import NodeFailed
from provision.maas.model import MachineStatus
from provision.stages.commissioned import refuse_locked
from provision.stages.job import NodeJob, Reached
from provision.stages.maas_wait import machine_of, settle

_TO_RELEASE = frozenset({MachineStatus.DEPLOYED, MachineStatus.FAILED_DEPLOYMENT, MachineStatus.ALLOCATED})
_UNDER_WAY = frozenset({MachineStatus.RELEASING, MachineStatus.DISK_ERASING})
_FAILED = frozenset({MachineStatus.FAILED_RELEASING, MachineStatus.FAILED_DISK_ERASING, MachineStatus.BROKEN})
_READY = frozenset({MachineStatus.READY})


async def reach(job: NodeJob) -> Reached:
    """Release the machine if this run has not deployed it yet. Raises MaasError, NodeFailed."""
    run = job.access.store.run(job.run)
    async with job.access.maas() as maas:
        machine = await machine_of(job, maas)
        refuse_locked(machine, "released")
        if machine.status in _READY or deployed_since(job, run.started_at):
            return Reached(f"MAAS status {machine.status_name}", already=True)
        if machine.status in _TO_RELEASE:
            job.note(f"releasing from {machine.status_name}: {job.options.reason}")
            await maas.release(machine.system_id, comment=f"muster {job.run}: {job.options.reason}")
        elif machine.status not in _UNDER_WAY:
            reason = f"MAAS status {machine.status_name}: not a state to release from"
            raise NodeFailed("released", "maas-state", reason)
        await settle(job, maas, stage="released", wanted=_READY, failed=_FAILED)
    return Reached("MAAS status Ready")


def deployed_since(job: NodeJob, moment: datetime) -> bool:
    """Whether the node's last deployment is newer than `moment`."""
    deployed = job.state.deployed_at
    return deployed is not None and deployed >= moment
