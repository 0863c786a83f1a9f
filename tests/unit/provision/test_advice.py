"""Every error that a low layer can raise has an exit status, a code and a runbook."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from pathlib import Path

import pytest

import bmc.errors
import health.errors
import inventory.errors
import provision.errors
import provision.images.errors
import provision.maas.errors
import provision.mirror.errors
import provision.ticket.errors
from bmc.console.causes import rules
from provision import advice, guards

CODES = {rule.id for rule in rules()}
MODULES = (
    bmc.errors,
    health.errors,
    inventory.errors,
    provision.errors,
    provision.images.errors,
    provision.maas.errors,
    provision.mirror.errors,
    provision.ticket.errors,
)
RUNBOOKS = Path(__file__).resolve().parents[3] / "docs" / "runbooks"
BASES = {
    "BmcError",
    "HealthError",
    "InventoryError",
    "ProvisionError",
    "MaasError",
    "StoreError",
    "TicketError",
    "MirrorError",
    "ImagesError",
}


def leaves() -> Iterator[type[Exception]]:
    for module in MODULES:
        for name, kind in inspect.getmembers(module, inspect.isclass):
            ours = issubclass(kind, Exception) and kind.__module__ == module.__name__
            if ours and name not in BASES and not name.startswith("_"):
                yield kind


@pytest.mark.parametrize("kind", list(leaves()), ids=lambda kind: kind.__name__)
def test_every_error_class_has_advice(kind: type[Exception]) -> None:
    bare = kind.__new__(kind)
    found = advice.advice_for(bare)
    assert found is not None
    assert found.exit in (2, 3, 4, 5)


@pytest.mark.parametrize("code", sorted(advice.codes() | set(guards.OVERRIDABLE) | set(CODES)))
def test_every_code_has_a_runbook_that_says_what_to_do(code: str) -> None:
    text = (RUNBOOKS / f"{code}.md").read_text()
    assert text.startswith(f"# {code}\n")
    for heading in ("## What it means", "## Look here", "## Do this", "## When to stop"):
        assert heading in text


def test_no_runbook_is_left_over() -> None:
    known = advice.codes() | set(guards.OVERRIDABLE) | set(CODES)
    assert {path.stem for path in RUNBOOKS.glob("*.md")} == known


def test_a_bug_has_no_advice() -> None:
    assert advice.advice_for(ZeroDivisionError()) is None


def test_the_closest_class_decides() -> None:
    locked = provision.maas.errors.MaasLocked.__new__(provision.maas.errors.MaasLocked)
    assert advice.advice_for(locked) == advice.Advice(3, "locked", "docs/runbooks/locked.md")
