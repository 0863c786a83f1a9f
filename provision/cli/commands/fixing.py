"""fix: do what the gate's findings ask for, mildest first, and ask the whole gate again after each."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Sequence
from typing import NoReturn

from health.check import Level
from health.verdict import Answer
from inventory.model import Node
from inventory.nodeset import fold
from provision import advice, fixes, fixing, gate, guards, judging
from provision.access import Access
from provision.cli import render
from provision.cli.command import Ended, command
from provision.cli.confirm import asking
from provision.cli.selection import NODES, POOL, RACK, open_site, select
from provision.errors import BadRequest
from provision.fixes import Climbed, Ladder
from provision.fixing import Fix, Rung, Stop
from provision.gate_memory import GateMemory
from provision.planning import held_by_human

_RUNGS = ", ".join(Rung)


@command(
    {
        "nodes": NODES,
        "rack": RACK,
        "pool": POOL,
        "level": "level of the gate before and after each fix: quick, full or burnin",
        "highest": f"how far to go: {_RUNGS}; reimage wipes disks",
        "reason": "why, for the record",
        "override": f"guard to pass, with the reason: {', '.join(guards.OVERRIDABLE)}",
        "dry_run": "judge, say what would be done first, and change nothing",
        "yes": "do not ask",
        "output": "table or json",
    },
    lists=("rack",),
)
def fix(
    nodes: str = "",
    rack: Sequence[str] = (),
    pool: str = "",
    level: str = "quick",
    highest: str = "power_cycle",
    reason: str = "",
    override: str = "",
    dry_run: bool = False,
    yes: bool = False,
    output: str = "table",
) -> None:
    """Climb the fix ladder: what findings ask for, each rung once, evidence first, the gate again after."""
    render.check_format(output)
    wanted, top = _level(level), _rung(highest)
    access = open_site(prepare=True)
    chosen, held = _not_held(access, select(access, nodes, rack, pool))
    for line in held:
        sys.stderr.write(f"left out: {line}\n")
    if not chosen:
        raise Ended(advice.EXIT_REFUSED)
    if dry_run:
        _plan(access, chosen, wanted, top, output)
    asked = asking(yes=yes, override=override, reason=reason)
    asyncio.run(guards.guard(access, chosen, action="fix", asking=asked))
    does = (
        "may wipe the disks" if top is Rung.REIMAGE else "may restart services, reset GPUs and cut the power"
    )
    plan = f"this {does} of {fold(node.name for node in chosen)}, up to {top}."
    consent = guards.ask(access, chosen, action="fix", plan=plan, asking=asked)

    def say(line: str) -> None:
        sys.stderr.write(f"{line}\n")

    ladders = [Ladder(access, node, wanted, consent, top, say) for node in chosen]
    _end(asyncio.run(fixes.climb_all(ladders)), output, left_out=bool(held))


def _level(text: str) -> Level:
    try:
        return Level(text)
    except ValueError as error:
        raise BadRequest("--level", f"{text} is no level", f"one of {', '.join(Level)}") from error


def _rung(text: str) -> Rung:
    try:
        return Rung(text)
    except ValueError as error:
        raise BadRequest("--highest", f"{text} is no rung", f"one of {_RUNGS}") from error


def _not_held(access: Access, nodes: Sequence[Node]) -> tuple[list[Node], list[str]]:
    """Part nodes into those that automation may touch, and those that a human holds."""
    free, held = [], []
    for node in nodes:
        out = held_by_human(access.store.node(node.name))
        if out is None:
            free.append(node)
        else:
            held.append(f"{out.node}: {out.cause} {out.reason}; next: {out.next}")
    return free, held


def _plan(access: Access, nodes: Sequence[Node], level: Level, top: Rung, output: str) -> NoReturn:
    """Print the first thing that would be done to each node, and end."""
    memory = GateMemory(access)
    found: dict[str, gate.GateResult] = {}
    questions = [judging.question(access, node, memory) for node in nodes]
    asyncio.run(gate.judge_all(questions, level, found.__setitem__))
    rows = []
    for node in nodes:
        choice = fixing.choose(found[node.name].verdict, (), highest=top)
        row = {"node": node.name, "answer": str(found[node.name].verdict.answer), "first": "-", "why": "-"}
        if isinstance(choice, Fix):
            row |= {"first": " ".join((str(choice.rung), *choice.parts)), "why": choice.why}
        elif isinstance(choice, Stop):
            row |= {"first": "a human", "why": choice.why}
        rows.append(row)
    render.answer("plan", rows, ("node", "answer", "first", "why"), output)
    sys.stderr.write("nothing was changed\n")
    raise Ended(advice.EXIT_OK)


def _end(done: Sequence[Climbed], output: str, *, left_out: bool) -> NoReturn:
    rows = [
        {
            "node": one.node,
            "answer": str(one.verdict.answer),
            "tried": ", ".join(f"{step.rung} ({step.came})" for step in one.steps) or "nothing",
            "why": one.stop.why if one.stop else one.verdict.summary,
            "next": _next(one),
            "evidence": str(one.evidence),
        }
        for one in done
    ]
    if output == "table":
        for row in rows:
            sys.stdout.write(f"{row['node']}   {row['answer']}   tried: {row['tried']}\n    {row['why']}\n")
            sys.stdout.write(f"    next: {row['next']}\n")
    else:
        render.answer("fixes", rows, ("node", "answer", "tried", "next"), output)
    good = all(one.verdict.answer is Answer.YES for one in done) and not left_out
    raise Ended(advice.EXIT_OK if good else advice.EXIT_NODES_FAILED)


def _next(one: Climbed) -> str:
    if one.stop is not None:
        return one.stop.next.replace("{node}", one.node)
    return f"invoke bringup --nodes {one.node}" if one.steps else "nothing: the gate says yes"
