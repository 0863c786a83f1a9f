"""The last step: a verified node joins the reliable pool, and MAAS shows it."""

from __future__ import annotations

from inventory.model import Pool
from inventory.records import AUTOMATION
from provision import pool
from provision.stages.job import NodeJob, Reached


async def reach(job: NodeJob) -> Reached:
    """Move the node to the reliable pool. Raises NotAdmissible or HeldByHuman from the store."""
    if job.state.pool == Pool.RELIABLE:
        return Reached("already in reliable", already=True)
    job.access.store.set_pool(
        job.node.name, Pool.RELIABLE, by=AUTOMATION, why=f"verified in {job.run}", run=job.run
    )
    mirrored = await pool.mirror(job.access, [job.node.name])
    for problem in mirrored:
        job.note(problem)
    return Reached("in reliable")
