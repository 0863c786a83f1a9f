"""What is odd in a boot, measured against what its cohort has always done."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum

from health.bootlog.boot import Boot, Cohort
from health.bootlog.learn import FAMILIAR_NODES, patterns
from health.bootlog.masks import Masked
from health.bootlog.model import WILD, BootModel
from health.bootlog.orders import violations

# Fewer nodes, or fewer boots, do not make a rule of what they have in common.
ENOUGH_NODES = FAMILIAR_NODES
ENOUGH_BOOTS = 10
_NEIGHBOURS = 2


class Oddity(StrEnum):
    """In which way a line is odd."""

    NOVEL = "novel"  # no healthy node of the cohort says this
    MISSING = "missing"  # every healthy boot says this
    FEWER = "fewer"
    MORE = "more"
    ORDER = "order"  # it came before what it always follows
    VALUE = "value"  # it says another number than all others


@dataclass(frozen=True, slots=True)
class Anomaly:
    """One odd thing. `line` is as it was logged, or the template where the line is what is missing."""

    cohort: Cohort
    oddity: Oddity
    template: str
    line: str
    said: str
    neighbours: tuple[str, ...] = ()

    @property
    def id(self) -> str:
        """Name the card: the same oddity on any node of the cohort is the same card."""
        packed = "\n".join((self.cohort.id, self.oddity, self.template))
        return hashlib.sha256(packed.encode()).hexdigest()[:10]


def is_enough(model: BootModel) -> bool:
    """Say whether a cohort has been seen often enough to call anything odd."""
    return model.nodes >= ENOUGH_NODES and model.boots >= ENOUGH_BOOTS


def find_anomalies(model: BootModel, boot: Boot) -> tuple[Anomaly, ...]:
    """Return what is odd in a boot that is proven whole; most telling first."""
    known = _known(model, boot)
    counts = tuple(_counts(model, boot, known))
    told = {one.template for one in counts if one.oddity is Oddity.MORE}
    return (
        *_novel(model, boot, known),
        *counts,
        *_orders(model, boot, told),
        *_values(model, boot, known),
    )


def _known(model: BootModel, boot: Boot) -> dict[str, str]:
    """Map each template of a boot to the learned one that covers it, where one does."""
    found = {}
    for text in boot.counts:
        if text in model.templates:
            found[text] = text
        else:
            wild = next((pattern for pattern in patterns(text) if pattern in model.templates), None)
            if wild is not None:
                found[text] = wild
    return found


def _novel(model: BootModel, boot: Boot, known: dict[str, str]) -> Iterator[Anomaly]:
    seen: set[str] = set()
    for at, line in enumerate(boot.lines):
        if line.template in seen:
            continue
        seen.add(line.template)
        learned = model.templates.get(known.get(line.template, ""))
        nodes = learned.nodes if learned else 0
        if nodes < FAMILIAR_NODES:
            said = (
                f"{nodes} of {model.nodes} healthy nodes say this" if nodes else "no healthy node says this"
            )
            yield Anomaly(model.cohort, Oddity.NOVEL, line.template, boot.texts[at], said, _near(boot, at))


def _counts(model: BootModel, boot: Boot, known: dict[str, str]) -> Iterator[Anomaly]:
    own: dict[str, int] = {}
    for text, count in boot.counts.items():
        if text in known:
            own[known[text]] = own.get(known[text], 0) + count
    for text, learned in model.templates.items():
        if learned.nodes < FAMILIAR_NODES:
            continue
        count = own.get(text, 0)
        usual = f"{learned.least} to {learned.most}" if learned.least != learned.most else f"{learned.most}"
        said = f"{count} such lines; healthy boots have {usual}"
        if count < _floor(learned.least, learned.most):
            oddity = Oddity.FEWER if count else Oddity.MISSING
            yield Anomaly(model.cohort, oddity, text, _example(boot, text) or text, said)
        elif count > _ceiling(learned.least, learned.most):
            yield Anomaly(model.cohort, Oddity.MORE, text, _example(boot, text) or text, said)


def _floor(least: int, most: int) -> int:
    """Return how few lines are still usual; one at least, where no healthy boot has done without."""
    return least if least == most else min(least, max(1, least - (most - least)))


def _ceiling(least: int, most: int) -> int:
    """Return how many lines are still usual: a count that has varied may vary a bit more."""
    return most if least == most else most + max(1, most - least)


def _orders(model: BootModel, boot: Boot, told: set[str]) -> Iterator[Anomaly]:
    for (earlier, later), at in violations(boot.lines, model.before, model.beside):
        # A line that was said once too often is out of order, too; that says nothing more.
        if told & {earlier, later}:
            continue
        said = f"it always comes after {earlier[:80]!r}"
        yield Anomaly(model.cohort, Oddity.ORDER, later, boot.texts[at], said, _near(boot, at))


def _values(model: BootModel, boot: Boot, known: dict[str, str]) -> Iterator[Anomaly]:
    told: set[str] = set()
    for at, line in enumerate(boot.lines):
        learned = model.templates.get(known.get(line.template, ""))
        if learned is None or learned.boots < ENOUGH_BOOTS or line.template in told:
            continue
        for place, usual in learned.steady.items():
            if place < len(line.values) and line.values[place][1] != usual:
                told.add(line.template)
                said = f"it says {line.values[place][1]} where all others say {usual}"
                yield Anomaly(
                    model.cohort, Oddity.VALUE, line.template, boot.texts[at], said, _near(boot, at)
                )
                break


def _example(boot: Boot, text: str) -> str:
    """Return a line of a template as it was logged, or "" where there is none."""
    at = next((at for at, line in enumerate(boot.lines) if _covers(text, line)), None)
    return "" if at is None else boot.texts[at]


def _covers(text: str, line: Masked) -> bool:
    return line.template == text or (WILD in text and text in patterns(line.template))


def _near(boot: Boot, at: int) -> tuple[str, ...]:
    before = boot.texts[max(0, at - _NEIGHBOURS) : at]
    return (*before, *boot.texts[at + 1 : at + 1 + _NEIGHBOURS])
