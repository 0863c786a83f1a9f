"""Opens JSON that a tool printed; what is no JSON is unreadable, never an empty answer."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from functools import lru_cache
from types import MappingProxyType
from typing import Any

from health.errors import Unreadable

_ANSI = re.compile(r"\x1b(?:\[[0-9;?]*[ -/]*[@-~]|[@-Z\\-_])")


def read_json(what: str, text: str) -> Any:
    """Return what the JSON holds. Raises Unreadable."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as exc:
        raise Unreadable(what, "its JSON is cut or broken") from exc


def read_object(what: str, text: str) -> Mapping[str, Any]:
    """Return the JSON object of a text. Raises Unreadable."""
    found = read_json(what, text)
    if not isinstance(found, dict):
        raise Unreadable(what, "its JSON is no object")
    return found


def part(document: object, *path: str | int) -> Any:
    """Return what lies under a path, or None where the document has no such place."""
    for key in path:
        if isinstance(document, dict) and isinstance(key, str):
            document = document.get(key)
        elif isinstance(document, list) and isinstance(key, int) and -len(document) <= key < len(document):
            document = document[key]
        else:
            return None
    return document


def number(value: object) -> float | None:
    """Return a number that may be written as text, with separators or a unit behind it."""
    if isinstance(value, bool) or value is None:
        return None
    if isinstance(value, int | float):
        return float(value)
    if isinstance(value, dict):
        return number(value.get("value"))
    found = re.match(r"\s*(-?[\d,]+(?:\.\d+)?(?:[eE][-+]?\d+)?|0x[0-9a-fA-F]+)", str(value))
    if not found:
        return None
    digits = found[1].replace(",", "")
    try:
        return float(int(digits, 16)) if digits.startswith("0x") else float(digits)
    except (ValueError, OverflowError):
        return None


def plain(text: str) -> str:
    """Return a text without terminal escapes, NUL bytes and carriage returns."""
    return _ANSI.sub("", text).replace("\0", "").replace("\r\n", "\n").replace("\r", "\n")


# Several checks look at the same files, one after the other.
@lru_cache(maxsize=16)
def sections(text: str) -> Mapping[str, str]:
    """Split what the collector brings for a pattern: a line `==> PATH <==` before each file's text.

    Raises Unreadable where it does not begin and end as the collector makes it.
    """
    lead, *parts = re.split(r"^==> (.+?) <==\n", text, flags=re.MULTILINE)
    paths, texts = parts[::2], parts[1::2]
    if lead or not paths or paths[-1] != f"{len(paths) - 1} in all" or len(set(paths)) != len(paths):
        raise Unreadable("files of a pattern", "they are not whole")
    return MappingProxyType(dict(zip(paths[:-1], texts[:-1], strict=True)))


def only(what: str, pattern: str, text: str) -> re.Match[str]:
    """Return the one match of a pattern at a line's beginning. Raises Unreadable for none, or several."""
    found = list(re.finditer(pattern, text, re.MULTILINE))
    if len(found) != 1:
        raise Unreadable(
            what, f"it has {len(found)} lines of the form {pattern.split(chr(92))[0].lstrip('^')!r}"
        )
    return found[0]
