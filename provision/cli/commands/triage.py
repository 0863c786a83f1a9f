"""triage.*: what was odd in boots, a card a kind and cohort, and what an operator decides about it."""

from __future__ import annotations

import sys
from datetime import UTC, datetime

from health.boots import Card, Decision
from provision.access import Access
from provision.cli import render
from provision.cli.command import command
from provision.cli.selection import open_site
from provision.errors import BadRequest
from provision.gate_memory import GateMemory
from provision.triage import Shelf

_DAYS_MAX = 365
_CARD = {"card": "id of a card, or how it begins; required", "reason": "why, for the record; required"}


@command({"all": "those that were decided, too", "output": "table, wide, json or yaml"})
def list_(all: bool = False, output: str = "table") -> None:
    """List what is odd in boots and waits for an operator, that of most nodes first."""
    access = open_site()
    memory = GateMemory(access)
    memory.learn()
    now = datetime.now(UTC).timestamp()
    cards = [card for card in memory.shelf.cards() if all or card.open_at(now)]
    rows = [_row(card, now) for card in cards]
    render.answer("cards", rows, ("card", "decision", "count", "oddity", "last_seen", "line"), output)


@command({"card": _CARD["card"], "output": "table, json or yaml"})
def show(card: str = "", output: str = "table") -> None:
    """Show one card: the line, what stands around it, where it was seen, what was decided."""
    found = _shelf(open_site()).card(card)
    now = datetime.now(UTC).timestamp()
    if output != "table":
        details = {"neighbours": list(found.neighbours), "template": found.template}
        render.answer("cards", [{**_row(found, now), **details}], ("card",), output)
        return
    lines = [
        f"{found.id}   {found.oddity} · {_decision(found, now)}",
        f"cohort   {found.cohort.name}",
        f"line     {found.line}",
        f"said     {found.said}",
        f"template {found.template}",
        f"nodes    {', '.join(found.nodes)}",
        f"seen     {_ago(found.first_seen)} first, {_ago(found.last_seen)} last",
    ]
    lines += [f"{'around' if not n else '':<8} {line}" for n, line in enumerate(found.neighbours)]
    if found.open_at(now):
        lines.append(f"next     invoke triage.promote|deny|defer --card {found.id} --reason '...'")
    sys.stdout.write("\n".join(lines) + "\n")


@command(_CARD)
def promote(card: str = "", reason: str = "") -> None:
    """Say that it is harmless: from now on it is familiar in the whole cohort."""
    _decide(card, Decision.PROMOTED, reason)


@command(_CARD)
def deny(card: str = "", reason: str = "") -> None:
    """Say that it is a fault: a boot that has it fails, and teaches nothing."""
    _decide(card, Decision.DENIED, reason)


@command({**_CARD, "days": "for how many days it is not shown"})
def defer(card: str = "", reason: str = "", days: str = "7") -> None:
    """Put it off: it is not shown until then."""
    if not days.isdecimal() or not 0 < int(days) <= _DAYS_MAX:
        raise BadRequest("--days", f"{days} is no number of days", f"from 1 to {_DAYS_MAX}")
    _decide(card, Decision.DEFERRED, reason, int(days))


def _decide(id: str, decision: Decision, reason: str, days: int = 0) -> None:
    if not reason.strip():
        raise BadRequest("--reason", "it needs a reason", "add --reason '...'")
    access = open_site()
    now = datetime.now(UTC).timestamp()
    until = now + days * 86400.0 if days else 0.0
    shelf = _shelf(access)
    card = shelf.decide(id, decision, by=access.settings.who, at=now, why=reason, until=until)
    message = f"triage card {card.id} {decision} in {card.cohort.name}: {reason} ({card.line[:100]})"
    access.store.event(None, f"triage.{decision}", actor=access.settings.who, message=message)
    GateMemory(access).learn()
    sys.stdout.write(f"{card.id} {_decision(card, now)}: {card.line[:100]}\n")


def _shelf(access: Access) -> Shelf:
    return GateMemory(access).shelf


def _row(card: Card, now: float) -> dict[str, object]:
    return {
        "card": card.id,
        "decision": _decision(card, now),
        "count": len(card.nodes),
        "oddity": str(card.oddity),
        "last_seen": _ago(card.last_seen),
        "line": card.line[:100],
        "said": card.said,
        "cohort": card.cohort.name,
        "nodes": ", ".join(card.nodes),
        "by": card.by,
        "why": card.why,
    }


def _decision(card: Card, now: float) -> str:
    if card.decision is Decision.DEFERRED and not card.open_at(now):
        return f"deferred until {datetime.fromtimestamp(card.until, UTC):%Y-%m-%dT%H:%MZ}"
    return str(Decision.OPEN if card.open_at(now) else card.decision)


def _ago(moment: float) -> str:
    return f"{render.age(datetime.fromtimestamp(moment, UTC))} ago"
