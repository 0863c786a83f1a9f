"""The fleet seen as one: who is unlike its like, which parts offend again, whose links flap. Pure.

Rank itself is made of a node's past (provision/ranking.py); `behind` gives it what a node's like say.
"""

from __future__ import annotations

import statistics
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from itertools import pairwise

from health.outcome import Finding, Outcome, Status
from health.parts import serial_of

# Of fewer nodes the median says as much about the part as about its like.
ENOUGH = 5
# Beyond this share of the median, and beyond so many spreads of the like, a value is an outlier.
SHARE = 0.05
_SPREADS = 4.0
_OF_A_NORMAL_SPREAD = 1.4826  # median deviation to standard deviation
# Metrics of which more is worse; of all others less is.
_MORE_IS_WORSE = ("errors", "rows", "temperature", "changes", "used", "latency", "skew")


class Side(StrEnum):
    """On which side of its like a value lies."""

    WORSE = "worse"
    BETTER = "better"


@dataclass(frozen=True, slots=True)
class Outlier:
    """One node's value of one metric that is unlike its like. `off` is the share of the median, signed."""

    profile: str
    metric: str
    node: str
    value: float
    median: float
    off: float
    side: Side

    def __str__(self) -> str:
        return f"{self.metric} {self.value:.4g}, {100 * self.off:+.0f} % of the median {self.median:.4g}"


def outliers(profile: str, values: Mapping[str, Mapping[str, float]]) -> tuple[Outlier, ...]:
    """Return what is unlike among nodes of one profile, worst first; `values` is node -> metric -> value.

    A metric that fewer than ENOUGH nodes have is left out: nothing is usual yet.
    """
    by_metric: dict[str, dict[str, float]] = defaultdict(dict)
    for node, own in values.items():
        for metric, value in own.items():
            by_metric[metric][node] = value
    found = [
        one
        for metric, nodes in by_metric.items()
        if len(nodes) >= ENOUGH
        for one in _of_metric(profile, metric, nodes)
    ]
    return tuple(sorted(found, key=_worst_first))


def _worst_first(one: Outlier) -> tuple[bool, float, str, str]:
    return one.side is Side.BETTER, -abs(one.off), one.node, one.metric


def _of_metric(profile: str, metric: str, nodes: Mapping[str, float]) -> Iterable[Outlier]:
    median = statistics.median(nodes.values())
    spread = statistics.median(abs(value - median) for value in nodes.values()) * _OF_A_NORMAL_SPREAD
    for node, value in nodes.items():
        distance = value - median
        if abs(distance) <= max(SHARE * abs(median), _SPREADS * spread) or not distance:
            continue
        more_is_worse = any(word in metric for word in _MORE_IS_WORSE)
        side = Side.WORSE if (distance > 0) is more_is_worse else Side.BETTER
        off = distance / abs(median) if median else (1.0 if distance > 0 else -1.0)
        yield Outlier(profile, metric, node, value, median, off, side)


def behind(found: Iterable[Outlier]) -> Mapping[str, tuple[Outlier, ...]]:
    """Return, by node, in what it is worse than its like: what speaks against it in a ranking."""
    by_node: dict[str, list[Outlier]] = defaultdict(list)
    for one in found:
        if one.side is Side.WORSE:
            by_node[one.node].append(one)
    return {node: tuple(own) for node, own in by_node.items()}


@dataclass(frozen=True, slots=True)
class Offence:
    """One time that one part was at fault. `serial` is what the part takes with it when it is moved."""

    serial: str
    component: str
    node: str
    check: str
    at: float  # seconds since 1970


@dataclass(frozen=True, slots=True)
class Offender:
    """A part that was at fault again. More than one node: the fault moves with the part."""

    serial: str
    component: str
    times: int
    nodes: tuple[str, ...]
    checks: tuple[str, ...]
    first: float
    last: float

    @property
    def moved(self) -> bool:
        """Say whether it failed in more than one node: the part is to blame, not the place."""
        return len(self.nodes) > 1


def offences(
    node: str, outcomes: Iterable[Outcome], parts: Mapping[str, str], at: float
) -> tuple[Offence, ...]:
    """Return what the failing findings of one verdict say of `parts` (health.parts.part_serials)."""
    named: dict[tuple[str, str], Finding] = {}
    for outcome in outcomes:
        for finding in outcome.findings:
            if finding.status is Status.FAIL:
                named.setdefault((outcome.check, serial_of(finding.identity, parts)), finding)
    return tuple(
        Offence(serial, finding.component, node, check, at) for (check, serial), finding in named.items()
    )


def repeat_offenders(
    seen: Iterable[Offence], *, since: float, least: int = 2, apart_s: float = 3600.0
) -> tuple[Offender, ...]:
    """Return parts with at least `least` incidents after `since`, most first.

    What is seen of one part within `apart_s` of an incident's beginning is that incident still: a fault that
    is looked at five times is not five faults.
    """
    by_part: dict[tuple[str, str], list[Offence]] = defaultdict(list)
    for one in seen:
        if one.at >= since:
            by_part[one.component, one.serial].append(one)
    found = []
    for (component, serial), all_of in by_part.items():
        times = _incidents(sorted(one.at for one in all_of), apart_s)
        if len(times) >= least:
            nodes = tuple(sorted({one.node for one in all_of}))
            checks = tuple(sorted({one.check for one in all_of}))
            last = max(one.at for one in all_of)
            found.append(Offender(serial, component, len(times), nodes, checks, times[0], last))
    return tuple(sorted(found, key=lambda one: (-one.times, -one.last, one.serial)))


def _incidents(times: list[float], apart_s: float) -> list[float]:
    begins: list[float] = []
    for at in times:
        if not begins or at - begins[-1] > apart_s:
            begins.append(at)
    return begins


@dataclass(frozen=True, slots=True)
class Reading:
    """A counter that only grows while a boot lasts: a link's downs, or its carrier changes."""

    at: float  # seconds since 1970
    boot_id: str
    count: int


@dataclass(frozen=True, slots=True)
class Flaps:
    """The busiest window of one link: how often it went, between which readings."""

    link: str
    times: int
    began: float
    ended: float


def flap_windows(
    readings: Mapping[str, Iterable[Reading]], *, window_s: float = 86_400.0, least: int = 5
) -> tuple[Flaps, ...]:
    """Return the links that flapped at least `least` times within `window_s`, most first.

    Growth counts at the later of two readings of one boot. A counter that fell, or another boot, begins
    anew: what was before is not known, and is not made up.
    """
    found = []
    for link, all_of in readings.items():
        steps = _steps(sorted(all_of, key=lambda one: one.at))
        best = Flaps(link, 0, 0.0, 0.0)
        first = total = 0
        for at, (_, ended, grown) in enumerate(steps):
            total += grown
            while ended - steps[first][1] > window_s:
                total -= steps[first][2]
                first += 1
            if total > best.times:
                best = Flaps(link, total, steps[first][0], steps[at][1])
        if best.times >= least:
            found.append(best)
    return tuple(sorted(found, key=lambda one: (-one.times, one.link)))


def _steps(readings: list[Reading]) -> list[tuple[float, float, int]]:
    """Return where each growth began and ended, and how much it was."""
    steps = []
    for before, after in pairwise(readings):
        grown = after.count - before.count
        if before.boot_id == after.boot_id and grown > 0:
            steps.append((before.at, after.at, grown))
    return steps
