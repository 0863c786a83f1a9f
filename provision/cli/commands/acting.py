"""Commands that change where nodes stand: quarantine, release, retire, verify, cancel."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

from health import catalogue, verdict
from health import evidence as evidence_files
from health.check import Level
from health.errors import EvidenceBroken
from health.verdict import Answer, Verdict
from inventory.admission import ADMITTED, HELD
from inventory.model import Node, Pool
from inventory.nodeset import fold
from provision import advice, flow, gate, guards, runs
from provision.access import Access
from provision.cli import render
from provision.cli.command import Ended, command
from provision.cli.confirm import asking
from provision.cli.selection import NODES, OUTPUT, POOL, RACK, open_site, select
from provision.errors import BadRequest
from provision.gate import GateResult
from provision.pools.mirror import mirror

_SELECT = {"nodes": NODES, "rack": RACK, "pool": POOL}
_REASON = {"reason": "why, for the record; required", "yes": "do not ask"}


def _require_reason(reason: str) -> None:
    if not reason.strip():
        raise BadRequest("--reason", "it needs a reason", "add --reason '...'")


@command({**_SELECT, **_REASON}, lists=("rack",))
def quarantine(
    nodes: str = "", rack: Sequence[str] = (), pool: str = "", reason: str = "", yes: bool = False
) -> None:
    """Take nodes out of use until a human releases them."""
    _require_reason(reason)
    _move(nodes, rack, pool, Pool.QUARANTINE, reason, yes)


@command({**_SELECT, **_REASON}, lists=("rack",))
def retire(
    nodes: str = "", rack: Sequence[str] = (), pool: str = "", reason: str = "", yes: bool = False
) -> None:
    """Take nodes out for good; bring-up and re-image leave them alone."""
    _require_reason(reason)
    _move(nodes, rack, pool, Pool.RETIRED, reason, yes)


@command({**_SELECT, **_REASON}, lists=("rack",))
def release(
    nodes: str = "", rack: Sequence[str] = (), pool: str = "", reason: str = "", yes: bool = False
) -> None:
    """Lift a hold. The nodes are in no pool then, and join one only through the gate."""
    _require_reason(reason)
    _move(nodes, rack, pool, None, reason, yes)


def _move(nodes: str, rack: Sequence[str], from_pool: str, to: Pool | None, reason: str, yes: bool) -> None:
    access = open_site(prepare=True)
    chosen = select(access, nodes, rack, from_pool)
    moving = [node for node in chosen if _would_move(access, node, to)]
    if moving:
        word = str(to) if to else "no pool"
        plan = f"{fold(node.name for node in moving)} goes to {word}."
        consent = guards.ask(access, moving, action=word, plan=plan, asking=asking(yes=yes, reason=reason))
        for name in consent.nodes:
            access.store.set_pool(name, to, by=consent.who, why=reason, serial=access.node(name).serial)
        for problem in asyncio.run(mirror(access, consent.nodes)):
            sys.stderr.write(f"note: {problem}\n")
    word = f"in {to}" if to else "released"
    sys.stdout.write(f"{fold(node.name for node in chosen)} {word}\n")


def _would_move(access: Access, node: Node, to: Pool | None) -> bool:
    state = access.store.node(node.name)
    if to is None:
        return state.pool in HELD
    # A hold by automation becomes a human's when a human asks for the same.
    return state.pool != to or state.pool_by != access.settings.who


@command(
    {
        **_SELECT,
        "level": "quick, full or burnin",
        "evidence": "judge this saved evidence file instead of asking a node; needs --profile",
        "profile": "hardware profile for --evidence",
        "no_record": "judge, but record nothing and change no pool",
        "output": "table or json",
    },
    lists=("rack",),
)
def verify(
    nodes: str = "",
    rack: Sequence[str] = (),
    pool: str = "",
    level: str = "quick",
    evidence: str = "",
    profile: str = "",
    no_record: bool = False,
    output: str = "table",
) -> None:
    """Ask the gate: yes, no or unknown, with reasons. A reliable node that gets a no is quarantined."""
    wanted = _level(level)
    if evidence:
        _verify_file(Path(evidence), profile, wanted, output)
    access = open_site(prepare=True)
    chosen = select(access, nodes, rack, pool)
    results = asyncio.run(_ask_all(access, chosen, wanted))
    if not no_record:
        for node in chosen:
            _record(access, node, wanted, results[node.name])
        asyncio.run(_follow_up(access, results))
    _print_verdicts({name: result.verdict for name, result in results.items()}, output)


def _level(text: str) -> Level:
    try:
        return Level(text)
    except ValueError as error:
        raise BadRequest("--level", f"{text} is no level", f"one of {', '.join(Level)}") from error


async def _ask_all(access: Access, nodes: Sequence[Node], level: Level) -> dict[str, GateResult]:
    room = asyncio.Semaphore(64)

    async def one(node: Node) -> GateResult:
        async with room:
            return await gate.judge_node(
                access.ssh(node), access.profile(node), level, become=access.site.ssh.become
            )

    results = await asyncio.gather(*(one(node) for node in nodes))
    return {node.name: result for node, result in zip(nodes, results, strict=True)}


def _record(access: Access, node: Node, level: Level, result: GateResult) -> None:
    folder = access.settings.state / "verify" / node.name
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{datetime.now(UTC):%Y%m%dT%H%M%S.%fZ}.json"
    path.write_bytes(result.raw)
    access.store.record_verdict(
        node.name,
        run=None,
        level=str(level),
        answer=str(result.verdict.answer),
        reasons=[str(reason) for reason in result.verdict.reasons],
        evidence=str(path),
        collected_at=result.collected_at,
    )


async def _follow_up(access: Access, results: dict[str, GateResult]) -> None:
    """A node that the gate refuses leaves the admitted pools; unknown alone condemns nobody."""
    for name, result in results.items():
        if result.verdict.answer is Answer.NO and access.store.node(name).pool in ADMITTED:
            await flow.quarantine(access, name, run=None, why=f"gate: {result.verdict.summary}")


def _verify_file(path: Path, profile: str, level: Level, output: str) -> None:
    access = open_site()
    if profile not in access.site.profiles:
        raise BadRequest(
            "--profile", f"{profile or 'none'} is no profile", f"one of {', '.join(access.site.profiles)}"
        )
    try:
        raw = path.read_bytes()
    except OSError as error:
        raise BadRequest(
            "--evidence", f"{path}: {error.strerror}", "name a file that verify or bringup saved"
        ) from error
    known = access.site.profiles[profile]
    try:
        found = evidence_files.parse(raw, nonce=evidence_files.nonce_of(raw))
        judged = verdict.verdict(found, known, level)
    except EvidenceBroken as error:
        judged = verdict.verdict(None, known, level, problem=str(error))
    _print_verdicts({path.name: judged}, output)


def _print_verdicts(verdicts: dict[str, Verdict], output: str) -> None:
    if output == "json":
        rows = [{"node": name, **judged.to_json()} for name, judged in verdicts.items()]
        render.answer("verdicts", rows, ("node",), "json")
    else:
        groups: dict[str, list[str]] = {}
        for name, judged in verdicts.items():
            body = "\n".join([judged.summary, *(f"    {reason}" for reason in judged.reasons)])
            groups.setdefault(body.replace(name, "NODE"), []).append(name)
        for body, names in sorted(groups.items(), key=lambda item: not item[0].startswith("yes")):
            sys.stdout.write(f"{fold(names)}   {body}\n")
    answers = {judged.answer for judged in verdicts.values()}
    raise Ended(advice.EXIT_OK if answers <= {Answer.YES} else advice.EXIT_NODES_FAILED)


@command({"output": OUTPUT, "level": "quick, full or burnin; default: all"})
def checks(output: str = "table", level: str = "") -> None:
    """List the checks that the gate knows."""
    rows = [
        {"check": check.id, "level": check.level, "collects": ", ".join(item.id for item in check.collects)}
        for check in catalogue.CHECKS
        if not level or check.level == _level(level)
    ]
    render.answer("checks", rows, ("check", "level", "collects"), output)


@command({"run": "id of the run; required", "reason": "why, for the record", "yes": "do not ask"})
def cancel(run: str = "", reason: str = "", yes: bool = False) -> None:
    """Stop a run. Stages under way are stopped too; nodes stay where they are."""
    if not run:
        raise BadRequest("--run", "it needs the id of a run", "invoke runs")
    access = open_site()
    runs.known(access, run)
    nodes = [access.node(name) for name in access.store.run_nodes(run)]
    plan = f"this stops {run} ({len(nodes)} nodes)."
    guards.ask(access, nodes[:1], action="cancel", plan=plan, asking=asking(yes=yes, reason=reason))
    count = runs.cancel(access, run, access.settings.who, reason)
    sys.stdout.write(f"{run} cancelled, {count} parts were unfinished\n")
