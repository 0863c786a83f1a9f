"""deployed: MAAS has written the wanted OS image and the node answers SSH as itself."""

from __future__ import annotations

from bmc.capability import BootTarget
from bmc.drivers import connect
from provision.errors import NodeFailed
from provision.maas.model import Deployment, Machine, MachineStatus
from provision.stages.boot_watch import watch_boot
from provision.stages.commissioned import refuse_locked, right_machine
from provision.stages.idle import refuse_in_use
from provision.stages.job import DEPLOY_ASKED, NodeJob, Reached
from provision.stages.maas_wait import carry_out, machine_of, patiently, settle
from provision.stages.reachable import check_identity
from provision.stages.standing import (
    asked_since_deployed,
    refuse_other_image,
    remember,
    standing_deployment,
)
from provision.stages.wake import wait_for_ssh

_DEPLOYED = frozenset({MachineStatus.DEPLOYED})
_READY = frozenset({MachineStatus.READY})
_ALLOCATED = frozenset({MachineStatus.ALLOCATED})
_HELD = frozenset({MachineStatus.ALLOCATED, MachineStatus.DEPLOYING})
_TO_RELEASE = frozenset({MachineStatus.FAILED_DEPLOYMENT, MachineStatus.FAILED_RELEASING})
_FAILED = frozenset({MachineStatus.FAILED_DEPLOYMENT, MachineStatus.BROKEN, MachineStatus.FAILED_RELEASING})


async def reach(job: NodeJob) -> Reached:
    """Deploy unless our own deployment stands; then wait for SSH.

    Raises MaasError, BmcError, NodeFailed. A machine that somebody else allocated, deploys or has
    deployed is left alone: somebody may be using it.
    """
    machine = await patiently(job, lambda: machine_of(job))
    refuse_locked(machine, "deployed")
    _refuse_foreign(job, machine)
    if machine.status == MachineStatus.DEPLOYED:
        standing = await standing_deployment(job, machine)
        if standing is not None:
            return standing
        machine = await _last_rung(job, machine)
    async with watch_boot(job) as watch:
        if machine.status != MachineStatus.DEPLOYING:
            await _start(job, machine)
        machine = await settle(job, stage="deployed", wanted=_DEPLOYED, failed=_FAILED, watch=watch)
        refuse_other_image(job, machine)
        remember(job, machine)
        boot_id = await wait_for_ssh(job, watch)
        await watch.see_login()
    return Reached(f"{job.image}, SSH answers", facts={"boot_id": boot_id})


def _refuse_foreign(job: NodeJob, machine: Machine) -> None:
    """Raise NodeFailed where MAAS holds the machine for a deployment that we did not ask for."""
    if machine.status in _HELD and not asked_since_deployed(job):
        owner = f" by {machine.owner}" if machine.owner else ""
        reason = f"MAAS says {machine.status_name}{owner} but no run of ours asked for it"
        raise NodeFailed("deployed", "not-ours", reason, why="it may be in use")


async def _last_rung(job: NodeJob, machine: Machine) -> Machine:
    """Give back a deployment that does not come up, so that it can be written again."""
    job.note("the last rung: writing the OS image again")
    # Hours may have passed on the other rungs.
    refuse_locked(await patiently(job, lambda: machine_of(job)), "deployed")
    await right_machine(job)
    await refuse_in_use(job, "deployed")
    comment = f"muster {job.run}: it does not come up"
    await carry_out(
        job,
        "releasing",
        lambda: job.maas.client.release(machine.system_id, comment=comment),
        undone=_DEPLOYED,
    )
    return await settle(job, stage="released", wanted=_READY, failed=_FAILED)


async def _start(job: NodeJob, machine: Machine) -> None:
    """Bring the machine to Ready if a failed deployment is in the way, then deploy it."""
    if machine.status in _TO_RELEASE:
        await right_machine(job)
        await refuse_in_use(job, "deployed")
        job.note(f"releasing from {machine.status_name} before the next try")
        comment = f"muster {job.run}: before deploying again"
        await carry_out(
            job,
            "releasing",
            lambda: job.maas.client.release(machine.system_id, comment=comment),
            undone=_TO_RELEASE,
        )
        machine = await settle(job, stage="deployed", wanted=_READY, failed=frozenset({MachineStatus.BROKEN}))
    elif machine.status in (MachineStatus.RELEASING, MachineStatus.DISK_ERASING):
        machine = await settle(job, stage="deployed", wanted=_READY, failed=_FAILED)
    await _boot_from_network(job)
    # The journal knows before MAAS does: a run killed between the two recognises its own deployment.
    job.access.store.event(job.node.name, DEPLOY_ASKED, run=job.run, actor=job.options.who, message=job.image)
    maas, system_id = job.maas.client, machine.system_id
    if machine.status != MachineStatus.ALLOCATED:
        comment = f"muster {job.run}"
        await carry_out(job, "allocating", lambda: maas.allocate(system_id, comment=comment), undone=_READY)
    job.note(f"deploying {job.image}: wipes the disk")
    job.access.known_hosts(job.node).unlink(missing_ok=True)  # a new deployment has a new host key
    system, _, series = job.image.partition("/")
    wanted = Deployment(osystem=system, distro_series=series, comment=f"muster {job.run}")
    await carry_out(job, "deploying", lambda: maas.deploy(system_id, wanted), undone=_READY | _ALLOCATED)


async def _boot_from_network(job: NodeJob) -> None:
    """Set the next boot to PXE on the right BMC, and see that the BMC took it."""
    async with connect(job.access.bmc(job.node)) as bmc:
        identity = await bmc.identity()
        check_identity(job.node.name, expected=job.node.serial, found=identity.serial)
        setting = await bmc.set_boot(BootTarget.PXE, uefi=False)
    if setting.target is not BootTarget.PXE:
        job.note(f"the BMC did not take the boot device: it says {setting.target}")
