"""The fleet over time: which parts offend again, wherever they sit, and whose links flap. Pure."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import pairwise

from health.outcome import Finding, Outcome, Status
from health.parts import serial_of

_HARDWARE = frozenset(
    {"gpu", "nic", "memory", "disk", "cpu", "nvswitch", "nvlink", "power", "fan", "temperature", "pcie"}
)


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
    """Return what the failing findings of one verdict say of `parts` (health.parts.part_serials).

    What is no hardware is left out. A part without a serial of its own is named by its node and place.
    """
    named: dict[tuple[str, str], Finding] = {}
    for outcome in outcomes:
        for finding in outcome.findings:
            if finding.status is Status.FAIL and finding.component in _HARDWARE:
                serial = serial_of(finding.identity, parts)
                # A drive is named by its serial already.
                placed = serial == finding.identity and finding.component != "disk"
                who = f"{serial} of {node}" if placed else serial
                named.setdefault((outcome.check, who), finding)
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
