"""Cards for what is odd, and what an operator has decided about them, for the whole cohort."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field, replace
from enum import StrEnum
from pathlib import Path

from health.bootlog.anomalies import Anomaly
from health.errors import HealthError, Unreadable

_NODES_KEPT = 20


class Decision(StrEnum):
    """What has been decided about a card."""

    OPEN = "open"
    PROMOTED = "promoted"  # familiar from now on
    DENIED = "denied"  # a fault from now on
    DEFERRED = "deferred"  # not shown until a date


class NoSuchCard(HealthError):
    """No card has this id."""

    def __init__(self, id: str) -> None:
        super().__init__(f"no triage card is called {id}")
        self.id = id


@dataclass(frozen=True, slots=True)
class Card:
    """One kind of oddity in one cohort. Times are seconds since 1970."""

    id: str
    cohort: str
    oddity: str
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


class TriageBook:
    """All cards, kept in one file that is replaced as a whole."""

    def __init__(self, path: Path) -> None:
        """Open the book. Raises Unreadable where the file is not what was written."""
        self._path = path
        self._cards: dict[str, Card] = {}
        if path.exists():
            self._cards = {card.id: card for card in _read(path.read_text(encoding="utf-8"))}

    @property
    def cards(self) -> tuple[Card, ...]:
        """Return all cards: those on most nodes first."""
        return tuple(sorted(self._cards.values(), key=lambda card: (-len(card.nodes), card.id)))

    @property
    def decisions(self) -> Decisions:
        """Return what has been decided."""
        decided = {id: card for id, card in self._cards.items() if card.decision is not Decision.OPEN}
        return Decisions(
            {id: card.decision for id, card in decided.items()},
            {id: card.until for id, card in decided.items()},
        )

    def card(self, id: str) -> Card:
        """Return a card. Raises NoSuchCard."""
        if id not in self._cards:
            raise NoSuchCard(id)
        return self._cards[id]

    def record(self, node: str, anomalies: Iterable[Anomaly], now: float) -> tuple[Card, ...]:
        """Note what is odd on a node; returns the cards that are new."""
        fresh = []
        for one in anomalies:
            known = self._cards.get(one.id)
            if known is None:
                known = Card(
                    id=one.id,
                    cohort=one.cohort.name,
                    oddity=one.oddity,
                    template=one.template,
                    line=one.line,
                    said=one.said,
                    neighbours=one.neighbours,
                    first_seen=now,
                    last_seen=now,
                    nodes=(),
                )
                fresh.append(one.id)
            nodes = (*(name for name in known.nodes if name != node), node)[-_NODES_KEPT:]
            self._cards[one.id] = replace(known, last_seen=now, nodes=nodes)
        self._write()
        return tuple(self._cards[id] for id in fresh)

    def decide(self, id: str, decision: Decision, *, by: str, why: str = "", until: float = 0.0) -> Card:
        """Write down a decision, which holds for the whole cohort. Raises NoSuchCard."""
        self._cards[id] = replace(self.card(id), decision=decision, by=by, why=why, until=until)
        self._write()
        return self._cards[id]

    def _write(self) -> None:
        self._path.parent.mkdir(parents=True, exist_ok=True)
        fresh = self._path.with_suffix(".part")
        with fresh.open("w", encoding="utf-8") as out:
            for card in self._cards.values():
                out.write(json.dumps(asdict(card), sort_keys=True) + "\n")
            out.flush()
            os.fsync(out.fileno())
        fresh.replace(self._path)


def _read(text: str) -> Iterable[Card]:
    for line in text.splitlines():
        try:
            row = json.loads(line)
            lists = {name: tuple(row[name]) for name in ("neighbours", "nodes")}
            yield Card(**{**row, **lists, "decision": Decision(row["decision"])})
        except (ValueError, KeyError, TypeError) as exc:
            raise Unreadable("triage book", f"line {line[:60]!r}") from exc
