"""Learns a cohort's boots from nodes that are reliable: what is familiar, expected, and in which order."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator

from health.bootlog.boot import Boot, Cohort
from health.bootlog.masks import STEADY
from health.bootlog.model import WILD, BootModel, Template
from health.bootlog.orders import orders_beside, orders_within_parts
from health.outcome import Status
from health.readers.kernel import KernelLine
from health.rules.kernel import judge_lines
from health.rules.xid import events, judge_events

# A template is familiar when so many nodes have shown it.
FAMILIAR_NODES = 2
# A word that so many lines differ in, and in nothing else, is a name.
_NAMES = 3


def learn(
    cohort: Cohort,
    boots: Iterable[Boot],
    *,
    reliable: frozenset[str],
    denied: frozenset[str] = frozenset(),
) -> BootModel:
    """Return what boots of `reliable` nodes have in common.

    A boot teaches nothing that is of another node, is not proven whole, tells of a fault on the deny list,
    or holds a template that an operator has `denied`. Milder lines of the deny list are never learned.
    """
    good = [boot for boot in boots if boot.node in reliable and _teaches(boot, denied)]
    return BootModel(
        cohort=cohort,
        nodes=len({boot.node for boot in good}),
        boots=len(good),
        templates=_templates(good, _named_words(good)),
        before=orders_within_parts(good),
        beside=orders_beside(good),
    )


def _teaches(boot: Boot, denied: frozenset[str]) -> bool:
    if boot.gap is not None or not boot.lines or denied & boot.counts.keys():
        return False
    lines = tuple(KernelLine(text) for text in boot.faults)
    found = (*judge_lines(lines), *judge_events(events(lines)))
    return not any(finding.status is Status.FAIL for finding in found)


def _templates(boots: list[Boot], names: dict[str, str]) -> dict[str, Template]:
    nodes: dict[str, set[str]] = defaultdict(set)
    counts: dict[str, list[int]] = defaultdict(list)
    values: dict[str, dict[int, set[str]]] = defaultdict(lambda: defaultdict(set))
    for boot in boots:
        own: Counter[str] = Counter()
        for line in boot.lines:
            text = names.get(line.template, line.template)
            own[text] += 1
            for at, (kind, value) in enumerate(line.values):
                seen = values[text][at]
                if kind in STEADY and len(seen) < 2:
                    seen.add(value)
        for text, count in own.items():
            nodes[text].add(boot.node)
            counts[text].append(count)
    return {
        text: Template(
            nodes=len(nodes[text]),
            boots=len(seen),
            least=min(seen) if len(seen) == len(boots) else 0,
            most=max(seen),
            steady={
                at: next(iter(one)) for at, one in values[text].items() if len(one) == 1 and WILD not in text
            },
        )
        for text, seen in counts.items()
    }


def _named_words(boots: list[Boot]) -> dict[str, str]:
    """Find words that are names: map a template that differs from others in one word to its pattern."""
    shown: dict[str, set[str]] = defaultdict(set)
    for boot in boots:
        for text in boot.counts:
            shown[text].add(boot.node)
    rare = [text for text, nodes in shown.items() if len(nodes) < FAMILIAR_NODES]
    groups: dict[str, list[str]] = defaultdict(list)
    for text in rare:
        for pattern in patterns(text):
            groups[pattern].append(text)
    found: dict[str, str] = {}
    for pattern, texts in sorted(groups.items(), key=lambda entry: (-len(entry[1]), entry[0])):
        free = [text for text in texts if text not in found]
        if len(free) >= _NAMES:
            found.update(dict.fromkeys(free, pattern))
    return found


def patterns(text: str) -> Iterator[str]:
    """Give the template with each of its words but the first, which names the subsystem, left open."""
    words = text.split(" ")
    for at in range(1, len(words)):
        yield " ".join([*words[:at], WILD, *words[at + 1 :]])
