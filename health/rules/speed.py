"""Whether something is as fast as the profile says, and as its like in the fleet."""

from __future__ import annotations

from dataclasses import dataclass

from health.evidence import Evidence
from health.outcome import Action, Finding

# How far under the median of its like a node may be.
UNDER_MEDIAN = 0.05


@dataclass(frozen=True, slots=True)
class Measured:
    """One value of one part. `metric` has the same name on every node; higher is better."""

    metric: str
    component: str
    identity: str
    value: float
    unit: str


def judge_speed(evidence: Evidence, one: Measured, floor: float, action: Action) -> list[Finding]:
    """Compare a value with the profile's floor, and with the median of the same profile where it is known."""
    if one.value < floor:
        message = f"{one.metric}: {one.value:.4g} {one.unit} of at least {floor:g}"
        return [Finding(one.component, one.identity, message, action)]
    median = evidence.context.medians.get(one.metric)
    if median is not None and one.value < (1 - UNDER_MEDIAN) * median:
        behind = 100 * (1 - one.value / median)
        message = f"{one.metric}: {one.value:.4g} {one.unit}, {behind:.0f} % under its like ({median:.4g})"
        return [Finding(one.component, one.identity, message, Action.INVESTIGATE)]
    return []


def lowest(values: list[Measured]) -> dict[str, float]:
    """Return the lowest value of each metric: a node is as fast as its slowest part."""
    found: dict[str, float] = {}
    for one in values:
        found[one.metric] = min(one.value, found.get(one.metric, one.value))
    return found
