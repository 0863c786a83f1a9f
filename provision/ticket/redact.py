"""Replaces what names a site's people and places by tokens that stay the same within a ticket.

Addresses become `ip-3`, host names `host-1`, users `user-1`, jobs `job-2`. Serial numbers, MAC and PCI
addresses, UUIDs and part numbers stay: without them a vendor can do nothing.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from itertools import accumulate

from provision.ticket.names import DOMAIN, EVERYDAY, SYSTEM_ACCOUNTS, contexts, ip_spans
from provision.ticket.trie import alternation


class Kind(StrEnum):
    """What a token stands for."""

    IP = "ip"
    HOST = "host"
    USER = "user"
    JOB = "job"


class Profile(StrEnum):
    """Whom a ticket is for. Only the vendor's is redacted; no secret is in either."""

    VENDOR = "vendor"
    INTERNAL = "internal"


@dataclass(frozen=True, slots=True)
class Known:
    """What the site says about itself. The first host is `host-1`; `keep` is never replaced."""

    hosts: tuple[str, ...] = ()
    ips: tuple[str, ...] = ()
    users: tuple[str, ...] = ()
    jobs: tuple[str, ...] = ()
    keep: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Replaced:
    """How much of one kind was replaced: by how many tokens, how often."""

    kind: Kind
    tokens: int
    times: int


@dataclass(frozen=True, slots=True)
class _Span:
    """A stretch of text and what it names."""

    start: int
    end: int
    kind: Kind
    name: str


_TOKEN = re.compile(rf"(?:{'|'.join(Kind)})-[0-9]+\Z")
_ESCAPES = re.compile(
    r"\x1b(?:\[[0-?]*[ -/]*[@-~]|[@-Z\\-_])|\\u00[0-9a-f]{2}|\\[nrtbfv]|[\x00-\x08\x0b-\x1f]"
)
_COLOURS = re.compile(r"\x1b\[[0-9;]*m")
_LEAST = {
    Kind.HOST: 2,
    Kind.IP: 2,
    Kind.USER: 3,
    Kind.JOB: 3,
}  # letters; a shorter one is left to its context
_LEAST_WORD = 5


class Redactor:
    """Learn from every text first, then redact: a name met late is replaced in early files too."""

    def __init__(self, profile: Profile, known: Known | None = None) -> None:
        self.profile = profile
        known = known or Known()
        self._names: dict[str, Kind] = {}
        self._keep = set(known.keep)
        self._tokens: dict[Kind, dict[str, str]] = {kind: {} for kind in Kind}
        self._times: Counter[tuple[Kind, str]] = Counter()
        self._compiled: tuple[re.Pattern[str], re.Pattern[str]] | None = None
        seeds = {Kind.HOST: known.hosts, Kind.IP: known.ips, Kind.USER: known.users, Kind.JOB: known.jobs}
        for kind, names in seeds.items():
            for name in names:
                self._learn(kind, name, sure=True)
        for name in known.hosts[:1]:
            self._token(Kind.HOST, name)

    def learn(self, text: str) -> None:
        """Take in the names that `text` gives away, for example in `Accepted publickey for ana`."""
        if self.profile is Profile.INTERNAL:
            return
        for view in _views(text):
            for span in _contextual(view.text):
                self._learn(span.kind, span.name)

    def keep(self, names: Iterable[str]) -> None:
        """Never replace these, or a part of them: serial numbers that look like something else."""
        self._keep |= set(names)
        self._compiled = None

    def text(self, text: str) -> str:
        """Return `text` with tokens in place of names."""
        return self.pieces([text])[0]

    def member(self, key: str, value: str) -> str:
        """Return the value of a JSON member, whose key may say what it names: `{"user": "ana"}`."""
        return self.pieces([f"{key}=", value])[1]

    def pieces(self, pieces: Sequence[str]) -> list[str]:
        """Redact texts that follow each other, where a name may lie across several of them.

        A token stands in the piece in which its name began.
        """
        if self.profile is Profile.INTERNAL:
            return list(pieces)
        ends = list(accumulate(len(piece) for piece in pieces))
        text = "".join(pieces)
        out: list[list[str]] = [[] for _ in pieces]
        at = 0
        for span in self._spans(text):
            _copy(out, ends, text, at, span.start)
            name = self._canonical(span)
            self._times[span.kind, name] += 1
            out[bisect_right(ends, span.start)].append(self._token(span.kind, name))
            at = span.end
        _copy(out, ends, text, at, len(text))
        return ["".join(parts) for parts in out]

    def replaced(self) -> tuple[Replaced, ...]:
        """Say how much was replaced so far, never what."""
        found = []
        for kind in Kind:
            times = [count for (of, _), count in self._times.items() if of is kind]
            found.append(Replaced(kind, len(times), sum(times)))
        return tuple(found)

    # -- inside --------------------------------------------------------------------------------

    def _learn(self, kind: Kind, name: str, *, sure: bool = False) -> None:
        new = name not in self._names and name.lower() not in EVERYDAY and len(name) >= _LEAST[kind]
        if new and _names_something(kind, name) and (sure or not _word(kind, name)):
            self._names[name] = kind
            self._compiled = None

    def _canonical(self, span: _Span) -> str:
        """Return what two spellings of one name share: a host's first label, where that is a host too."""
        label = span.name.partition(".")[0]
        return label if span.kind is Kind.HOST and self._names.get(label) is Kind.HOST else span.name

    def _token(self, kind: Kind, name: str) -> str:
        given = self._tokens[kind]
        return given.setdefault(name, f"{kind}-{len(given) + 1}")

    def _spans(self, text: str) -> list[_Span]:
        """Return what is to be replaced, in order, none across another; the longest wins."""
        found = {span for view in _views(text) for span in self._in_view(view)}
        kept = [(start, end) for start, end, _ in _whole(self._patterns()[1], text)]
        spans: list[_Span] = []
        at = 0
        for span in sorted(found, key=lambda span: (span.start, -span.end, span.kind)):
            if span.start >= at and not any(start <= span.start and span.end <= end for start, end in kept):
                spans.append(span)
                at = span.end
        return spans

    def _in_view(self, view: _View) -> Iterator[_Span]:
        for start, end, name in _whole(self._patterns()[0], view.text):
            kind = self._names[name]
            if kind is Kind.HOST:
                domain = DOMAIN.match(view.text, end)
                end = domain.end() if domain else end
            yield view.span(start, end, kind, name)
        for start, end, name in ip_spans(view.text):
            yield view.span(start, end, Kind.IP, name)
        for span in _contextual(view.text):
            yield view.span(span.start, span.end, span.kind, span.name)

    def _patterns(self) -> tuple[re.Pattern[str], re.Pattern[str]]:
        if self._compiled is None:
            behind = r"(?![A-Za-z0-9])"
            names = re.compile(f"(?:{alternation(self._names)}){behind}")
            self._compiled = names, re.compile(f"(?:{alternation(self._keep)}){behind}")
        return self._compiled


def _whole(pattern: re.Pattern[str], text: str) -> Iterator[tuple[int, int, str]]:
    """Yield the matches that begin a word. Looked at here: a look behind makes a pattern slow."""
    match = pattern.search(text)
    while match is not None:
        start, end = match.span()
        if start and text[start - 1].isalnum() and text[start - 1].isascii():
            end = start + 1
        else:
            yield start, end, match.group()
        match = pattern.search(text, end)


def _word(kind: Kind, name: str) -> bool:
    """Tell what may be a word elsewhere: a host called `vm`, a user called `System`."""
    if kind is Kind.HOST:
        return name.isalpha() and len(name) < _LEAST_WORD
    return kind is Kind.USER and name != name.lower()


def _names_something(kind: Kind, name: str) -> bool:
    """Tell names from tokens of an earlier redaction, addresses, and accounts that every system has."""
    if _TOKEN.match(name):
        return False
    if kind is Kind.HOST:
        return not name.replace(".", "").isdigit()
    return kind is not Kind.USER or name.lower() not in SYSTEM_ACCOUNTS


def _contextual(text: str) -> Iterator[_Span]:
    """Yield the names that what stands around them makes names."""
    for word, start, end in contexts(text):
        kind, name = Kind(word), text[start:end]
        if _names_something(kind, name):
            yield _Span(start, end, kind, name)


def _copy(out: list[list[str]], ends: Sequence[int], text: str, start: int, end: int) -> None:
    """Copy text[start:end] into the pieces that it came from."""
    while start < end:
        index = bisect_right(ends, start)
        stop = min(end, ends[index])
        out[index].append(text[start:stop])
        start = stop


@dataclass(frozen=True, slots=True)
class _View:
    """A stretch of a text as one reads it: from `offset` on, or letter by letter at `places`."""

    text: str
    offset: int = 0
    places: Sequence[int] | None = None

    def span(self, start: int, end: int, kind: Kind, name: str) -> _Span:
        if self.places is None:
            return _Span(self.offset + start, self.offset + end, kind, name)
        return _Span(self.places[start], self.places[end - 1] + 1, kind, name)


def _views(text: str) -> Iterator[_View]:
    """Read a text as it is, and lines with escapes also with blanks for these, and with colours taken out.

    Escape sequences end in letters, which would otherwise seem to belong to the name behind them.
    """
    yield _View(text)
    end = -1
    for escape in _ESCAPES.finditer(text):
        if escape.start() < end:
            continue
        start = text.rfind("\n", 0, escape.start()) + 1
        end = text.find("\n", escape.end())
        end = len(text) if end < 0 else end
        line = text[start:end]
        yield _View(_ESCAPES.sub(lambda match: " " * len(match.group()), line), start)
        if _COLOURS.search(line):
            yield _uncoloured(line, start)


def _uncoloured(line: str, offset: int) -> _View:
    places: list[int] = []
    at = 0
    for colour in _COLOURS.finditer(line):
        places += range(offset + at, offset + colour.start())
        at = colour.end()
    places += range(offset + at, offset + len(line))
    return _View(_COLOURS.sub("", line), places=places)
