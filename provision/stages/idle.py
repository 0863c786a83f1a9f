"""Before a stage wipes a node or cuts its power: nothing may run there, whatever pool the node is in."""

from __future__ import annotations

from provision import usage
from provision.errors import NodeFailed
from provision.stages.job import NodeJob


async def refuse_in_use(job: NodeJob, stage: str) -> None:
    """Raise NodeFailed where something runs on the node, or may.

    The command that began the run asked as well; a job may have come since, and an earlier
    bring-up may have been killed. `--override in-use` of that command holds here, too.
    """
    use = (await usage.look(job.access, [job.node])).get(job.node.name)
    if use is None or job.options.override == "in-use":
        return
    raise NodeFailed(stage, "in-use", use.reason, why=use.detail)
