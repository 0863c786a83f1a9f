"""bringup and reimage: the acting commands that start a run."""

from __future__ import annotations

import asyncio
import re
import sys
from collections.abc import Sequence
from dataclasses import asdict

from inventory.nodeset import fold
from provision import advice, flow, guards, runs
from provision.access import Access
from provision.ansible_request import Transport
from provision.cli import progress, render
from provision.cli.command import Ended, command
from provision.cli.confirm import asking
from provision.cli.progress import Watching
from provision.cli.selection import NODES, POOL, RACK, open_site, select
from provision.errors import BadRequest
from provision.maas.transport import Limits
from provision.planning import Plan, plan_bringup, plan_reimage
from provision.stages.job import Options

_COMMON = {
    "nodes": NODES,
    "rack": RACK,
    "pool": POOL,
    "image": "OS image as MAAS names it, osystem/series (default: the profile's)",
    "transport": "where plays are run: ssh (here, task by task) or worker (each node runs its own)",
    "max_fail": "start no further stages after this many failed nodes: N or P% (default: no limit)",
    "dry_run": "print the plan and change nothing",
    "yes": "do not ask",
    "no_wait": "return once the run is started",
    "timeout": "stop watching after this long, for example 90m; the run goes on",
    "output": "table, or json: one line an event on stdout",
}


@command(
    {
        **_COMMON,
        "until": f"last stage: {', '.join(flow.STAGE_NAMES)}",
        "resume": "id of a run: go on where it was interrupted, and try again what failed",
    },
    lists=("rack",),
)
def bringup(
    nodes: str = "",
    rack: Sequence[str] = (),
    pool: str = "",
    image: str = "",
    transport: str = "ssh",
    until: str = "pool",
    resume: str = "",
    max_fail: str = "",
    dry_run: bool = False,
    yes: bool = False,
    no_wait: bool = False,
    timeout: str = "",
    output: str = "table",
) -> None:
    """Take nodes from bare metal to the reliable pool."""
    watching = Watching.here(output=output, timeout_s=seconds(timeout) if timeout else 0.0)
    access = open_site(prepare=True)
    if resume:
        again = runs.resume(access, resume, access.settings.who)
        sys.stderr.write(f"{resume} goes on" + (f"; tried again: {fold(again)}" if again else "") + "\n")
        _follow(access, resume, watching, None, no_wait=no_wait)
    if until not in flow.STAGE_NAMES:
        raise BadRequest("--until", f"{until} is no stage", f"one of {', '.join(flow.STAGE_NAMES)}")
    chosen = select(access, nodes, rack, pool)
    options = Options(
        until=until, image=image, max_fail=_limit(max_fail, len(chosen)), transport=_transport(transport)
    )
    plan = asyncio.run(plan_bringup(access, chosen, options))
    _start(access, plan, watching, dry_run=dry_run, yes=yes, no_wait=no_wait)


@command(
    {
        **_COMMON,
        "reason": "why, for the record; required",
        "override": f"guard to pass, with the reason: {', '.join(guards.OVERRIDABLE)}",
    },
    lists=("rack",),
)
def reimage(
    nodes: str = "",
    rack: Sequence[str] = (),
    pool: str = "",
    reason: str = "",
    image: str = "",
    transport: str = "ssh",
    override: str = "",
    max_fail: str = "",
    dry_run: bool = False,
    yes: bool = False,
    no_wait: bool = False,
    timeout: str = "",
    output: str = "table",
) -> None:
    """Give nodes back, write their OS image again, and take them through the gate."""
    if not reason.strip():
        raise BadRequest("--reason", "a re-image needs a reason", "add --reason '...'")
    watching = Watching.here(output=output, timeout_s=seconds(timeout) if timeout else 0.0)
    access = open_site(prepare=True)
    chosen = select(access, nodes, rack, pool)
    options = Options(
        image=image,
        reason=reason,
        reimage=True,
        max_fail=_limit(max_fail, len(chosen)),
        transport=_transport(transport),
    )
    plan = plan_reimage(access, chosen, options)
    asked = asking(yes=yes, override=override, reason=reason)
    asyncio.run(guards.guard(access, plan.nodes, action="reimage", asking=asked))
    _start(
        access, plan, watching, dry_run=dry_run, yes=yes, no_wait=no_wait, reason=reason, override=override
    )


def _transport(text: str) -> str:
    if text not in set(Transport):
        raise BadRequest("--transport", f"{text} is no transport", f"one of {', '.join(Transport)}")
    return text


def _start(
    access: Access,
    plan: Plan,
    watching: Watching,
    *,
    dry_run: bool,
    yes: bool,
    no_wait: bool,
    reason: str = "",
    override: str = "",
) -> None:
    if dry_run:
        print_plan(plan, output="json" if watching.json else "table")
        raise Ended(advice.EXIT_OK)
    if not plan.nodes:
        print_left_out(plan)
        sys.stderr.write("nothing to do\n")
        raise Ended(advice.EXIT_OK if plan.already else advice.EXIT_REFUSED)
    asyncio.run(_maas_answers(access))
    wipes = f"this wipes the disks of {len(plan.wipes)} nodes. " if plan.wipes else ""
    asked = asking(yes=yes, override=override, reason=reason)
    consent = guards.ask(access, plan.nodes, action=plan.kind, plan=wipes, asking=asked)
    run = runs.submit(access, plan, consent)
    sys.stderr.write(f"{run}  {plan.kind} of {fold(plan.names)}, {len(plan.nodes)} nodes\n")
    _follow(access, run, watching, plan, no_wait=no_wait)


async def _maas_answers(access: Access) -> None:
    """Ask MAAS for its version, so that a MAAS that is away is said before a run begins."""
    async with access.maas_within(Limits(call_timeout_s=10.0, deadline_s=15.0)) as maas:
        await maas.version()


def _follow(access: Access, run: str, watching: Watching, plan: Plan | None, *, no_wait: bool) -> None:
    """Watch the run to its end and end with its exit status; Ctrl-C leaves it running."""
    hint = f"invoke watch --run {run}"
    if no_wait:
        sys.stdout.write(f"{run}\n")
        sys.stderr.write(f"{run} goes on in the background; {hint}\n")
        raise Ended(advice.EXIT_OK)
    try:
        ended = progress.watch(access, run, watching)
    except KeyboardInterrupt as interrupt:
        sys.stderr.write(f"\n{run} goes on in the background; {hint}, or invoke cancel --run {run}\n")
        raise Ended(advice.EXIT_INTERRUPTED) from interrupt
    if not ended and watching.timeout_s:
        sys.stderr.write(f"{run} still runs; {hint}\n")
        raise Ended(advice.EXIT_STILL_RUNNING)
    raise Ended(progress.summary(access, run, plan.left_out if plan else (), plan.already if plan else ()))


def print_plan(plan: Plan, *, output: str) -> None:
    """Print what a run would do; the same value would be executed."""
    if output == "json":
        rows = [{"step": a.step, "nodes": list(a.nodes), "what": a.what} for a in plan.actions]
        left = [asdict(entry) for entry in plan.left_out]
        render.answer(
            "plan",
            [{"kind": plan.kind, "actions": rows, "already": list(plan.already), "left_out": left}],
            (),
            "json",
        )
        return
    write = sys.stdout.write
    write(f"plan  {plan.kind} · {len(plan.nodes)} nodes · {len(plan.left_out)} left out\n")
    for action in plan.actions:
        write(f"  {action.step:<13} {fold(action.nodes):<28} {len(action.nodes):>4}   {action.what}\n")
    if plan.already:
        write(f"already in the pool\n  {fold(plan.already)}\n")
    sys.stdout.flush()
    print_left_out(plan)
    write("nothing was changed\n")


def print_left_out(plan: Plan) -> None:
    """Say which nodes the run does not touch, why, and what would change that."""
    if plan.already and not plan.nodes:
        sys.stderr.write(f"already in the pool: {fold(plan.already)}\n")
    if plan.left_out:
        sys.stderr.write("left out\n")
    for entry in plan.left_out:
        sys.stderr.write(f"  {entry.node}  {entry.cause}  {entry.reason}   next: {entry.next}\n")


def _limit(text: str, nodes: int) -> int:
    """Return how many nodes may fail: a number, or a share of `nodes` rounded down. -1: no limit."""
    if not text:
        return -1
    match = re.fullmatch(r"(\d+)(%?)", text.strip())
    if match is None:
        raise BadRequest("--max-fail", f"{text} is neither a number nor a percentage", "for example 3 or 10%")
    number = int(match[1])
    return nodes * number // 100 if match[2] else number


def seconds(text: str) -> float:
    """Return a duration such as 90, 90s, 15m or 2h in seconds. Raises BadRequest."""
    match = re.fullmatch(r"(\d+)([smh]?)", text.strip())
    if match is None:
        raise BadRequest("--timeout", f"{text} is no duration", "for example 90s, 15m or 2h")
    return float(match[1]) * {"": 1, "s": 1, "m": 60, "h": 3600}[match[2]]
