"""Compares an answer with a recorded one: the form everywhere, the words where MAAS chose them."""

from __future__ import annotations

import re
from typing import Any

# What MAAS itself decides about a machine; everything else about it is hardware, time or number.
SPOKEN = (
    "hostname", "fqdn", "status", "status_name", "status_message", "status_action", "owner", "locked",
    "netboot", "osystem", "distro_series", "hwe_kernel", "ephemeral_deploy", "error_description",
    "power_type", "architecture", "tag_names", "owner_data", "workload_annotations", "description",
    "commissioning_status_name", "testing_status_name", "storage_test_status_name",
    "memory_test_status_name", "node_type_name",
)  # fmt: skip


def form(value: Any) -> Any:
    """Return a value's form: its keys and types, the members of a list as a set of forms."""
    if isinstance(value, dict):
        return frozenset((name, form(found)) for name, found in value.items())
    if isinstance(value, list):
        return ("list", frozenset(form(one) for one in value))
    return type(value).__name__


def differences(recorded: Any, got: Any, where: str = "") -> list[str]:
    """Return where two values differ in form, each as one line."""
    if isinstance(recorded, dict) and isinstance(got, dict):
        found = [f"{where}.{name}: missing" for name in recorded.keys() - got.keys()]
        found += [f"{where}.{name}: not recorded" for name in got.keys() - recorded.keys()]
        for name in recorded.keys() & got.keys():
            found += differences(recorded[name], got[name], f"{where}.{name}")
        return sorted(found)
    if isinstance(recorded, list) and isinstance(got, list):
        return _list_differences(recorded, got, where)
    if type(recorded) is not type(got):
        return [f"{where}: {type(recorded).__name__} recorded, {type(got).__name__} answered"]
    return []


def _list_differences(recorded: list[Any], got: list[Any], where: str) -> list[str]:
    if len(recorded) == len(got):
        pairs = enumerate(zip(recorded, got, strict=True))
        return [line for n, (one, two) in pairs for line in differences(one, two, f"{where}[{n}]")]
    if form(recorded) == form(got):
        return []
    return [f"{where}: {len(recorded)} members recorded, {len(got)} answered, of other forms"]


def spoken_differences(recorded: Any, got: Any) -> list[str]:
    """Return where MAAS's words about machines differ."""
    pairs = zip(_machines(recorded), _machines(got), strict=False)
    return [
        f"{one['hostname']}.{name}: {one[name]!r} recorded, {two.get(name)!r} answered"
        for one, two in pairs
        for name in SPOKEN
        if name in one and one[name] != two.get(name)
    ]


def _machines(body: Any) -> list[dict[str, Any]]:
    many = body if isinstance(body, list) else [body]
    return [one for one in many if isinstance(one, dict) and "status_name" in one and "hostname" in one]


def rename(value: Any, names: dict[str, str]) -> Any:
    """Replace ids wherever they stand, in keys and texts too."""
    if not names:
        return value
    pattern = re.compile(r"(?<![A-Za-z0-9])(" + "|".join(map(re.escape, names)) + r")(?![A-Za-z0-9])")
    return _rename(value, pattern, names)


def _rename(value: Any, pattern: re.Pattern[str], names: dict[str, str]) -> Any:
    if isinstance(value, dict):
        return {
            _rename(name, pattern, names): _rename(found, pattern, names) for name, found in value.items()
        }
    if isinstance(value, list):
        return [_rename(one, pattern, names) for one in value]
    if isinstance(value, str):
        return pattern.sub(lambda found: names[found[0]], value)
    return value
