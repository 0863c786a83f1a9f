"""Commands that only look: status, nodes, show, history, runs, watch."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import asdict
from datetime import UTC, datetime

from inventory.model import Node, Pool
from inventory.records import AUTOMATION, Answer, NodeState
from provision import advice, runs
from provision.access import Access
from provision.cli import progress, render
from provision.cli.command import Ended, command
from provision.cli.commands.bringup import seconds
from provision.cli.progress import Watching
from provision.cli.selection import NODES, OUTPUT, POOL, RACK, open_site, select, select_or_all
from provision.pools.standing import breaker_line

_SELECT = {"nodes": NODES, "rack": RACK, "pool": POOL, "output": OUTPUT}


@command({"output": OUTPUT})
def status(output: str = "table") -> None:
    """Say how many nodes of each rack are where."""
    access = open_site()
    states = access.store.nodes()
    rows = [_rack_row(name, nodes, states) for name, nodes in _racks(access)]
    if len(rows) > 1:
        total = {key: sum(int(str(row[key])) for row in rows) for key in rows[0] if key != "rack"}
        rows.append({"rack": "total", **total})
    render.answer("racks", rows, list(rows[0]) if rows else ("rack",), output)
    sys.stdout.flush()
    if (breaker := access.store.breaker()).tripped_at is not None:
        sys.stderr.write(f"{breaker_line(breaker)}\n")


def _racks(access: Access) -> list[tuple[str, tuple[Node, ...]]]:
    return [(rack.name, rack.nodes) for rack in access.site.racks]


def _rack_row(name: str, nodes: Sequence[Node], states: dict[str, NodeState]) -> dict[str, object]:
    here = [states.get(node.name) or NodeState(node.name) for node in nodes]
    return {
        "rack": name,
        "nodes": len(here),
        **{str(pool): sum(state.pool == pool for state in here) for pool in Pool if pool is not Pool.RETIRED},
        "in_progress": sum(state.in_stage is not None for state in here),
        "needs_a_human": sum(_needs_a_human(state) for state in here),
    }


def _needs_a_human(state: NodeState) -> bool:
    return state.in_stage is None and (state.failed_stage is not None or _unjudged(state))


def _unjudged(state: NodeState) -> bool:
    """Say whether the gate could not tell: that neither admits nor condemns, so a human looks."""
    return state.last_verdict is Answer.UNKNOWN


@command(
    {
        **_SELECT,
        "failed": "only nodes that need a human: a stage failed, or the gate could not judge",
        "stage": "only nodes in or at this stage",
    },
    lists=("rack",),
)
def nodes(
    nodes: str = "",
    rack: Sequence[str] = (),
    pool: str = "",
    failed: bool = False,
    stage: str = "",
    output: str = "table",
) -> None:
    """List nodes, one line each."""
    access = open_site()
    chosen = select_or_all(access, nodes, rack, pool)
    states = access.store.nodes()
    now = datetime.now(UTC)
    rows = []
    for node in chosen:
        state = states.get(node.name) or NodeState(node.name)
        if failed and not _needs_a_human(state):
            continue
        if stage and stage not in (state.stage, state.in_stage, state.failed_stage):
            continue
        rows.append(_node_row(node, state, now))
    render.answer("nodes", rows, ("node", "stage", "pool", "since", "reason"), output)


def _node_row(node: Node, state: NodeState, now: datetime) -> dict[str, object]:
    since = max(
        (t for t in (state.stage_at, state.in_stage_at, state.failed_at, state.pool_since) if t), default=None
    )
    reason, follow = "", None
    if state.failed_stage:
        reason, follow = f"{state.reason_code}: {state.reason}", state.next
    elif _unjudged(state):
        reason = f"gate-unknown: the gate could not judge it {_ago(state.last_verdict_at)}"
        follow = f"invoke show --nodes {node.name}"
    return {
        "node": node.name,
        "stage": _stage_text(state),
        "pool": state.pool,
        "since": render.age(since, now),
        "reason": reason,
        "rack": node.rack,
        "serial": node.serial,
        "bmc": node.bmc.host,
        "address": node.address or state.address,
        "image": state.image,
        "verdict": state.last_verdict,
        "next": follow,
    }


def _ago(moment: datetime | None) -> str:
    return f"{render.age(moment)} ago" if moment else "never"


def _stage_since(state: NodeState) -> datetime | None:
    return state.in_stage_at or state.failed_at or state.stage_at


def _stage_text(state: NodeState) -> str:
    if state.in_stage is not None:
        return f"in {state.in_stage}"
    if state.failed_stage is not None:
        return f"failed at {state.failed_stage}"
    return str(state.stage)


@command({"nodes": NODES, "rack": RACK, "pool": POOL, "output": "table or json"}, lists=("rack",))
def show(nodes: str = "", rack: Sequence[str] = (), pool: str = "", output: str = "table") -> None:
    """Show everything known about nodes, what happened last and what to do next."""
    access = open_site()
    chosen = select(access, nodes, rack, pool)
    if output != "table":
        rows = []
        for node in chosen:
            state = asdict(access.store.node(node.name))
            events = [asdict(event) for event in access.store.events(node=node.name, limit=20)]
            rows.append({"node": node.name, "inventory": asdict(node), "state": state, "events": events})
        render.answer("nodes", rows, ("node",), output)
        return
    for number, node in enumerate(chosen):
        if number:
            sys.stdout.write("\n")
        _describe(access, node)


def _describe(access: Access, node: Node) -> None:
    state = access.store.node(node.name)
    profile = access.profile(node)
    unit = f" U{node.unit}" if node.unit else ""
    lines = [
        f"{node.name}   rack {node.rack}{unit} · {profile.vendor} {profile.model} · "
        f"serial {node.serial or '-'} · "
        f"BMC {node.bmc.host} ({node.bmc.protocol})",
        f"stage    {_stage_text(state)}, {_ago(_stage_since(state))}",
        f"pool     {_pool_text(state)}",
        f"image    {state.image or '-'} deployed {_ago(state.deployed_at)}   "
        f"MAAS {state.system_id or '-'}   address {node.address or state.address or '-'}",
    ]
    verdicts = access.store.verdicts(node.name, limit=1)
    for verdict in verdicts:
        lines.append(f"checks   {verdict.answer}, level {verdict.level}, {render.age(verdict.ts)} ago")
        lines += [f"  {reason}" for reason in verdict.reasons]
    if state.failed_stage is not None:
        lines.append(f"reason   {state.reason_code}: {state.reason}")
        lines.append(f"evidence {state.evidence or '-'}")
    shown = list(reversed(access.store.events(node=node.name, limit=8)))
    lines += [f"{'events' if not n else '':<8} {e.ts:%H:%M:%S} {e.message}" for n, e in enumerate(shown)]
    if state.failed_stage is not None and state.next:
        lines.append(f"next     {state.next}")
    sys.stdout.write("\n".join(lines) + "\n")


def _pool_text(state: NodeState) -> str:
    if state.pool is None:
        return "-"
    by = "automation" if state.pool_by == AUTOMATION else state.pool_by
    return f'{state.pool}, by {by} {render.age(state.pool_since)} ago: "{state.pool_why}"'


@command(
    {
        "nodes": NODES,
        "rack": RACK,
        "pool": POOL,
        "limit": "how many events at most",
        "output": "table or json",
    },
    lists=("rack",),
)
def history(
    nodes: str = "", rack: Sequence[str] = (), pool: str = "", limit: str = "100", output: str = "table"
) -> None:
    """List what happened to nodes, oldest first: who, why, in which run."""
    access = open_site()
    rows = []
    for node in select(access, nodes, rack, pool):
        for event in access.store.events(node=node.name, limit=int(limit)):
            rows.append(
                {
                    "time": event.ts,
                    "node": event.node,
                    "by": event.actor,
                    "run": event.run,
                    "event": event.message,
                }
            )
    render.answer("events", rows, ("time", "node", "by", "run", "event"), output)


@command({"output": OUTPUT, "limit": "how many runs at most"})
def runs_(output: str = "table", limit: str = "20") -> None:
    """List runs, newest first."""
    access = open_site()
    rows = [
        {
            "run": record.id,
            "kind": record.kind,
            "nodes": record.selector,
            "state": record.state,
            "started": render.age(record.started_at),
            "by": record.who,
            "reason": record.reason or "",
        }
        for record in access.store.runs(limit=int(limit))
    ]
    render.answer("runs", rows, ("run", "kind", "nodes", "state", "started", "by", "reason"), output)


@command(
    {
        "run": "id of the run (default: the latest)",
        "exit_status": "end with the run's own exit status",
        "timeout": "stop watching after this long, for example 90m",
        "output": "table, or json: one line an event on stdout",
    }
)
def watch(run: str = "", exit_status: bool = False, timeout: str = "", output: str = "table") -> None:
    """Follow a run that is under way; Ctrl-C leaves it running."""
    access = open_site()
    latest = access.store.runs(limit=1)
    name = run or (latest[0].id if latest else "")
    runs.known(access, name)
    ended = progress.watch(
        access, name, Watching.here(output=output, timeout_s=seconds(timeout) if timeout else 0.0)
    )
    if not ended and timeout:
        raise Ended(advice.EXIT_STILL_RUNNING)
    result = progress.summary(access, name)
    raise Ended(result if exit_status else advice.EXIT_OK)
