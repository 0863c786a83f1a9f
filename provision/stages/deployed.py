"""deployed: MAAS has written the wanted OS image and the node answers SSH as itself."""

from __future__ import annotations

from datetime import UTC, datetime

from bmc.capability import BootTarget, PowerState
from bmc.drivers import connect
from bmc.errors import BmcError
from inventory.records import Facts
from provision import ssh
from provision.errors import NodeFailed, SshFailed, StageTimeout
from provision.maas.client import MaasClient
from provision.maas.model import Deployment, Machine, MachineStatus
from provision.stages.boot_watch import BootWatch, watch_boot
from provision.stages.commissioned import refuse_locked
from provision.stages.job import NodeJob, Reached
from provision.stages.maas_wait import machine_of, settle
from provision.stages.reachable import check_identity
from provision.waiting import Seen, until

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
            return await _standing(job, machine)
        async with watch_boot(job) as watch:
            if machine.status != MachineStatus.DEPLOYING:
                await _start(job, maas, machine)
            machine = await settle(job, maas, stage="deployed", wanted=_DEPLOYED, failed=_FAILED, watch=watch)
            _remember(job, machine)
            boot_id = await _wait_for_ssh(job, watch)
            await watch.see_login()
    return Reached(f"{job.image}, SSH answers", facts={"boot_id": boot_id})


async def _standing(job: NodeJob, machine: Machine) -> Reached:
    """A deployment stands in MAAS: it is ours and right, or the node is not touched."""
    state = job.state
    ours = state.deployed_at is not None or _started_here(job)
    if not ours:
        reason = f"MAAS says Deployed ({machine.osystem}/{machine.distro_series}) but not by a run of ours"
        raise NodeFailed("deployed", "not-ours", reason, why="it may be in use")
    wanted = job.image
    found = f"{machine.osystem}/{machine.distro_series}"
    if found != wanted:
        raise NodeFailed("deployed", "other-image", f"deployed with {found}, wanted {wanted}")
    fresh = state.deployed_at is None
    if fresh:
        _remember(job, machine)
    boot_id = (await _ask_boot_id(job)).value
    if boot_id is None:
        async with watch_boot(job) as watch:
            boot_id = await _wait_for_ssh(job, watch)
    return Reached(f"{found}, SSH answers", already=not fresh, facts={"boot_id": boot_id})


def _started_here(job: NodeJob) -> bool:
    """Whether this run asked MAAS for the deployment before it was interrupted."""
    events = job.access.store.events(node=job.node.name, run=job.run, kinds=["deploy-asked"], limit=1)
    return bool(events)


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


def _remember(job: NodeJob, machine: Machine) -> None:
    """Record the deployment at once: what follows may be interrupted."""
    facts: Facts = {"deployed_at": datetime.now(UTC), "image": job.image}
    if machine.addresses:
        facts["address"] = machine.addresses[0]
    job.access.store.observe(job.node.name, run=job.run, **facts)
    job.note("MAAS status Deployed; waiting for SSH")


async def _wait_for_ssh(job: NodeJob, watch: BootWatch) -> str:
    """Return the boot id of the node. Raises NodeFailed when SSH never answers."""

    async def look() -> Seen[str]:
        watch.raise_if_doomed("deployed")
        return await _ask_boot_id(job)

    try:
        return await until(look, waited_for="SSH", deadline_s=job.deadline("ssh"), pace=job.pace)
    except StageTimeout as error:
        power = await _power(job)
        address = job.access.ssh(job.node).address
        reason = f"MAAS says Deployed, but SSH to {address} never answered in {error.seconds:.0f} s"
        raise watch.explain("deployed", "ssh-dead", reason, why=f"{error.last}; power {power}") from error


async def _ask_boot_id(job: NodeJob) -> Seen[str]:
    try:
        result = await ssh.run(
            job.access.ssh(job.node), ["cat", "/proc/sys/kernel/random/boot_id"], timeout_s=20
        )
    except SshFailed as error:
        return Seen(None, error.reason)
    return Seen(result.stdout.decode("ascii", "replace").strip() or None, "no boot id")


async def _power(job: NodeJob) -> str:
    try:
        async with connect(job.access.bmc(job.node)) as bmc:
            state: PowerState = await bmc.power_state()
            return str(state)
    except BmcError as error:
        return f"unknown ({error})"
