"""YAML whose every value knows its file and line, so that a mistake is said where it was made."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import NoReturn

import yaml

from inventory.errors import SiteFileError
from inventory.nodeset import nearest

_INTEGER = re.compile(r"[+-]?[0-9]+")
_NUMBER = re.compile(r"[+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)([eE][+-]?[0-9]+)?")
_WORDS = {"true": True, "false": False, "yes": True, "no": False, "on": True, "off": False}
_DEEPEST = 8


@dataclass(frozen=True, slots=True)
class Value:
    """One YAML value with its place. The methods read it as one type or raise SiteFileError."""

    node: yaml.Node
    path: Path
    name: str  # how an error speaks of it: `racks.r1.nodes`

    @property
    def line(self) -> int:
        """The line where the value starts, from 1."""
        return int(self.node.start_mark.line) + 1

    def wrong(self, what: str) -> SiteFileError:
        """Return, for raising, the error that blames this value."""
        return SiteFileError(self.path, self.line, what)

    def text(self) -> str:
        """Return a text exactly as written: `0012` and `12:34` stay what they are."""
        if not isinstance(self.node, yaml.ScalarNode) or self._plain_null():
            self._expected("text")
        return str(self.node.value)

    def integer(self, low: int, high: int) -> int:
        """Return a whole number from `low` to `high`."""
        text = self._plain("a whole number")
        if not _INTEGER.fullmatch(text):
            self._expected("a whole number")
        if not low <= int(text) <= high:
            raise self.wrong(f"{self.name} is {text}, outside {low} to {high}")
        return int(text)

    def number(self, low: float, high: float) -> float:
        """Return a number from `low` to `high`."""
        text = self._plain("a number")
        if not _NUMBER.fullmatch(text):
            self._expected("a number")
        if not low <= float(text) <= high:
            raise self.wrong(f"{self.name} is {text}, outside {low:g} to {high:g}")
        return float(text)

    def flag(self) -> bool:
        """Return true or false."""
        word = self._plain("true or false").lower()
        if word not in _WORDS:
            self._expected("true or false")
        return _WORDS[word]

    def items(self) -> list[Value]:
        """Return the values of a list."""
        if not isinstance(self.node, yaml.SequenceNode):
            self._expected("a list")
        return [
            Value(child, self.path, f"{self.name}[{place}]") for place, child in enumerate(self.node.value)
        ]

    def texts(self) -> tuple[str, ...]:
        """Return a list of texts."""
        return tuple(item.text() for item in self.items())

    def is_mapping(self) -> bool:
        """Tell whether the value has keys."""
        return isinstance(self.node, yaml.MappingNode)

    def entries(self) -> list[tuple[Value, Value]]:
        """Return the keys and values of a mapping with free keys; a key said twice is an error."""
        if not isinstance(self.node, yaml.MappingNode):
            self._expected("a mapping")
        seen: dict[str, int] = {}
        found = []
        for key_node, value_node in self.node.value:
            key = Value(key_node, self.path, f"a key of {self.name}")
            word = key.text()
            if word in seen:
                raise key.wrong(f"{word} is said twice in {self.name}, first on line {seen[word]}")
            seen[word] = key.line
            found.append((key, Value(value_node, self.path, f"{self.name}.{word}".removeprefix("."))))
        return found

    def fields(self, known: Collection[str], required: Collection[str] = ()) -> Fields:
        """Return a mapping that may have the keys `known` and must have those `required`."""
        fields: dict[str, Value] = {}
        for key, value in self.entries():
            word = key.text()
            if word not in known:
                raise key.wrong(f"{self._here()} has no key {word}{_hint(word, known)}")
            fields[word] = value
        for word in required:
            if word not in fields:
                raise self.wrong(f"{self._here()} needs a key {word}")
        return Fields(fields)

    def free(self, depth: int = 0) -> object:
        """Return a value of any type, as YAML reads it: for limits, which only checks understand."""
        if depth > _DEEPEST:
            raise self.wrong(f"{self.name} is nested more than {_DEEPEST} deep")
        if isinstance(self.node, yaml.SequenceNode):
            return tuple(item.free(depth + 1) for item in self.items())
        if isinstance(self.node, yaml.MappingNode):
            return {key.text(): value.free(depth + 1) for key, value in self.entries()}
        text = self.text()
        if self._style() is not None:  # in quotes: a text whatever it looks like
            return text
        if _NUMBER.fullmatch(text):
            return self._number(text)
        return _WORDS.get(text.lower(), text)

    def _number(self, text: str) -> int | float:
        if (text.lstrip("+-").startswith("0") and text.lstrip("+-")[1:2].isdigit()) or (
            "." in text and text.endswith("0")
        ):
            # 570.10 as a number is 570.1: a version would silently become another.
            raise self.wrong(f"{self.name} is {text}: as a number without the zero, as a text in quotes")
        return int(text) if _INTEGER.fullmatch(text) else float(text)

    def _plain(self, wanted: str) -> str:
        if not isinstance(self.node, yaml.ScalarNode) or self._style() is not None:
            self._expected(wanted)
        return str(self.node.value)

    def _style(self) -> str | None:
        """None for a bare word, else the kind of quotes or block."""
        # libyaml says "" where Python's parser says None
        return (self.node.style or None) if isinstance(self.node, yaml.ScalarNode) else None

    def _plain_null(self) -> bool:
        return self._style() is None and str(self.node.value).lower() in {"", "~", "null"}

    def _here(self) -> str:
        return self.name or self.path.name

    def _expected(self, wanted: str) -> NoReturn:
        raise self.wrong(f"{self._here()} must be {wanted}, not {self._kind()}")

    def _kind(self) -> str:
        if isinstance(self.node, yaml.MappingNode):
            return "a mapping"
        if isinstance(self.node, yaml.SequenceNode):
            return "a list"
        return "nothing" if self._plain_null() else "text"


@dataclass(frozen=True, slots=True)
class Fields:
    """The known keys of a mapping."""

    values: dict[str, Value]

    def __contains__(self, key: str) -> bool:
        return key in self.values

    def __getitem__(self, key: str) -> Value:
        return self.values[key]

    def __iter__(self) -> Iterator[str]:
        return iter(self.values)

    def text(self, key: str, default: str) -> str:
        """Return a text, or `default` where the key is left out."""
        return self.values[key].text() if key in self.values else default

    def integer(self, key: str, default: int, *, low: int, high: int) -> int:
        """Return a whole number, or `default` where the key is left out."""
        return self.values[key].integer(low, high) if key in self.values else default

    def texts(self, key: str) -> tuple[str, ...]:
        """Return a list of texts, empty where the key is left out."""
        return self.values[key].texts() if key in self.values else ()


def read(path: Path) -> Value:
    """Read one YAML document. Raises SiteFileError for a file or a syntax that cannot be read."""
    try:
        root = _compose(path.read_text(encoding="utf-8"))
    except OSError as exc:
        raise SiteFileError(path, None, f"cannot be read: {exc.strerror}") from exc
    except UnicodeDecodeError as exc:
        line = exc.object[: exc.start].count(b"\n") + 1
        raise SiteFileError(path, line, "is not UTF-8") from exc
    except yaml.MarkedYAMLError as exc:
        mark = exc.problem_mark or exc.context_mark
        raise SiteFileError(path, mark.line + 1 if mark else None, f"is not YAML: {_problem(exc)}") from exc
    except yaml.YAMLError as exc:
        raise SiteFileError(path, None, f"is not YAML: {str(exc).splitlines()[0]}") from exc
    except RecursionError as exc:
        raise SiteFileError(path, None, "is nested too deeply") from exc
    if root is None:
        raise SiteFileError(path, None, "is empty")
    return Value(root, path, "")


def _compose(text: str) -> yaml.Node | None:
    fast = getattr(yaml, "CSafeLoader", None)  # there where PyYAML was built with libyaml
    if fast is not None:
        try:
            return yaml.compose(text, Loader=fast)
        except yaml.YAMLError:
            pass  # the slow one, ten times slower, says better what is wrong
    return yaml.compose(text, Loader=yaml.SafeLoader)


def _problem(exc: yaml.MarkedYAMLError) -> str:
    begun = (
        f"{exc.context} that begins on line {exc.context_mark.line + 1}" if exc.context_mark else exc.context
    )
    return ", ".join(part for part in (begun, exc.problem) if part)


def _hint(word: str, known: Collection[str]) -> str:
    close = nearest(word, known)
    return f"; did you mean {close}?" if close else f"; it may have {', '.join(sorted(known))}"
