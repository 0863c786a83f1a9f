"""Which fix a verdict asks for: the rung that its findings name, each rung once, then the next. Pure."""

from __future__ import annotations

import re
from collections.abc import Collection
from dataclasses import dataclass
from enum import StrEnum

from health.outcome import Action, Status
from health.verdict import Answer, Reason, Verdict


class Rung(StrEnum):
    """What can be done about a node without touching it, mildest first."""

    RERUN = "rerun"
    RESTART_SERVICE = "restart_service"
    GPU_RESET = "gpu_reset"
    REBOOT = "reboot"
    POWER_CYCLE = "power_cycle"
    REIMAGE = "reimage"


LADDER = tuple(Rung)
# So many ladders for the same fault within the memory of the caller, and the part is broken.
FAULTS_MOST = 2
_HANDS = frozenset({Action.RESEAT, Action.VENDOR_TICKET, Action.INVESTIGATE, Action.NONE})
_GPU_PARTS = frozenset({"gpu", "nvlink", "nvswitch"})
# What a finding names is not always a unit; these checks speak of one.
_UNITS = {
    "container.runtime": "docker.service",
    "gpu.fabric": "nvidia-fabricmanager.service",
    "host.time": "chrony.service",
    "host.time_sync": "chrony.service",
}
_UNIT = re.compile(r"[\w@:.\\-]+\.(?:service|socket|mount|timer)")
_GPU = re.compile(r"(?:[0-9a-f]{4,8}:)?[0-9a-f]{2}:[0-9a-f]{2}\.[0-7]|GPU-[0-9a-f-]{36}", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Fix:
    """The next thing to do. `parts` are units or GPUs; empty: all of the node."""

    rung: Rung
    parts: tuple[str, ...]
    why: str


@dataclass(frozen=True, slots=True)
class Stop:
    """Nothing more is done by itself. `repair`: the node is to be repaired; else a human looks."""

    why: str
    next: str
    repair: bool = False


def choose(
    verdict: Verdict,
    tried: Collection[Rung],
    *,
    before: int = 0,
    highest: Rung = Rung.POWER_CYCLE,
) -> Fix | Stop | None:
    """Return what to do about a node, or None where the gate says yes.

    `tried` are the rungs of this ladder that have not helped; `before` is how many ladders this node had
    for the same fault. Unknown is asked again, and then only a human may act: nothing is proven.
    """
    if verdict.answer is Answer.YES:
        return None
    if verdict.answer is Answer.UNKNOWN:
        if Rung.RERUN not in tried:
            return Fix(Rung.RERUN, (), verdict.summary)
        return Stop(f"nothing is proven: {verdict.summary}", "docs/runbooks/gate-unknown.md")
    failed = failing(verdict)
    for reason in failed:
        if reason.action in _HANDS:
            return Stop(f"it needs hands: {reason}", "invoke ticket --nodes {node}", repair=_broken(reason))
    if before >= FAULTS_MOST:
        why = f"it was fixed {before} times and has come again: {failed[0]}"
        return Stop(why, "invoke ticket --nodes {node}", repair=True)
    return _climb(failed, tried, highest)


def failing(verdict: Verdict) -> tuple[Reason, ...]:
    """Return what keeps the node out: what failed in checks that gate."""
    return tuple(one for one in verdict.reasons if one.gates and one.status is Status.FAIL)


def faults(verdict: Verdict) -> frozenset[str]:
    """Name a verdict's faults by check and part, so that they can be known again."""
    return frozenset(f"{one.check} {one.identity}" for one in failing(verdict))


def _broken(reason: Reason) -> bool:
    return reason.action in (Action.RESEAT, Action.VENDOR_TICKET)


def _climb(failed: tuple[Reason, ...], tried: Collection[Rung], highest: Rung) -> Fix | Stop:
    """Return the strongest rung that a reason asks for, or the first above it that is not tried yet."""
    asked = max((LADDER.index(Rung(str(one.action))) for one in failed), default=0)
    why = str(next(one for one in failed if LADDER.index(Rung(str(one.action))) == asked))
    for rung in LADDER[asked:]:
        if rung in tried or not (parts := _parts(rung, failed)):
            continue
        if LADDER.index(rung) > LADDER.index(highest):
            return Stop(f"the next rung is {rung}, which is not allowed here: {why}", _BEYOND[rung])
        return Fix(rung, parts if parts != _WHOLE else (), why)
    return Stop(f"every rung was tried: {why}", "invoke ticket --nodes {node}", repair=True)


_WHOLE = ("",)
_BEYOND = {
    Rung.REIMAGE: "invoke reimage --nodes {node} --reason '...'",
    Rung.POWER_CYCLE: "invoke fix --nodes {node} --highest power_cycle",
    Rung.REBOOT: "invoke fix --nodes {node} --highest reboot",
    Rung.GPU_RESET: "invoke fix --nodes {node} --highest gpu_reset",
}


def _parts(rung: Rung, failed: tuple[Reason, ...]) -> tuple[str, ...]:
    """Return what a rung acts on; nothing where it has nothing to act on."""
    if rung is Rung.RESTART_SERVICE:
        return tuple(dict.fromkeys(unit for one in failed if (unit := _unit(one))))
    if rung is Rung.GPU_RESET:
        own = [one for one in failed if one.component in _GPU_PARTS]
        named = dict.fromkeys(found[0] for one in own if (found := _GPU.search(one.identity)))
        return tuple(named) or (_WHOLE if own else ())
    return _WHOLE


def _unit(reason: Reason) -> str:
    found = _UNIT.fullmatch(reason.identity)
    return found[0] if found else _UNITS.get(reason.check, "")
