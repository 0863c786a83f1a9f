"""Puts nodes of a test's store where a test needs them, by the same calls as a run."""

from __future__ import annotations

from datetime import datetime

from inventory.model import Pool, Stage
from inventory.records import AUTOMATION
from provision.access import Access
from provision.guards import Asking, Consent, ask

YES = Asking(yes=True, typed=None, reason="because")


def admit(access: Access, *names: str, pool: Pool = Pool.RELIABLE, at: datetime | None = None) -> None:
    """Take nodes to an admitted pool the only way there is: verified, with a yes."""
    for name in names:
        access.store.reach(name, Stage.VERIFIED, run=None)
        judge(access, name, at=at)
        access.store.set_pool(name, pool, by=AUTOMATION, why="verified")


def judge(access: Access, name: str, answer: str = "yes", *reasons: str, at: datetime | None = None) -> None:
    """Record a verdict."""
    access.store.record_verdict(
        name, run=None, level="quick", answer=answer, reasons=reasons, evidence=None, collected_at=at
    )


def hold(access: Access, name: str, why: str = "Xid 79") -> None:
    """Quarantine a node as automation does."""
    serial = access.node(name).serial
    access.store.set_pool(name, Pool.QUARANTINE, by=AUTOMATION, why=why, serial=serial)


def consent(access: Access, *names: str) -> Consent:
    """A script's yes for these nodes."""
    nodes = [access.node(name) for name in names]
    return ask(access, nodes, action="test", plan="", asking=YES)
