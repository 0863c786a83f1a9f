"""The region's memory as one JSON file, so that a lab that is started again remembers."""

from __future__ import annotations

import base64
import json
import os
import types
import typing
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import Field, fields, is_dataclass
from enum import IntEnum
from pathlib import Path
from typing import Any

from lab.maas.errors import BadSnapshot
from lab.maas.model.catalogue import Script
from lab.maas.model.machine import Machine
from lab.maas.model.region import BootResource, Event, Region, SshKey, Subnet, Tag, Vlan, Zone
from lab.maas.model.results import ScriptSet

FORMAT = 1
_EVENTS_KEPT = 5_000
# What is kept of the region, and of what it is made. Numbers as keys become text in JSON.
_KEPT: dict[str, type] = {
    "machines": Machine,
    "zones": Zone,
    "pools": Zone,
    "tags": Tag,
    "vlans": Vlan,
    "subnets": Subnet,
    "scripts": Script,
    "script_sets": ScriptSet,
    "images": BootResource,
    "ssh_keys": SshKey,
}
_BY_NUMBER = frozenset({"vlans", "subnets", "script_sets", "images", "ssh_keys"})
_PLAIN = ("settings", "racks", "image_sizes", "counters")


def save(region: Region, file: Path) -> None:
    """Write the region to a file that only we can read, all or nothing."""
    whole: dict[str, Any] = {"format": FORMAT}
    for name in _KEPT:
        whole[name] = {str(key): _plain(one) for key, one in getattr(region, name).items()}
    for name in _PLAIN:
        whole[name] = dict(getattr(region, name))
    whole["events"] = [_plain(one) for one in list(region.events)[-_EVENTS_KEPT:]]
    file.parent.mkdir(parents=True, exist_ok=True)
    half = file.with_suffix(".part")
    descriptor = os.open(half, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(descriptor, "w", encoding="utf-8") as out:
        json.dump(whole, out)
    half.replace(file)


def load(region: Region, file: Path) -> bool:
    """Fill the region from a file; False when there is none. Raises BadSnapshot."""
    try:
        text = file.read_text(encoding="utf-8")
    except FileNotFoundError:
        return False
    try:
        whole = json.loads(text)
        if whole["format"] != FORMAT:
            raise BadSnapshot(str(file), f"is of format {whole['format']}, not {FORMAT}")
        _fill(region, whole)
    except (ValueError, KeyError, TypeError, AttributeError) as exc:
        raise BadSnapshot(str(file), "is not the memory of a lab MAAS") from exc
    return True


def _fill(region: Region, whole: Mapping[str, Any]) -> None:
    for name, kind in _KEPT.items():
        found = {
            int(key) if name in _BY_NUMBER else key: _made(kind, value) for key, value in whole[name].items()
        }
        setattr(region, name, found)
    for image in region.images.values():
        # What had arrived of an upload is gone with the process that took it.
        if image.file is not None and not image.file.complete:
            image.file.received = 0
    region.settings, region.racks = dict(whole["settings"]), dict(whole["racks"])
    region.image_sizes = dict(whole["image_sizes"])
    region.counters = defaultdict(int, whole["counters"])
    for one in whole["events"]:
        event: Event = _made(Event, one)
        region.events.append(event)
        region.machine_events[event.system_id].append(event)


def _stored(kind: type) -> list[Field[Any]]:
    return [one for one in fields(kind) if one.metadata.get("kept", True)]


def _plain(value: Any) -> Any:
    if is_dataclass(value) and not isinstance(value, type):
        return {one.name: _plain(getattr(value, one.name)) for one in _stored(type(value))}
    if isinstance(value, IntEnum):
        return int(value)
    if isinstance(value, bytes):
        return base64.b64encode(value).decode()
    if isinstance(value, list | tuple):
        return [_plain(one) for one in value]
    if isinstance(value, dict):
        return {key: _plain(one) for key, one in value.items()}
    return value


def _made(kind: Any, value: Any) -> Any:
    """Make a value of a kind again from its plain form."""
    origin, inside = typing.get_origin(kind), typing.get_args(kind)
    if origin is types.UnionType:
        (real,) = (one for one in inside if one is not types.NoneType)
        return None if value is None else _made(real, value)
    if origin in {list, tuple}:
        return origin(_made(inside[0], one) for one in value)
    if origin is dict:
        return {key: _made(inside[1], one) for key, one in value.items()}
    return _made_simple(kind, value)


def _made_simple(kind: Any, value: Any) -> Any:
    if is_dataclass(kind) and isinstance(kind, type):
        hints = typing.get_type_hints(kind)
        return kind(**{one.name: _made(hints[one.name], value[one.name]) for one in _stored(kind)})
    if kind is bytes:
        return base64.b64decode(value)
    return kind(value) if isinstance(kind, type) and issubclass(kind, IntEnum) else value
