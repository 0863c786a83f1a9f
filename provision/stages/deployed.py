"""deployed: MAAS has written the wanted OS image and the node answers SSH as itself."""

from __future__ import annotations

from bmc.capability import BootTarget
from bmc.drivers import connect
from provision.maas.client import MaasClient
from provision.maas.model import Deployment, Machine, MachineStatus
from provision.stages.boot_watch import watch_boot
from provision.stages.commissioned import refuse_locked
from provision.stages.job import NodeJob, Reached
from provision.stages.maas_wait import machine_of, settle
from provision.stages.reachable import check_identity
from provision.stages.standing import remember, standing_deployment
from provision.stages.wake import wait_for_ssh

_DEPLOYED = frozenset({MachineStatus.DEPLOYED})
_READY = frozenset({MachineStatus.READY})
_FAILED = frozenset({MachineStatus.FAILED_DEPLOYMENT, MachineStatus.BROKEN, MachineStatus.FAILED_RELEASING})


async def reach(job: NodeJob) -> Reached:
    """Deploy unless our own deployment stands; then wait for SSH.

    Raises MaasError, BmcError, NodeFailed. A machine that MAAS calls Deployed and that we did
    not deploy is left alone: somebody may be using it.
    """
    async with job.access.maas() as maas:
        machine = await machine_of(job, maas)
        refuse_locked(machine, "deployed")
        if machine.status == MachineStatus.DEPLOYED:
            standing = await standing_deployment(job, machine)
            if standing is not None:
                return standing
            job.note("the last rung: writing the OS image again")
            await maas.release(machine.system_id, comment=f"muster {job.run}: it does not come up")
            machine = await settle(job, maas, stage="released", wanted=_READY, failed=_FAILED)
        async with watch_boot(job) as watch:
            if machine.status != MachineStatus.DEPLOYING:
                await _start(job, maas, machine)
            machine = await settle(job, maas, stage="deployed", wanted=_DEPLOYED, failed=_FAILED, watch=watch)
            remember(job, machine)
            boot_id = await wait_for_ssh(job, watch)
            await watch.see_login()
    return Reached(f"{job.image}, SSH answers", facts={"boot_id": boot_id})


async def _start(job: NodeJob, maas: MaasClient, machine: Machine) -> None:
    """Bring the machine to Ready if a failed deployment is in the way, then deploy it."""
    if machine.status in (MachineStatus.FAILED_DEPLOYMENT, MachineStatus.FAILED_RELEASING):
        job.note(f"releasing from {machine.status_name} before the next try")
        await maas.release(machine.system_id, comment=f"muster {job.run}: before deploying again")
        machine = await settle(
            job, maas, stage="deployed", wanted=_READY, failed=frozenset({MachineStatus.BROKEN})
        )
    elif machine.status in (MachineStatus.RELEASING, MachineStatus.DISK_ERASING):
        machine = await settle(job, maas, stage="deployed", wanted=_READY, failed=_FAILED)
    await _boot_from_network(job)
    # The journal knows before MAAS does: a run killed between the two recognises its own deployment.
    job.access.store.event(
        job.node.name, "deploy-asked", run=job.run, actor=job.options.who, message=job.image
    )
    system, _, series = job.image.partition("/")
    if machine.status != MachineStatus.ALLOCATED:
        machine = await maas.allocate(machine.system_id, comment=f"muster {job.run}")
    job.note(f"deploying {job.image}: wipes the disk")
    known_hosts = job.access.ssh(job.node).known_hosts if job.node.address else None
    if known_hosts is not None:
        known_hosts.unlink(missing_ok=True)  # a new deployment has a new host key
    wanted = Deployment(osystem=system, distro_series=series, comment=f"muster {job.run}")
    await maas.deploy(machine.system_id, wanted)


async def _boot_from_network(job: NodeJob) -> None:
    """Set the next boot to PXE on the right BMC, and see that the BMC took it."""
    async with connect(job.access.bmc(job.node)) as bmc:
        identity = await bmc.identity()
        check_identity(job.node.name, expected=job.node.serial, found=identity.serial)
        setting = await bmc.set_boot(BootTarget.PXE, uefi=False)
    if setting.target is not BootTarget.PXE:
        job.note(f"the BMC did not take the boot device: it says {setting.target}")
