"""What lines of a kernel log say about a node, Xid and SXid aside."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache, lru_cache

from health.facts import LineRule, line_rules
from health.outcome import Finding, Status
from health.readers.kernel import KernelLine

_FILE = "kernel"
_SHOWN = 160


@dataclass(slots=True)
class _Seen:
    rule: LineRule
    identity: str
    message: str
    first: KernelLine
    count: int = 0


def judge_lines(lines: Iterable[KernelLine], *, off: frozenset[str] = frozenset()) -> list[Finding]:
    """Return one finding for each kind of bad line and part it names, with how often it came.

    Rules whose ids are in `off` do not count.
    """
    pattern, all_rules = _filter(_FILE)
    rules = tuple(rule for rule in all_rules if rule.id not in off)
    seen: dict[tuple[str, str], _Seen] = {}
    mute: set[str] = set()
    with_unless = [rule for rule in rules if rule.unless]
    for line in lines:
        if pattern.search(line.text):
            _note(line, rules, seen)
        mute.update(rule.id for rule in with_unless if rule.unless and rule.unless.search(line.text))
    return [
        Finding(
            component=one.rule.component,
            identity=one.identity,
            message=_counted(one),
            action=one.rule.action,
            status=one.rule.status,
        )
        for one in seen.values()
        if one.count >= one.rule.at_least and one.rule.id not in mute
    ]


@lru_cache(maxsize=65536)  # boots of one kind say the same again and again
def is_listed(text: str) -> bool:
    """Say whether any rule of the deny list is about a line, however mild."""
    pattern, rules = _filter(_FILE)
    if not pattern.search(text):
        return False
    return any(rule.match.search(text) for rule in rules if any(word in text for word in rule.words))


def _note(line: KernelLine, rules: tuple[LineRule, ...], seen: dict[tuple[str, str], _Seen]) -> None:
    for rule in rules:
        if not any(word in line.text for word in rule.words):
            continue
        found = rule.match.search(line.text)
        if not found:
            continue
        names = _names(found, line)
        identity = _fill(rule.identity, names) or rule.component
        one = seen.setdefault(
            (rule.id, identity), _Seen(rule, identity, _fill(rule.message, names)[:_SHOWN], line)
        )
        one.count += 1
        return


def _counted(one: _Seen) -> str:
    return one.message if one.count == 1 else f"{one.message} ({one.count} lines)"


def _names(found: re.Match[str], line: KernelLine) -> Mapping[str, str]:
    """Return the named groups; `dev2`, `dev3` stand in for a `dev` that did not take part."""
    names: dict[str, str] = {}
    for name, value in found.groupdict().items():
        if value is not None:
            names.setdefault(name.rstrip("0123456789"), value.strip())
    names.setdefault("dev", "a device")
    names["line"] = line.text
    return names


def _fill(template: str, names: Mapping[str, str]) -> str:
    text = re.sub(r"\{(\w+)\}", lambda name: names.get(name[1], ""), template)
    return re.sub(r"\s*\(bank , status \)|\(\)", "", text).strip()


@cache
def _filter(name: str) -> tuple[re.Pattern[str], tuple[LineRule, ...]]:
    """Return one quick test for all the rules' words, and the rules."""
    rules = line_rules(name)
    words = sorted({word for rule in rules for word in rule.words})
    return re.compile("|".join(re.escape(word) for word in words)), rules


def worst(findings: Iterable[Finding]) -> Status:
    """Return the worst status among findings; PASS where there is none."""
    order = (Status.FAIL, Status.UNKNOWN, Status.WARN)
    statuses = {finding.status for finding in findings}
    return next((status for status in order if status in statuses), Status.PASS)
