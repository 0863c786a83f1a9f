"""Reads cables and transceivers: mlxlink as JSON or text, ethtool -m."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from health.errors import Unreadable
from health.readers.json_text import part, read_object

_RANGE = re.compile(r"^(?P<values>[-\d.,\s]+)\[(?P<low>-?[\d.]+)\.\.(?P<high>-?[\d.]+)\]$")
_TITLE = re.compile(r"^=+ (?P<device>\S+) .*=+$")


@dataclass(frozen=True, slots=True)
class LinkReport:
    """What mlxlink says of one port: its fields in lower case. `failure` says why they cannot be trusted."""

    device: str
    fields: dict[str, str]
    failure: str | None = None

    def values(self, name: str) -> tuple[str, ...]:
        """Return the values of a field, one a lane."""
        return tuple(value.strip() for value in self.fields.get(name, "").split(",") if value.strip())


def read_mlxlink(text: str) -> tuple[LinkReport, ...]:
    """Read mlxlink's JSON, or its text of any number of ports. Raises Unreadable."""
    if text.lstrip().startswith("{"):
        document = read_object("mlxlink", text)
        code = part(document, "status", "code")
        message = str(part(document, "status", "message") or "no status")
        output = part(document, "result", "output")
        if code is None or (code == 0 and not isinstance(output, dict)):
            raise Unreadable("mlxlink", "its JSON has no status or no result")
        fields = dict(_flat(output))
        return (LinkReport("port", fields, None if code in (0, "0") else message),)
    return _from_text(text)


def _flat(output: object) -> Iterator[tuple[str, str]]:
    for section in output.values() if isinstance(output, dict) else ():
        for name, value in section.items() if isinstance(section, dict) else ():
            if isinstance(value, dict):
                value = ",".join(map(str, part(value, "values") or ()))
            yield re.sub(r"\s*\[per lane\]$", "", name.lower()), str(value)


def _from_text(text: str) -> tuple[LinkReport, ...]:
    reports: list[LinkReport] = []
    for line in text.splitlines():
        if title := _TITLE.match(line.strip()):
            reports.append(LinkReport(title["device"], {}))
            continue
        label, sign, value = line.partition(" : ")
        if sign:
            if not reports:
                reports.append(LinkReport("port", {}))
            reports[-1].fields[label.strip().lower()] = value.strip()
    if not reports or not any(report.fields for report in reports):
        raise Unreadable("mlxlink", f"it begins {text.strip()[:60]!r}")
    return tuple(reports)


def out_of_range(value: str) -> bool:
    """Say whether a "60 [-10..80]" has a value outside of its own range."""
    found = _RANGE.match(value.strip())
    if not found:
        return False
    low, high = float(found["low"]), float(found["high"])
    numbers = [float(one) for one in re.findall(r"-?\d+(?:\.\d+)?", found["values"])]
    return any(not low <= number <= high for number in numbers)


def read_module(text: str) -> dict[str, str]:
    """Read `ethtool -m`. Raises Unreadable."""
    fields = {}
    for line in text.splitlines():
        label, sign, value = line.partition(" : ")
        if sign:
            fields[label.strip().lower()] = value.strip()
    if "identifier" not in fields:
        raise Unreadable("ethtool -m", f"it begins {text.strip()[:60]!r}")
    return fields
