"""Cards for what is odd, and what an operator has decided about them, for the whole cohort. Pure.

Cards are kept by the caller, one document each. `note` and `decide` return the cards to write again.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field, replace
from enum import StrEnum

from health.bootlog.anomalies import Anomaly, Oddity
from health.bootlog.boot import Cohort, read_cohort
from health.errors import Unreadable

_NODES_KEPT = 20


class Decision(StrEnum):
    """What has been decided about a card."""

    OPEN = "open"
    PROMOTED = "promoted"  # familiar from now on
    DENIED = "denied"  # a fault from now on, and never learned
    DEFERRED = "deferred"  # not shown until a date


@dataclass(frozen=True, slots=True)
class Card:
    """One kind of oddity in one cohort. Times are seconds since 1970; `nodes` are the last that had it."""

    id: str
    cohort: Cohort
    oddity: Oddity
    template: str
    line: str
    said: str
    neighbours: tuple[str, ...]
    first_seen: float
    last_seen: float
    nodes: tuple[str, ...]
    decision: Decision = Decision.OPEN
    until: float = 0.0
    by: str = ""
    why: str = ""
    decided_at: float = 0.0

    def to_json(self) -> str:
        """Return the form that is kept."""
        return json.dumps({"schema": 1, **asdict(self)}, sort_keys=True)

    def open_at(self, now: float) -> bool:
        """Say whether it waits for an operator: never decided, or its deferral is over."""
        over = self.decision is Decision.DEFERRED and now >= self.until
        return over or self.decision is Decision.OPEN


@dataclass(frozen=True, slots=True)
class Decisions:
    """What is decided, by card; asked when a boot is judged."""

    by_card: Mapping[str, Decision] = field(default_factory=dict)
    until: Mapping[str, float] = field(default_factory=dict)

    def of(self, anomaly: Anomaly, now: float) -> Decision:
        """Return what stands about an oddity; a card that was deferred is open again after its date."""
        decision = self.by_card.get(anomaly.id, Decision.OPEN)
        if decision is Decision.DEFERRED and now >= self.until.get(anomaly.id, 0.0):
            return Decision.OPEN
        return decision


def read_card(text: str) -> Card:
    """Read what Card.to_json wrote. Raises Unreadable."""
    try:
        row = json.loads(text)
        known = row.pop("schema") == 1
        lists = {name: tuple(map(str, row[name])) for name in ("neighbours", "nodes")}
        kinds = {"decision": Decision(row["decision"]), "oddity": Oddity(row["oddity"])}
        card = Card(**{**row, **lists, **kinds, "cohort": read_cohort(row["cohort"])})
    except (ValueError, KeyError, TypeError, AttributeError) as exc:
        raise Unreadable("triage card", f"it is cut, or of another form: {text[:60]!r}") from exc
    if not known:
        raise Unreadable("triage card", "its schema is not known")
    return card


def note(cards: Mapping[str, Card], node: str, anomalies: Iterable[Anomaly], now: float) -> tuple[Card, ...]:
    """Return the cards that change when a node shows these oddities; ids that `cards` lacks are new."""
    changed: dict[str, Card] = {}
    for one in anomalies:
        known = changed.get(one.id) or cards.get(one.id) or _card(one, now)
        nodes = (*(name for name in known.nodes if name != node), node)[-_NODES_KEPT:]
        changed[one.id] = replace(known, last_seen=now, nodes=nodes)
    return tuple(changed.values())


def decide(card: Card, decision: Decision, *, by: str, at: float, why: str = "", until: float = 0.0) -> Card:
    """Return the card with a decision, which holds for its whole cohort."""
    return replace(card, decision=decision, by=by, why=why, until=until, decided_at=at)


def decisions(cards: Iterable[Card]) -> Decisions:
    """Return what has been decided, to judge boots by."""
    decided = [card for card in cards if card.decision is not Decision.OPEN]
    return Decisions({card.id: card.decision for card in decided}, {card.id: card.until for card in decided})


def denied_templates(cards: Iterable[Card], cohort: Cohort) -> frozenset[str]:
    """Return the templates that operators have denied: a boot that holds one teaches nothing."""
    return frozenset(
        card.template for card in cards if card.cohort == cohort and card.decision is Decision.DENIED
    )


def in_order(cards: Iterable[Card]) -> tuple[Card, ...]:
    """Return cards as an operator reads them: those on most nodes first."""
    return tuple(sorted(cards, key=lambda card: (-len(card.nodes), card.first_seen, card.id)))


def _card(one: Anomaly, now: float) -> Card:
    return Card(
        id=one.id,
        cohort=one.cohort,
        oddity=one.oddity,
        template=one.template,
        line=one.line,
        said=one.said,
        neighbours=one.neighbours,
        first_seen=now,
        last_seen=now,
        nodes=(),
    )
