"""Before a stage wipes a node or cuts its power: nothing may run there, whatever pool the node is in."""

from __future__ import annotations

from provision import slurm, usage
from provision.errors import NodeFailed, SlurmFailed
from provision.pools.mirror import mirror
from provision.stages.job import NodeJob


async def refuse_in_use(job: NodeJob, stage: str) -> None:
    """Raise NodeFailed where something runs on the node, or may.

    The command that began the run asked as well; a job may have come since, and an earlier
    bring-up may have been killed. Where Slurm gives out work, the node is drained first, or a job could
    begin between our question and the loss of power; it stays drained until it is admitted again.
    `--override in-use` of that command holds here, too.
    """
    drained = await _drain(job, stage) if job.access.site.slurm else False
    use = (await usage.look(job.access, [job.node])).get(job.node.name)
    if use is None or job.options.override == "in-use":
        return
    if drained:
        # From here on its pool says again whether it gets jobs; where Slurm is away just now, that is owed.
        for problem in await mirror(job.access, [job.node.name]):
            job.note(problem)
    raise NodeFailed(stage, "in-use", use.reason, why=use.detail)


async def _drain(job: NodeJob, stage: str) -> bool:
    """Drain a node that gets jobs, and return whether it did. Raises NodeFailed where Slurm refuses."""
    name = job.node.name
    try:
        found = await slurm.look([name])
        if name in found.unknown or name in found.drained:
            return False
        await slurm.drain([name], f"{job.run}: {job.options.reason or stage}")
    except SlurmFailed as error:
        if job.options.override == "in-use":
            return False
        raise NodeFailed(stage, "slurm-unanswered", error.reason, why="jobs may begin on it") from error
    return True
