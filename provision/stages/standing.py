"""A deployment that stands in MAAS: is it ours and right, and does the node answer? If not, the ladder."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from datetime import UTC, datetime

from bmc.capability import PowerAction, PowerState
from bmc.drivers import connect
from inventory.records import Facts
from provision import evidence
from provision.errors import NodeFailed
from provision.maas.model import Machine
from provision.stages.boot_watch import watch_boot
from provision.stages.idle import refuse_in_use
from provision.stages.job import DEPLOY_ASKED, NodeJob, Reached
from provision.stages.reachable import check_identity
from provision.stages.wake import ask_boot_id, wait_for_ssh

# What the console says only where no system runs, so that nothing of a job is left.
_NOTHING_RUNS = frozenset(
    {
        "firmware-crash",
        "firmware-waits",
        "grub-rescue",
        "initramfs-prompt",
        "kernel-panic",
        "memory-training",
        "no-bootable-device",
        "pxe-loop",
    }
)


async def standing_deployment(job: NodeJob, machine: Machine) -> Reached | None:
    """Return how the node stands, or None where no rung of the ladder but a new deployment is left.

    The rungs, each once, evidence saved before power is cut: wait, power on, power cycle.
    Raises NodeFailed where the deployment is not ours or is of another image, and before the cycle
    where it may still run a job: somebody may use it.
    """
    fresh = asked_since_deployed(job)
    if not fresh and job.state.deployed_at is None:
        reason = f"MAAS says Deployed ({machine.osystem}/{machine.distro_series}) but not by a run of ours"
        raise NodeFailed("deployed", "not-ours", reason, why="it may be in use")
    found = refuse_other_image(job, machine)
    if fresh:
        remember(job, machine)
    boot_id = (await ask_boot_id(job)).value
    if boot_id is None:
        boot_id = await _climb(job)
    if boot_id is None:
        return None
    return Reached(f"{found}, SSH answers", already=not fresh, facts={"boot_id": boot_id})


def remember(job: NodeJob, machine: Machine) -> None:
    """Record a deployment at once: what follows may be interrupted."""
    facts: Facts = {"deployed_at": datetime.now(UTC), "image": job.image}
    if machine.addresses:
        facts["address"] = machine.addresses[0]
    job.access.store.observe(job.node.name, run=job.run, **facts)
    job.note("MAAS status Deployed; waiting for SSH")


def refuse_other_image(job: NodeJob, machine: Machine) -> str:
    """Return the image that stands. Raises NodeFailed where it is not the one that is wanted."""
    found = f"{machine.osystem}/{machine.distro_series}"
    if found != job.image:
        raise NodeFailed("deployed", "other-image", f"deployed with {found}, wanted {job.image}")
    return found


def asked_since_deployed(job: NodeJob) -> bool:
    """Whether a run of ours asked MAAS for a deployment after the last one that was seen to stand.

    The run may be another one: cancelled, or killed before it saw what became of it.
    """
    asked = job.access.store.events(node=job.node.name, kinds=[DEPLOY_ASKED], limit=1)
    deployed = job.state.deployed_at
    return bool(asked) and (deployed is None or asked[0].ts > deployed)


async def _climb(job: NodeJob) -> str | None:
    """Return the boot id once SSH answers, None when every rung was tried."""
    rungs: list[tuple[str, Callable[[NodeJob], Awaitable[None]] | None]] = [
        ("waiting for SSH", None),
        ("no SSH: power cycle", _cycle),
    ]
    if await _power(job) is PowerState.OFF:
        rungs[0] = ("power is off: power on", _switch_on)
    stopped = False
    for said, act in rungs:
        if act is _cycle and not stopped:
            await refuse_in_use(job, "deployed")
        job.note(said)
        # Each rung has a watch of its own: what the console said before it no longer counts.
        async with watch_boot(job) as watch:
            if act is not None:
                await act(job)
            try:
                return await wait_for_ssh(job, watch)
            except NodeFailed as failure:
                job.note(f"{failure.code}: {failure.reason}")
                stopped = failure.code in _NOTHING_RUNS
    return None


async def _power(job: NodeJob) -> PowerState:
    async with connect(job.access.bmc(job.node)) as bmc:
        return await bmc.power_state()


async def _switch_on(job: NodeJob) -> None:
    await _act(job, PowerAction.ON)


async def _cycle(job: NodeJob) -> None:
    folder = job.access.settings.run_folder(job.run, job.node.name)
    await evidence.save_bmc(job.access.bmc(job.node), folder)
    await _act(job, PowerAction.CYCLE)


async def _act(job: NodeJob, action: PowerAction) -> None:
    """Act on the power of the right machine; its last yes does not outlive that."""
    async with connect(job.access.bmc(job.node)) as bmc:
        identity = await bmc.identity()
        check_identity(job.node.name, expected=job.node.serial, found=identity.serial)
        await bmc.set_power(action)
    job.access.store.observe(job.node.name, run=job.run, last_power_loss_at=datetime.now(UTC))
