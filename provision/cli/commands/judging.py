"""verify, checks, judge: the gate's answer about nodes, about saved evidence, and about saved outputs."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

from bmc.console.causes import Watch
from bmc.console.plain import Plain
from health import catalogue, verdict
from health import evidence as evidence_files
from health import samples as saved
from health.check import Check, Level
from health.errors import EvidenceBroken, SamplesUnreadable, UnknownCheck
from health.verdict import Answer, Verdict
from inventory.admission import ADMITTED
from inventory.model import Node, Profile
from inventory.nodeset import fold
from provision import advice, flow, gate, judging, usage
from provision.access import Access
from provision.cli import render, verdicts
from provision.cli.command import Ended, command
from provision.cli.selection import NODES, OUTPUT, POOL, RACK, open_site, select
from provision.errors import BadRequest, Refused
from provision.gate import GateResult
from provision.gate_memory import GateMemory


@command(
    {
        "nodes": NODES,
        "rack": RACK,
        "pool": POOL,
        "level": "quick, full or burnin; the last two put nodes under load, so they must be idle",
        "check": "only this check; may be repeated. Nothing is recorded then",
        "evidence": "judge this saved evidence file instead of asking a node; needs --profile",
        "profile": "hardware profile for --evidence",
        "no_record": "judge, but record nothing and change no pool",
        "output": "table, wide (every reason), json",
    },
    lists=("rack", "check"),
)
def verify(
    nodes: str = "",
    rack: Sequence[str] = (),
    pool: str = "",
    level: str = "quick",
    check: Sequence[str] = (),
    evidence: str = "",
    profile: str = "",
    no_record: bool = False,
    output: str = "table",
) -> None:
    """Ask the gate: yes, no or unknown, with reasons. A reliable node that gets a no is quarantined."""
    wanted = _level(level)
    _known_checks(check, wanted)
    if evidence:
        _verify_file(Path(evidence), profile, wanted, check, output)
    access = open_site(prepare=True)
    chosen = select(access, nodes, rack, pool)
    asyncio.run(_idle(access, chosen, wanted))
    asked = _Asked(access, wanted, tuple(check), recording=not (no_record or check))
    answers = asyncio.run(asked.all(chosen))
    for line in asked.remarks():
        sys.stderr.write(f"note: {line}\n")
    _end(answers, output)


def _end(answers: dict[str, Verdict], output: str) -> None:
    verdicts.show(answers, output)
    good = all(judged.answer is Answer.YES for judged in answers.values())
    raise Ended(advice.EXIT_OK if good else advice.EXIT_NODES_FAILED)


class _Asked:
    """One time that the gate is asked about some nodes."""

    def __init__(self, access: Access, level: Level, checks: tuple[str, ...], *, recording: bool) -> None:
        self._access = access
        self._level = level
        self._checks = checks
        self._recording = recording
        self._memory = GateMemory(access)
        self._cards = 0

    async def all(self, nodes: Sequence[Node]) -> dict[str, Verdict]:
        """Ask about all; where the answer is unknown, once more; act on what is no."""
        by_name = {node.name: node for node in nodes}
        answers: dict[str, Verdict] = {}

        def take(name: str, result: GateResult) -> None:
            answers[name] = result.verdict
            if self._recording:
                self._keep(by_name[name], result)

        questions = [self._question(node) for node in nodes]
        await gate.judge_all(questions, self._level, take, tries=gate.TRIES)
        if self._recording:
            await self._follow_up(answers)
            self._memory.learn()
        return {node.name: answers[node.name] for node in nodes}

    def remarks(self) -> list[str]:
        """Return what beside the answers an operator should know."""
        found = sorted(self._memory.problems)
        if self._cards:
            found.append(f"{self._cards} new triage cards of odd boot lines; see invoke triage.list")
        return found

    def _question(self, node: Node) -> gate.Question:
        profile = _narrowed(self._access.profile(node), self._checks)
        return judging.question(self._access, node, self._memory, profile)

    def _keep(self, node: Node, result: GateResult) -> None:
        folder = self._access.settings.state / "verify" / node.name
        path = folder / f"{datetime.now(UTC):%Y%m%dT%H%M%S.%fZ}.json"
        self._cards += len(judging.record(self._memory, node, self._level, result, path))

    async def _follow_up(self, answers: dict[str, Verdict]) -> None:
        """A node that the gate refuses leaves the admitted pools; unknown alone condemns nobody."""
        for name, judged in answers.items():
            if judged.answer is Answer.NO and self._access.store.node(name).pool in ADMITTED:
                await flow.quarantine(self._access, name, run=None, why=f"gate: {judged.summary}")


async def _idle(access: Access, nodes: Sequence[Node], level: Level) -> None:
    """Raise Refused for a node that would be put under load while something may run on it."""
    if level is Level.QUICK:
        return
    for name, use in (await usage.look(access, nodes)).items():
        raise Refused("in-use", name, use.reason, detail=use.detail)
    admitted = [node.name for node in nodes if access.store.node(node.name).pool in ADMITTED]
    if level is Level.BURNIN and admitted:
        reason = f"{fold(admitted)} may be handed out at any time, and a burn-in takes hours"
        raise Refused("in-use", admitted[0], reason, detail="quarantine them first, with a reason")


def _narrowed(profile: Profile, checks: Sequence[str]) -> Profile:
    return replace(profile, checks=tuple(checks)) if checks else profile


def _known_checks(checks: Sequence[str], level: Level) -> None:
    for name in checks:
        try:
            found = catalogue.check(name)
        except UnknownCheck as error:
            raise BadRequest("--check", f"{name} is no check", "invoke checks") from error
        if not level.holds(found.level):
            raise BadRequest("--check", f"{name} is of level {found.level}", f"add --level {found.level}")


def _level(text: str) -> Level:
    try:
        return Level(text)
    except ValueError as error:
        raise BadRequest("--level", f"{text} is no level", f"one of {', '.join(Level)}") from error


def _verify_file(path: Path, profile: str, level: Level, checks: Sequence[str], output: str) -> None:
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
    known = _narrowed(access.site.profiles[profile], checks)
    try:
        found = evidence_files.parse(raw, nonce=evidence_files.nonce_of(raw))
        judged = verdict.verdict(found, known, level)
    except EvidenceBroken as error:
        judged = verdict.verdict(None, known, level, problem=str(error))
    _end({path.name: judged}, output)


@command(
    {
        "output": OUTPUT,
        "level": "quick, full or burnin; default: all",
        "check": "only this check; may be repeated",
        "profile": "say which of them this hardware profile requires, and which are in shadow there",
    },
    lists=("check",),
)
def checks(output: str = "table", level: str = "", check: Sequence[str] = (), profile: str = "") -> None:
    """List the checks that the gate knows: level, whether they gate, what they ask."""
    known = _profile(profile) if profile else None
    shadowed = catalogue.shadowed(known) if known else {one.id for one in catalogue.CHECKS if not one.gates}
    wanted = _level(level) if level else None
    rows = [
        {
            "check": one.id,
            "level": one.level,
            "gates": "shadow" if one.id in shadowed else "yes",
            "asks": _asks(one),
            "collects": ", ".join(item.id for item in one.collects),
        }
        for one in catalogue.CHECKS
        if (wanted is None or one.level == wanted)
        and (not check or one.id in check)
        and (known is None or not known.checks or one.id in known.checks)
    ]
    if check and not rows:
        raise BadRequest("--check", f"{', '.join(check)} is no check", "invoke checks")
    render.answer("checks", rows, ("check", "level", "gates", "asks"), output)


def _asks(check: Check) -> str:
    """Return a check's question: the first line of its module."""
    said = sys.modules[check.judge.__module__].__doc__ or ""
    return said.partition("\n")[0]


def _profile(name: str) -> Profile:
    profiles = open_site().site.profiles
    if name not in profiles:
        raise BadRequest("--profile", f"{name} is no profile", f"one of {', '.join(profiles)}")
    return profiles[name]


@command(
    {
        "samples": "folder with an INDEX.csv (file, kind, verdict); required",
        "output": "table (totals and what differs), wide, json or yaml",
    }
)
def judge(samples: str = "", output: str = "table") -> None:
    """Judge saved samples against the verdicts of their index."""
    folder = Path(samples)
    if not samples or not (folder / "INDEX.csv").is_file():
        raise BadRequest(
            "--samples", f"{samples or 'nothing'} has no INDEX.csv", "name a folder with an INDEX.csv"
        )
    try:
        results = saved.judge_samples(folder, find_cause=_cause)
    except SamplesUnreadable as error:
        raise BadRequest("--samples", str(error), "correct the index") from error
    differ = [result for result in results if result.got != result.verdict]
    rows = [
        {"file": r.file, "kind": r.kind, "verdict": r.verdict, "got": r.got, "reason": r.reason}
        for r in (differ if output == "table" else results)
    ]
    if output == "table":
        for kind, (matched, total) in sorted(saved.totals(results).items()):
            sys.stdout.write(f"{kind:<28} {matched:>4} of {total}\n")
        sys.stdout.write(f"{'all':<28} {len(results) - len(differ):>4} of {len(results)}\n\n")
    if rows or output != "table":
        render.answer("samples", rows, ("file", "kind", "verdict", "got", "reason"), output)
    raise Ended(advice.EXIT_OK if not differ else advice.EXIT_NODES_FAILED)


def _cause(console: bytes) -> str | None:
    """Return what stopped the boot that a console shows, in words, or None."""
    watch = Watch()
    watch.feed(0.0, Plain().feed(console))
    found = watch.cause()
    return f"{found.title}: {found.line.strip()}" if found else None
