"""Which lines always come before which: a partial order, never the order of a whole boot."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from health.bootlog.boot import Boot
from health.bootlog.masks import Masked

# An order counts as a rule only when so many boots have shown it and none has broken it.
ORDER_BOOTS = 30
# Lines of one thread of the boot that nothing runs beside come within so many lines of each other.
_BESIDE = 4

Pair = tuple[str, str]


@dataclass(frozen=True, slots=True)
class Span:
    """Where a template comes first and last."""

    first: int
    last: int

    def before(self, other: Span) -> bool:
        """Say whether all of it comes before all of the other."""
        return self.last < other.first


def spans(lines: Iterable[Masked]) -> dict[str, Span]:
    """Return where each template comes, whatever part it is about."""
    found: dict[str, Span] = {}
    for at, line in enumerate(lines):
        known = found.get(line.template)
        found[line.template] = Span(known.first if known else at, at)
    return found


def spans_of_parts(lines: Iterable[Masked]) -> list[dict[str, Span]]:
    """Return the same for each subsystem and part by itself."""
    parts: dict[tuple[str, str], dict[str, Span]] = defaultdict(dict)
    for at, line in enumerate(lines):
        own = parts[line.subsystem, line.device]
        known = own.get(line.template)
        own[line.template] = Span(known.first if known else at, at)
    return list(parts.values())


def orders_within_parts(boots: list[Boot]) -> frozenset[Pair]:
    """Learn the orders that hold within every part: probed in any order, each goes its own way."""
    return _orders([spans_of_parts(boot.lines) for boot in boots], None)


def orders_beside(boots: list[Boot]) -> frozenset[Pair]:
    """Learn the orders of lines that come close together, as where nothing else runs yet."""
    return _orders([[spans(boot.lines)] for boot in boots], _BESIDE)


def _orders(boots: list[list[dict[str, Span]]], reach: int | None) -> frozenset[Pair]:
    held: Counter[Pair] = Counter()
    for groups in boots:
        held.update({pair for group in groups for pair in _candidates(group, reach or len(group))})
    wanted = {pair for pair, count in held.items() if count >= ORDER_BOOTS}
    broken = {pair for groups in boots for group in groups for pair in _broken(group, wanted)}
    return frozenset(_reduced(wanted - broken))


def _candidates(group: dict[str, Span], reach: int) -> Iterator[Pair]:
    ordered = sorted(group, key=lambda text: group[text].first)
    for at, earlier in enumerate(ordered):
        for later in ordered[at + 1 : at + 1 + reach]:
            if group[earlier].before(group[later]):
                yield earlier, later


def _broken(group: dict[str, Span], pairs: Iterable[Pair]) -> Iterator[Pair]:
    """Give the pairs that a group does not keep."""
    for earlier, later in pairs:
        if earlier in group and later in group and not group[earlier].before(group[later]):
            yield earlier, later


def violations(
    lines: Iterable[Masked], within: frozenset[Pair], beside: frozenset[Pair]
) -> Iterator[tuple[Pair, int]]:
    """Give each learned pair that a boot breaks, once, with the place of the line that came too early."""
    lines = tuple(lines)
    told: set[Pair] = set()
    groups = [(group, within) for group in spans_of_parts(lines)]
    for group, pairs in (*groups, (spans(lines), beside)):
        for pair in _broken(group, pairs):
            if pair not in told:
                told.add(pair)
                yield pair, group[pair[1]].first


def _reduced(pairs: set[Pair]) -> Iterator[Pair]:
    """Leave out a pair where something that always comes between makes it follow."""
    after: dict[str, set[str]] = defaultdict(set)
    for earlier, later in pairs:
        after[earlier].add(later)
    for earlier, later in pairs:
        if not any(later in after[between] for between in after[earlier] if between != later):
            yield earlier, later
