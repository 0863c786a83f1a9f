"""What boots teach: the part of the boot log check for those who keep state. Pure.

Order of use, for a gate:

    cohort, whole = cohort_seen(evidence, profile)         # None: no log came back
    model = read_model(kept text of cohort.id)             # from `learn_cohort`, kept as its `to_json`
    context = Context(boots=model, triage=decisions(cards), ...)
    answer = verdict(evidence, profile, level, context=context)
    for card in note(cards, node, oddities(evidence, profile, model), now): keep card.to_json()

and for every node that is reliable after a yes: keep `saved_boot(...)`, drop what `worth_keeping` leaves
out, and `learn_cohort` anew now and then. Cards and decisions are in health.bootlog.triage.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import asdict, dataclass

from health.bootlog.anomalies import Anomaly, find_anomalies, is_enough
from health.bootlog.boot import Boot, Cohort, boot_from, cohort_of, read_cohort
from health.bootlog.learn import learn
from health.bootlog.model import BootModel, read_model
from health.bootlog.triage import (
    Card,
    Decision,
    Decisions,
    decide,
    decisions,
    denied_templates,
    in_order,
    note,
    read_card,
)
from health.checks.kernel_boot_log import seen_boot
from health.errors import HealthError, Unreadable
from health.evidence import Evidence
from inventory.model import Profile

__all__ = [
    "Anomaly",
    "BootModel",
    "Card",
    "Cohort",
    "Decision",
    "Decisions",
    "SavedBoot",
    "cohort_seen",
    "decide",
    "decisions",
    "in_order",
    "is_enough",
    "learn_cohort",
    "note",
    "oddities",
    "read_card",
    "read_model",
    "read_saved",
    "saved_boot",
    "worth_keeping",
]

# More boots of one node teach nothing new, and boots of long ago are of a system that has changed since.
BOOTS_A_NODE = 5
BOOTS_A_COHORT = 200


@dataclass(frozen=True, slots=True)
class SavedBoot:
    """One boot, kept to learn from. `at`: when it was collected, seconds since 1970."""

    node: str
    boot_id: str
    at: float
    cohort: Cohort
    lines: tuple[str, ...]
    faults: tuple[str, ...] = ()

    def to_json(self) -> str:
        """Return the form that is kept; it shrinks to an eighth when compressed."""
        return json.dumps({"schema": 1, **asdict(self)})


def read_saved(text: str) -> SavedBoot:
    """Read what SavedBoot.to_json wrote. Raises Unreadable."""
    try:
        row = json.loads(text)
        known = row["schema"] == 1
        saved = SavedBoot(
            node=str(row["node"]),
            boot_id=str(row["boot_id"]),
            at=float(row["at"]),
            cohort=read_cohort(row["cohort"]),
            lines=tuple(map(str, row["lines"])),
            faults=tuple(map(str, row["faults"])),
        )
    except (ValueError, KeyError, TypeError, AttributeError) as exc:
        raise Unreadable("saved boot", f"it is cut, or of another form ({exc})") from exc
    if not known:
        raise Unreadable("saved boot", "its schema is not known")
    return saved


def saved_boot(evidence: Evidence, profile: Profile, node: str, at: float) -> SavedBoot | None:
    """Return the boot to keep, or None where its log is absent or not proven whole."""
    found = _seen(evidence, profile, node)
    if found is None or found[0].gap is not None:
        return None
    boot, cohort = found
    return SavedBoot(node, evidence.began.boot_id, at, cohort, boot.texts, boot.faults)


def worth_keeping(saved: Iterable[SavedBoot]) -> tuple[SavedBoot, ...]:
    """Return the boots of one cohort that are worth their space: the newest of each node, all nodes alike."""
    by_node: dict[str, dict[str, SavedBoot]] = defaultdict(dict)
    for one in sorted(saved, key=lambda one: one.at):
        by_node[one.node][one.boot_id] = one
    rounds: list[SavedBoot] = []
    for number in range(BOOTS_A_NODE):
        layer = [own[-1 - number] for boots in by_node.values() if len(own := [*boots.values()]) > number]
        rounds += sorted(layer, key=lambda one: -one.at)
    return tuple(rounds[:BOOTS_A_COHORT])


def learn_cohort(
    cohort: Cohort, saved: Iterable[SavedBoot], *, reliable: frozenset[str], cards: Iterable[Card] = ()
) -> BootModel:
    """Learn a cohort anew from saved boots of the nodes that are reliable now.

    What an operator denied on a card of the cohort is never learned.
    """
    boots = [
        Boot(kept.node, kept.lines, kept.texts, None, one.faults)
        for one in saved
        if one.cohort == cohort and one.node in reliable
        for kept in [boot_from(one.node, one.lines)]
    ]
    return learn(cohort, boots, reliable=reliable, denied=denied_templates(cards, cohort))


def cohort_seen(evidence: Evidence, profile: Profile) -> tuple[Cohort | None, bool]:
    """Return the cohort of the boot, None where no log came back, and whether the log is whole."""
    found = _seen(evidence, profile, "")
    return (found[1], found[0].gap is None) if found else (None, False)


def oddities(evidence: Evidence, profile: Profile, model: BootModel | None) -> tuple[Anomaly, ...]:
    """Return what is odd, to note on cards; nothing where the boot or the cohort is not known enough."""
    found = _seen(evidence, profile, "")
    if found is None or found[0].gap or model is None or model.cohort != found[1] or not is_enough(model):
        return ()
    return find_anomalies(model, found[0])


def _seen(evidence: Evidence, profile: Profile, node: str) -> tuple[Boot, Cohort] | None:
    try:
        boot, witness = seen_boot(evidence, node)
    except HealthError:
        return None
    return boot, cohort_of(profile.name, boot, witness)
