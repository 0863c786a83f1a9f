"""pool.*: who is in which pool, handing nodes out, replacing failed ones, spares, and the breaker."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Sequence
from pathlib import Path

from inventory.model import Node, Pool
from inventory.nodeset import fold
from inventory.records import Allocation
from provision import advice, guards
from provision.access import Access
from provision.cli import render
from provision.cli.command import Ended, command
from provision.cli.confirm import asking
from provision.cli.selection import NODES, OUTPUT, POOL, RACK, open_site, select, select_or_all
from provision.errors import BadRequest
from provision.pools import allocation, files, replacing, spares, standing
from provision.pools import mirror as mirroring
from provision.pools.allocation import HandedOut
from provision.pools.candidates import Candidate
from provision.pools.choosing import Wanted

_HOSTFILE = {
    "hostfile": "file to write the nodes into, one a line",
    "slots": "write Open MPI's form, with this many slots a node",
}
_DRY_RUN = {"dry_run": "say what would be done and change nothing"}
_REASON = {"reason": "why, for the record", "yes": "do not ask"}


@command({"output": "table, json or yaml"})
def status(output: str = "table") -> None:
    """Say how every rack's pools stand, who holds which nodes, and what needs a human."""
    render.check_format(output)
    access = open_site()
    now = standing.look(access)
    if output in ("json", "yaml"):
        render.answer("pools", [now.to_json()], (), output)
        return
    racks = [row.to_json() for row in now.racks]
    render.answer("racks", racks, list(racks[0]) if racks else ("rack",), "table")
    if now.allocations:
        sys.stdout.write("\n")
        rows = [{**row.to_json(), "since": render.age(row.since)} for row in now.allocations]
        render.answer(
            "allocations", rows, ("name", "nodes", "count", "by", "since", "reason", "bad"), "table"
        )
    sys.stdout.flush()
    for line in now.remarks():
        sys.stderr.write(f"{line}\n")


@command(
    {
        "count": "how many nodes; required for a new name",
        "name": "name to hand them out under; the same name gives the same nodes (default: a new one)",
        "nodes": NODES,
        "rack": RACK,
        "profile": "hardware profile; all nodes handed out are of one",
        "same_pod": "all of one pod; racks are kept together",
        "healthiest": "the healthiest, whatever racks they stand in",
        "reason": "why, for the record",
        **_HOSTFILE,
        **_DRY_RUN,
        "output": OUTPUT,
    },
    lists=("rack",),
)
def allocate(
    count: str = "",
    name: str = "",
    nodes: str = "",
    rack: Sequence[str] = (),
    profile: str = "",
    same_pod: bool = False,
    healthiest: bool = False,
    reason: str = "",
    hostfile: str = "",
    slots: str = "",
    dry_run: bool = False,
    output: str = "table",
) -> None:
    """Hand out reliable nodes, and record to whom and why, so that nobody else gets them."""
    render.check_format(output)
    writing = _hostfile(hostfile, slots)
    access = open_site(prepare=not dry_run)
    wanted = Wanted(_count("--count", count), same_pod, healthiest)
    among = _of_profile(access, select_or_all(access, nodes, rack, ""), profile)
    if dry_run:
        _say_plan(access, name, wanted, among, output)
        return
    given = name or allocation.new_name(access)
    result = asyncio.run(allocation.allocate(access, given, wanted, among, reason=reason))
    _note(mirroring.publish(access))
    _write(writing, result.nodes)
    _print_nodes(access, result, output)
    sys.stdout.flush()
    already = "already has" if result.already else "has"
    where = f", hostfile {writing[0]}" if writing[0] else ""
    racks = len({node.rack for node in result.nodes})
    nodes_of_racks = f"{_plural(len(result.nodes), 'node')} of {_plural(racks, 'rack')}"
    sys.stderr.write(f"{result.name} {already} {nodes_of_racks}{where}\n")


@command(
    {"name": "allocation to return as a whole", "nodes": NODES, "rack": RACK, **_REASON}, lists=("rack",)
)
def return_(
    name: str = "", nodes: str = "", rack: Sequence[str] = (), reason: str = "", yes: bool = False
) -> None:
    """Take nodes back from who they are handed out to; they stay in their pools."""
    access = open_site(prepare=True)
    if name and (nodes or rack):
        raise BadRequest("--name", "it goes without --nodes and --rack", "give one or the other")
    if name:
        chosen = [access.node(one.node) for one in allocation.members_of(access, name)]
    else:
        chosen = list(select(access, nodes, rack, ""))
    taken = access.store.allocations()
    ours = [node for node in chosen if node.name in taken]
    others = {taken[node.name].who for node in ours} - {access.settings.who}
    if ours:
        plan = f"{fold(node.name for node in ours)} is taken from {', '.join(sorted(others))}."
        # What is one's own needs no question.
        asked = asking(yes=yes or not others, reason=reason)
        consent = guards.ask(access, ours, action="return", plan=plan, asking=asked)
        allocation.give_back(access, consent)
        _note(mirroring.publish(access))
        sys.stdout.write(f"{fold(consent.nodes)} returned\n")
    idle = [node.name for node in chosen if node.name not in taken]
    if idle:
        sys.stderr.write(f"not allocated: {fold(idle)}\n")


@command(
    {
        "nodes": NODES,
        "rack": RACK,
        "pool": POOL,
        "reason": "what is wrong with them, for the record; required",
        "yes": "do not ask",
        "partial": "replace as many as there are spares; the rest leave without",
        "run": "command to run afterwards; finds the new hostfile in MUSTER_HOSTFILE",
        **_HOSTFILE,
        **_DRY_RUN,
    },
    lists=("rack",),
)
def replace(
    nodes: str = "",
    rack: Sequence[str] = (),
    pool: str = "",
    reason: str = "",
    yes: bool = False,
    partial: bool = False,
    run: str = "",
    hostfile: str = "",
    slots: str = "",
    dry_run: bool = False,
) -> None:
    """Put the healthiest spare in the place of each failed node, which is quarantined."""
    if not reason.strip():
        raise BadRequest("--reason", "it needs a reason", "add --reason '...'")
    writing = _hostfile(hostfile, slots)
    access = open_site(prepare=not dry_run)
    chosen = select(access, nodes, rack, pool)
    plan = asyncio.run(replacing.plan(access, chosen, partial=partial))
    if (writing[0] or run) and len(plan.names) != 1:
        what = f"they are of {len(plan.names)} allocations, and a hostfile is of one"
        raise BadRequest("--nodes", what, "invoke pool.status; replace them one allocation at a time")
    _print_replacement(plan)
    if dry_run:
        sys.stdout.write("nothing was changed\n")
        return
    if plan.failed:
        said = f"{fold(node.name for node in plan.failed)} goes to quarantine."
        asked = asking(yes=yes, reason=reason)
        consent = guards.ask(access, plan.failed, action="replace", plan=said, asking=asked)
        replacing.carry_out(access, plan, consent)
        _mirror(access, replacing.changed_nodes(plan))
    if plan.names:
        _write(writing, files.members(access.site, access.store.allocations(), plan.names[0]))
    if run:
        path = writing[0] or files.allocated_file(access.settings.state, plan.names[0])
        sys.stdout.flush()
        asyncio.run(replacing.relaunch(run, path.absolute(), plan.names[0]))
    if plan.without:
        sys.stdout.flush()
        sys.stderr.write(f"no spare was left for {fold(node.name for node in plan.without)}\n")
        raise Ended(advice.EXIT_NODES_FAILED)


@command({"yes": "do not ask", **_DRY_RUN, "output": OUTPUT})
def balance(yes: bool = False, dry_run: bool = False, output: str = "table") -> None:
    """Give every rack its share of spares: the site files' spare_share of its admitted nodes."""
    render.check_format(output)
    access = open_site(prepare=not dry_run)
    moves = asyncio.run(spares.plan(access))
    rows = [{"node": move.node, "to": move.to, "why": move.why} for move in moves]
    if not moves and output == "table":
        sys.stdout.write("every rack has its share of spares\n")
    else:
        render.answer("moves", rows, ("node", "to", "why"), output)
    sys.stdout.flush()
    if dry_run:
        sys.stderr.write("nothing was changed\n")
        return
    if moves:
        said = f"{_plural(len(moves), 'node')} to move between reliable and spare."
        moving = [access.node(move.node) for move in moves]
        consent = guards.ask(access, moving, action="balance", plan=said, asking=asking(yes=yes))
        late = spares.carry_out(access, moves, consent)
        _mirror(access, consent.nodes)
        if late:
            sys.stderr.write(f"left alone, something was quicker: {fold(late)}\n")
            raise Ended(advice.EXIT_NODES_FAILED)


@command({"nodes": NODES, "rack": RACK, "pool": POOL}, lists=("rack",))
def mirror(nodes: str = "", rack: Sequence[str] = (), pool: str = "") -> None:
    """Show the pools to MAAS, Prometheus and launchers again, for example once MAAS is back."""
    access = open_site(prepare=True)
    chosen = [node.name for node in select_or_all(access, nodes, rack, pool)]
    problems = asyncio.run(mirroring.mirror(access, chosen))
    if problems:
        sys.stderr.write("".join(f"{problem}\n" for problem in problems))
        raise Ended(advice.EXIT_NODES_FAILED)
    sys.stdout.write(f"{len(chosen)} nodes are shown as they stand\n")


@command({"reason": "what was found and done, for the record; required"})
def resume(reason: str = "") -> None:
    """Let automation quarantine reliable nodes again, after too many left at once."""
    if not reason.strip():
        raise BadRequest("--reason", "it needs a reason", "add --reason '...'")
    access = open_site()
    if access.store.breaker().tripped_at is None:
        sys.stdout.write("automatic quarantine was not stopped\n")
        return
    access.store.resume_breaker(by=access.settings.who, why=reason)
    sys.stdout.write("automatic quarantine goes on\n")
    doubtful = standing.look(access).doubtful
    if doubtful:
        sys.stderr.write(
            f"in the pool without a fresh yes: {fold(doubtful)}\n"
            f"  next: invoke verify --nodes '{fold(doubtful)}'\n"
        )


def _plural(count: int, what: str) -> str:
    return f"{count} {what}" + ("" if count == 1 else "s")


def _of_profile(access: Access, nodes: Sequence[Node], profile: str) -> list[Node]:
    if profile and profile not in access.site.profiles:
        known = ", ".join(access.site.profiles)
        raise BadRequest("--profile", f"{profile} is no profile", f"one of {known}")
    return [node for node in nodes if not profile or node.profile == profile]


def _count(option: str, text: str) -> int:
    if text and not (text.isdecimal() and 0 < int(text) < 1_000_000):
        raise BadRequest(option, f"{text} is not a number from 1 up", f"for example {option} 8")
    return int(text) if text else 0


def _hostfile(hostfile: str, slots: str) -> tuple[Path | None, int | None]:
    """Read both options, before anything is changed."""
    path = Path(hostfile) if hostfile else None
    if path is not None:
        files.check_writable(path)
    return path, _count("--slots", slots) or None


def _write(writing: tuple[Path | None, int | None], nodes: Sequence[Node]) -> None:
    path, slots = writing
    if path is not None:
        files.write_hostfile(path, nodes, slots)


def _mirror(access: Access, nodes: Sequence[str]) -> None:
    _note(asyncio.run(mirroring.mirror(access, nodes)))


def _note(problems: Sequence[str]) -> None:
    for problem in problems:
        sys.stderr.write(f"note: {problem}\n  next: invoke pool.mirror\n")


def _say_plan(access: Access, name: str, wanted: Wanted, among: Sequence[Node], output: str) -> None:
    result = allocation.existing(access, name, wanted.count) if name else None
    if result is None:
        chosen = asyncio.run(allocation.plan(access, wanted, among))
        result = HandedOut(name, tuple(one.node for one in chosen), chosen, already=False)
    _print_nodes(access, result, output)
    sys.stdout.flush()
    sys.stderr.write("nothing was changed\n")


def _print_nodes(access: Access, result: HandedOut, output: str) -> None:
    pods = {rack.name: rack.pod for rack in access.site.racks}
    ranks: dict[str, Candidate] = {one.name: one for one in result.ranks}
    held: dict[str, Allocation] = access.store.allocations()
    rows = []
    for node in result.nodes:
        row: dict[str, object] = {"node": node.name, "rack": node.rack, "pod": pods[node.rack]}
        if node.name in ranks:
            one = ranks[node.name]
            row |= {"demerits": one.rank.demerits, "health": one.rank.reason}
        else:
            state = access.store.node(node.name)
            well = state.pool is Pool.RELIABLE
            row |= {"demerits": None, "health": "" if well else f"in {state.pool}: {state.pool_why}"}
        given = held.get(node.name)
        row["instead_of"] = given.instead_of if given else None
        rows.append(row)
    render.answer("nodes", rows, ("node", "rack", "pod", "demerits", "health"), output)


def _print_replacement(plan: replacing.Plan) -> None:
    for node in plan.failed:
        spare = plan.spares.get(node.name)
        if spare is None:
            sys.stdout.write(f"{node.name} -> no spare\n")
        else:
            near = "same rack" if spare.node.rack == node.rack else f"rack {spare.node.rack}"
            sys.stdout.write(f"{node.name} -> {spare.name}   {near}; {spare.rank.reason}\n")
    if plan.done:
        sys.stderr.write(f"replaced before: {fold(node.name for node in plan.done)}\n")
    if plan.idle:
        names = fold(node.name for node in plan.idle)
        sys.stderr.write(f"neither reliable nor allocated, nothing to replace: {names}\n")
