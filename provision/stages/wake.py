"""Waiting for a deployed node to answer SSH."""

from __future__ import annotations

from bmc.drivers import connect
from bmc.errors import BmcError
from provision import ssh
from provision.errors import NodeFailed, SshFailed, StageTimeout
from provision.stages.boot_watch import BootWatch
from provision.stages.job import NodeJob
from provision.waiting import Seen, until

_BOOT_ID = ["cat", "/proc/sys/kernel/random/boot_id"]


async def wait_for_ssh(job: NodeJob, watch: BootWatch) -> str:
    """Return the boot id of the node. Raises NodeFailed when SSH never answers."""

    async def look() -> Seen[str]:
        watch.raise_if_doomed("deployed")
        return await ask_boot_id(job)

    try:
        return await until(look, waited_for="SSH", deadline_s=job.deadline("ssh"), pace=job.pace)
    except StageTimeout as error:
        raise await _never(job, watch, error) from error


async def _never(job: NodeJob, watch: BootWatch, error: StageTimeout) -> NodeFailed:
    address = job.access.ssh(job.node).address
    reason = f"MAAS says Deployed, but SSH to {address} never answered in {error.seconds:.0f} s"
    return watch.explain("deployed", "ssh-dead", reason, why=f"{error.last}; power {await _power(job)}")


async def ask_boot_id(job: NodeJob) -> Seen[str]:
    """Ask the node for its boot id once."""
    try:
        result = await ssh.run(job.access.ssh(job.node), _BOOT_ID, timeout_s=20)
    except SshFailed as error:
        return Seen(None, error.reason)
    return Seen(result.stdout.decode("ascii", "replace").strip() or None, "no boot id")


async def _power(job: NodeJob) -> str:
    try:
        async with connect(job.access.bmc(job.node)) as bmc:
            return str(await bmc.power_state())
    except BmcError as error:
        return f"unknown ({error})"
