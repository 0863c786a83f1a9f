"""commissioned: MAAS has looked the machine over and calls it Ready (or it is already beyond)."""

from __future__ import annotations

from bmc.drivers import connect
from provision.errors import NodeFailed
from provision.maas.model import Machine, MachineStatus
from provision.stages.boot_watch import watch_boot
from provision.stages.idle import refuse_in_use
from provision.stages.job import NodeJob, Reached
from provision.stages.maas_wait import carry_out, machine_of, patiently, settle
from provision.stages.reachable import check_identity

_BEYOND = frozenset(
    {
        MachineStatus.READY,
        MachineStatus.ALLOCATED,
        MachineStatus.DEPLOYING,
        MachineStatus.DEPLOYED,
        MachineStatus.FAILED_DEPLOYMENT,
        MachineStatus.RELEASING,
        MachineStatus.DISK_ERASING,
    }
)
_STARTS = frozenset(
    {
        MachineStatus.NEW,
        MachineStatus.FAILED_COMMISSIONING,
        MachineStatus.FAILED_TESTING,
        MachineStatus.COMMISSIONING,
    }
)
_FAILED = frozenset({MachineStatus.FAILED_COMMISSIONING, MachineStatus.FAILED_TESTING, MachineStatus.BROKEN})


async def reach(job: NodeJob) -> Reached:
    """Commission the machine unless that is done. Raises MaasError, BmcError, NodeFailed."""
    machine = await patiently(job, lambda: machine_of(job))
    refuse_locked(machine, "commissioned")
    if machine.status in _BEYOND:
        return Reached(f"MAAS status {machine.status_name}", already=True)
    if machine.status not in _STARTS:
        reason = f"MAAS status {machine.status_name}: not a state to commission from"
        raise NodeFailed("commissioned", "maas-state", reason)
    async with watch_boot(job) as watch:
        if machine.status != MachineStatus.COMMISSIONING:
            await right_machine(job)
            await refuse_in_use(job, "commissioned")
            job.note("commissioning: power on, PXE")
            # The BMC's login is the site's, so MAAS must not change it on the way.
            await carry_out(
                job,
                "commissioning",
                lambda: job.maas.client.commission(machine.system_id, skip_bmc_config=True),
                undone=_STARTS - {MachineStatus.COMMISSIONING},
            )
        await settle(
            job, stage="commissioned", wanted=frozenset({MachineStatus.READY}), failed=_FAILED, watch=watch
        )
    return Reached("MAAS status Ready")


async def right_machine(job: NodeJob) -> None:
    """See that the machine whose power MAAS is about to switch is the node: BMC address and serial.

    Raises BmcError, NodeFailed.
    """
    async with connect(job.access.bmc(job.node)) as bmc:
        identity = await bmc.identity()
    check_identity(job.node.name, expected=job.node.serial, found=identity.serial)


def refuse_locked(machine: Machine, stage: str) -> None:
    """A machine locked in MAAS is never touched. Raises NodeFailed."""
    if machine.locked:
        raise NodeFailed(
            stage, "locked", f"MAAS machine {machine.system_id} is locked", why="somebody locked it there"
        )
