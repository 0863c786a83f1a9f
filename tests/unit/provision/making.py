"""Puts nodes of a test's store where a test needs them, by the same calls as a run."""

from __future__ import annotations

from inventory.model import Pool, Stage
from provision.access import Access


def admit(access: Access, *nodes: str) -> None:
    """Take nodes to the reliable pool the only way there is: verified, with a yes."""
    for node in nodes:
        access.store.reach(node, Stage.VERIFIED, run=None)
        access.store.record_verdict(node, run=None, level="quick", answer="yes", reasons=[], evidence=None)
        access.store.set_pool(node, Pool.RELIABLE, by="automation", why="verified")
