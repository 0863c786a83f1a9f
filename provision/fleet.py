"""What nodes show only beside each other and over time: outliers, repeat offenders, flaps. Pure."""

from __future__ import annotations

import statistics
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import pairwise

from inventory.admission import ADMITTED, HELD
from inventory.records import Answer, Event, EventKind

ENOUGH = 5  # nodes; the median of fewer says little
_FAR = 3.5  # in robust standard deviations, the usual bound for an outlier
_MAD_TO_SIGMA = 1.4826
_LEAST_SPREAD = 0.01  # of the median: what differs less is noise, however alike the others are
FLAPS = 3
FLAP_WINDOW = timedelta(days=7)
OFFENCES = 2
_REASON_CHARS = 80


@dataclass(frozen=True, slots=True)
class Outlier:
    """One value far from what its like have."""

    node: str
    profile: str
    metric: str
    value: float
    median: float
    nodes: int  # how many have the metric

    @property
    def percent(self) -> float:
        """How far from the median, in percent of it."""
        return 100 * (self.value / self.median - 1) if self.median else 0.0


def outliers(profile: str, measured: Mapping[str, Mapping[str, float]]) -> tuple[Outlier, ...]:
    """Return values far from the median of their metric, furthest first. `measured`: node, metric, value."""
    by_metric: dict[str, dict[str, float]] = defaultdict(dict)
    for node, own in measured.items():
        for metric, value in own.items():
            by_metric[metric][node] = value
    found = []
    for metric, values in by_metric.items():
        if len(values) < ENOUGH:
            continue
        median = statistics.median(values.values())
        mad = statistics.median(abs(value - median) for value in values.values())
        spread = max(_MAD_TO_SIGMA * mad, _LEAST_SPREAD * abs(median))
        found += [
            Outlier(node, profile, metric, value, median, len(values))
            for node, value in values.items()
            if spread and abs(value - median) > _FAR * spread
        ]
    return tuple(sorted(found, key=lambda one: (-abs(one.percent), one.node)))


@dataclass(frozen=True, slots=True)
class Offender:
    """Hardware that was held more than once, under whatever names it had."""

    serial: str
    nodes: tuple[str, ...]
    holds: int
    last: datetime
    reasons: tuple[str, ...]  # each once, the commonest first


def offenders(moves: Iterable[Event], *, least: int = OFFENCES) -> tuple[Offender, ...]:
    """Return what came back into quarantine or repair `least` times or more, worst first.

    A serial is the hardware's; what was recorded without one counts for the name.
    """
    held = {str(pool) for pool in HELD}
    groups: dict[str, list[Event]] = defaultdict(list)
    for event in moves:
        if (
            event.kind == EventKind.POOL
            and event.data.get("to") in held
            and event.data.get("from") not in held
        ):
            groups[str(event.data.get("serial") or event.node)].append(event)
    found = [
        Offender(
            serial,
            tuple(sorted({str(event.node) for event in events})),
            len(events),
            max(event.ts for event in events),
            _commonest(str(event.data.get("why") or "no reason given") for event in events),
        )
        for serial, events in groups.items()
        if len(events) >= least
    ]
    return tuple(sorted(found, key=lambda one: (-one.holds, one.serial)))


@dataclass(frozen=True, slots=True)
class Flap:
    """A node whose answer of the gate, or place in the admitted pools, has changed often of late."""

    node: str
    answers: int
    moves: int
    first: datetime
    last: datetime
    path: str  # the answers in order, folded


def flaps(events: Iterable[Event], *, least: int = FLAPS) -> tuple[Flap, ...]:
    """Return nodes that changed `least` times or more in the events given, worst first."""
    verdicts: dict[str, list[Event]] = defaultdict(list)
    moves: dict[str, list[Event]] = defaultdict(list)
    for event in events:
        if event.node is None:
            continue
        if event.kind == EventKind.VERDICT:
            verdicts[event.node].append(event)
        elif event.kind == EventKind.POOL and _crosses(event):
            moves[event.node].append(event)
    found = []
    for node in {*verdicts, *moves}:
        answers = [str(event.data.get("answer")) for event in verdicts[node]]
        # What could not be judged is neither a change nor the lack of one.
        known = [answer for answer in answers if answer != Answer.UNKNOWN]
        changes = sum(one != two for one, two in pairwise(known))
        if max(changes, len(moves[node])) >= least:
            seen = sorted([*verdicts[node], *moves[node]], key=lambda event: event.ts)
            found.append(Flap(node, changes, len(moves[node]), seen[0].ts, seen[-1].ts, _path(known)))
    return tuple(sorted(found, key=lambda one: (-max(one.answers, one.moves), one.node)))


def _crosses(event: Event) -> bool:
    admitted = {str(pool) for pool in ADMITTED}
    return (event.data.get("from") in admitted) != (event.data.get("to") in admitted)


def _path(answers: Iterable[str]) -> str:
    """Fold a row of answers: yes x3 no yes."""
    runs: list[list[str]] = []
    for answer in answers:
        if runs and runs[-1][0] == answer:
            runs[-1].append(answer)
        else:
            runs.append([answer])
    return " ".join(run[0] if len(run) == 1 else f"{run[0]} x{len(run)}" for run in runs)


def _commonest(reasons: Iterable[str]) -> tuple[str, ...]:
    return tuple(reason for reason, _ in Counter(one[:_REASON_CHARS] for one in reasons).most_common(3))
