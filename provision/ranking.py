"""Which of several good nodes is the best: demerits with a stated reason. Pure.

Every node that is ranked has a fresh yes of the gate. What distinguishes them is their past.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta

RECENT = timedelta(days=30)  # failures older than this are forgotten
MEMORY = timedelta(days=180)  # holds are remembered longer: what was repaired often is not repaired
SHADOW = " [shadow]"  # ends a reason of a check that reports and does not gate: it is not held against a node
_FAILURE = 10
_OFFENCE = 8
_WARNING = 2
_OLDEST_YES = 30  # days; beyond that a yes says nothing more


@dataclass(frozen=True, slots=True)
class Past:
    """What a node's history says, as far as it bears on trust."""

    node: str
    failures: int = 0  # its own failed stages, within RECENT
    offences: int = 0  # how often its hardware was held, within MEMORY, under whatever name
    warnings: int = 0  # what the gate remarked when it last said yes
    last_yes: datetime | None = None


@dataclass(frozen=True, slots=True)
class Rank:
    """Where a node stands: fewer demerits are better. `clean`: nothing but time speaks against it."""

    node: str
    demerits: int
    clean: bool
    reason: str


def rank(pasts: Iterable[Past], now: datetime) -> tuple[Rank, ...]:
    """Return the healthiest first; equals stay in the order given."""
    return tuple(sorted((judge(past, now) for past in pasts), key=lambda one: one.demerits))


def judge(past: Past, now: datetime) -> Rank:
    """Count a node's demerits and say what for."""
    against = past.failures * _FAILURE + past.offences * _OFFENCE + past.warnings * _WARNING
    days = _OLDEST_YES if past.last_yes is None else min(_OLDEST_YES, max(0, (now - past.last_yes).days))
    reasons = [
        _times(past.failures, "failure", f"in {RECENT.days} days"),
        _times(past.offences, "hold", f"in {MEMORY.days} days"),
        _times(past.warnings, "warning", "at the last yes"),
        _yes(past.last_yes, now),
    ]
    return Rank(past.node, against + days, against == 0, ", ".join(reason for reason in reasons if reason))


def _times(count: int, what: str, when: str) -> str:
    return f"{count} {what}{'s' if count > 1 else ''} {when}" if count else ""


def _yes(moment: datetime | None, now: datetime) -> str:
    if moment is None:
        return "never judged"
    days = (now - moment).days
    return "yes today" if days < 1 else f"yes {days} d ago"
