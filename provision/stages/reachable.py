"""reachable: the BMC answers, and it is the BMC of the node that the site files mean."""

from __future__ import annotations

from bmc.drivers import connect
from provision.errors import NodeFailed
from provision.stages.job import NodeJob, Reached


async def reach(job: NodeJob) -> Reached:
    """Log in to the BMC and compare its serial with the inventory. Raises BmcError, NodeFailed."""
    async with connect(job.access.bmc(job.node)) as bmc:
        identity = await bmc.identity()
        power = await bmc.power_state()
    check_identity(job.node.name, expected=job.node.serial, found=identity.serial)
    detail = f"BMC {job.node.bmc.host} ({identity.protocol}, firmware {identity.firmware}), power {power}"
    return Reached(detail)


def check_identity(node: str, *, expected: str | None, found: str | None) -> None:
    """Refuse a BMC whose FRU serial is not the inventory's: a wrong cable or a stale address.

    A serial that could not be read counts as not matching; a node without a serial in the
    inventory cannot be compared and is let through. Raises NodeFailed.
    """
    if expected is None or expected == found:
        return
    reason = f"BMC serial {found or 'cannot be read'}, inventory says {expected}"
    raise NodeFailed(
        "reachable", "identity", reason, why=f"{node}: another machine answers at this BMC address"
    )
