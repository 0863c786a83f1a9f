"""Names what stopped a boot from what its console said; the patterns are data in causes.yaml."""

from __future__ import annotations

import functools
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import yaml

_TABLE = Path(__file__).with_name("causes.yaml")
_LONGEST_LINE = 4096


@dataclass(frozen=True, slots=True)
class Rule:
    """One row of causes.yaml."""

    id: str
    title: str
    rank: int
    advice: str
    has: tuple[bytes, ...]
    match: re.Pattern[bytes] | None
    at_least: int
    cleared: tuple[bytes, ...]

    def fits(self, line: bytes) -> bool:
        return any(text in line for text in self.has) and (
            self.match is None or bool(self.match.search(line))
        )


@dataclass(frozen=True, slots=True)
class Cause:
    """Why a boot stopped. `line` is the console's own words, `time` when they came first
    (seconds since 1970), `count` how many lines said so."""

    id: str
    title: str
    advice: str
    line: str
    time: float
    count: int


@functools.cache
def rules() -> tuple[Rule, ...]:
    """Return the table, in the order of the file."""
    return tuple(_rule(row) for row in yaml.safe_load(_TABLE.read_text(encoding="utf-8")))


def _rule(row: Mapping[str, object]) -> Rule:
    match = row.get("match")
    rank, at_least = row["rank"], row.get("at_least", 1)
    if not isinstance(rank, int) or not isinstance(at_least, int):
        raise TypeError(f"causes.yaml: {row['id']}: rank and at_least are numbers")
    return Rule(
        id=str(row["id"]),
        title=str(row["title"]),
        rank=rank,
        advice=str(row["advice"]),
        has=_texts(row["has"]),
        match=re.compile(str(match).encode()) if match else None,
        at_least=at_least,
        cleared=_texts(row.get("cleared", [])),
    )


def _texts(value: object) -> tuple[bytes, ...]:
    if not isinstance(value, list):
        raise TypeError(f"causes.yaml: {value!r} is no list")
    return tuple(str(text).encode() for text in value)


@functools.cache
def _all_needles() -> tuple[bytes, ...]:
    return tuple({text for rule in rules() for text in (*rule.has, *rule.cleared)})


@dataclass(slots=True)
class _Seen:
    line: bytes  # the first that fitted: later ones are often only a prompt
    time: float
    count: int = 0
    latest: float = 0.0


@dataclass(slots=True)
class Watch:
    """Reads plain console text piece by piece and knows the cause so far."""

    _seen: dict[int, _Seen] = field(default_factory=dict)
    _line: bytes = b""
    _now: float = 0.0
    _needles: tuple[bytes, ...] = field(default_factory=_all_needles)

    def feed(self, time: float, text: bytes) -> None:
        """Take text that came at `time`, without terminal control."""
        self._now = time
        block = self._line + text.replace(b"\r", b"\n")
        cut = block.rfind(b"\n") + 1
        self._line = block[cut:][-_LONGEST_LINE:]
        whole = block[:cut]
        if any(needle in whole for needle in self._needles):
            for line in whole.split(b"\n"):
                if line:
                    self._judge(time, line)

    def feed_all(self, pieces: Sequence[tuple[float, bytes]]) -> None:
        """Take many pieces; cheap where none of them says anything that a rule looks for."""
        block = self._line + b"".join(text for _, text in pieces)
        if any(needle in block for needle in self._needles):
            for time, text in pieces:
                self.feed(time, text)
        elif pieces:
            self._now = pieces[-1][0]
            self._line = block[max(block.rfind(b"\n"), block.rfind(b"\r")) + 1 :][-_LONGEST_LINE:]

    def _judge(self, time: float, line: bytes) -> None:
        for index, rule in enumerate(rules()):
            if any(text in line for text in rule.cleared):
                self._seen.pop(index, None)
            elif rule.fits(line):
                seen = self._seen.setdefault(index, _Seen(line, time))
                seen.count, seen.latest = seen.count + 1, time

    def cause(self) -> Cause | None:
        """Return the cause of the highest rank, the latest of these; None where nothing is known.

        The line that is still being written counts too: prompts never end theirs.
        """
        found = dict(self._seen)
        for index, rule in enumerate(rules()):
            if self._line and any(text in self._line for text in rule.cleared):
                found.pop(index, None)
            elif self._line and rule.fits(self._line):
                first = found.get(index, _Seen(self._line, self._now))
                found[index] = _Seen(first.line, first.time, first.count + 1, self._now)
        table = rules()
        enough = [
            (table[index], seen) for index, seen in found.items() if seen.count >= table[index].at_least
        ]
        if not enough:
            return None
        rule, seen = max(enough, key=lambda pair: (pair[0].rank, pair[1].latest))
        line = seen.line.decode("utf-8", "replace").strip()
        return Cause(rule.id, rule.title, rule.advice, line, seen.time, seen.count)
