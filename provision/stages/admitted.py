"""The last step: a verified node joins the reliable pool or its rack's spares, and MAAS shows it."""

from __future__ import annotations

from inventory.admission import ADMITTED
from inventory.records import AUTOMATION
from provision.pools import spares
from provision.pools.mirror import mirror
from provision.stages.job import NodeJob, Reached
from provision.stages.site_memory import SiteMemory


async def reach(job: NodeJob, memory: SiteMemory) -> Reached:
    """Move the node to an admitted pool. Raises NotAdmissible or HeldByHuman from the store."""
    here = job.state.pool
    if here in ADMITTED:
        return Reached(f"already in {here}", already=True)
    pool = spares.pool_for(job.access, job.node)
    job.access.store.set_pool(job.node.name, pool, by=AUTOMATION, why=f"verified in {job.run}", run=job.run)
    # From now on its boots teach what is usual.
    await memory.learn(job.access, job.node.name)
    for problem in await mirror(job.access, [job.node.name]):
        job.note(problem)
    return Reached(f"in {pool}")
