"""configured: the site's playbook ran on the node without a failed task, since its last deployment."""

from __future__ import annotations

from pathlib import Path

from inventory.ansible import group_name
from provision.ansible import PlayEvent, PlayOutcome, PlayPool, PlayRequest, PlayResult, Transport
from provision.ansible_errors import AnsibleMissing
from provision.errors import NodeFailed
from provision.stages.job import NodeJob, Reached

PLAYBOOKS = Path(__file__).resolve().parent.parent.parent / "playbooks"


async def reach(job: NodeJob, plays: PlayPool) -> Reached:
    """Run the profile's playbook. A second run changes nothing, so it is run whenever asked.

    Raises NodeFailed naming role, task and message.
    """
    try:
        result = await plays.run_play(request_for(job), on_event=_ignore)
    except AnsibleMissing as error:
        raise NodeFailed("configured", "ansible-missing", str(error)) from error
    if not result.ok:
        raise _failure(job, result)
    return Reached(f"{job.profile.playbook}: {result.changed} changed", already=result.changed == 0)


def _ignore(_event: PlayEvent) -> None:
    """The play's own log in the run's folder has every task; the run shows only how it ended."""


def request_for(job: NodeJob, *, check: bool = False) -> PlayRequest:
    """Return the play of this node: its address, its login, and facts that are no secrets."""
    target = job.access.ssh(job.node)
    return PlayRequest(
        playbook=PLAYBOOKS / job.profile.playbook,
        node=job.node.name,
        address=target.address,
        port=target.port,
        user=target.user,
        key_file=target.key_file,
        known_hosts=target.known_hosts,
        artifacts=job.access.settings.run_folder(job.run, job.node.name),
        become=job.access.site.ssh.become,
        extra_vars={
            "muster_node": job.node.name,
            "muster_rack": job.node.rack,
            "muster_profile": job.profile.name,
        },
        groups=(group_name("rack", job.node.rack), group_name("profile", job.profile.name)),
        vars_folder=job.access.site.path,
        timeout_s=job.deadline("configured"),
        check=check,
        transport=Transport(job.options.transport),
    )


def _failure(job: NodeJob, result: PlayResult) -> NodeFailed:
    where = " / ".join(part for part in (result.failed_role, result.failed_task) if part)
    if result.unreachable:
        return NodeFailed(
            "configured", "play-unreachable", "the node stopped answering SSH", why=result.message
        )
    if result.outcome is PlayOutcome.TIMED_OUT:
        reason = f"not finished within {job.deadline('configured'):.0f} s; it was at {where or 'its start'}"
        return NodeFailed("configured", "configured-timeout", reason, why=result.message)
    return NodeFailed("configured", "play-failed", where or "the play failed", why=result.message)
