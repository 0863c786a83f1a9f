"""BIOS attributes: read, plan what would change, hand over for the next boot."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from bmc.capability import BiosChange, BiosValue
from bmc.errors import Unsupported
from bmc.redfish.client import Client
from bmc.redfish.resource import Resource


async def attributes(client: Client, system: Resource) -> dict[str, BiosValue]:
    """Return every attribute as it is now. Raises Unsupported where there are none."""
    return _values(await _bios(client, system))


async def plan(client: Client, system: Resource, wanted: Mapping[str, BiosValue]) -> tuple[BiosChange, ...]:
    """Return what would change, in the order of `wanted`; what is so already is left out."""
    found = await _bios(client, system)
    now = _values(found)
    for name in wanted:
        if name not in now:
            raise Unsupported(client.node, client.host, f"the BIOS attribute {name}")
    waiting = _values(await client.get(_settings(client, found)))
    return tuple(
        BiosChange(name, now[name], value, waiting.get(name))
        for name, value in wanted.items()
        if value not in (now[name], waiting.get(name)) or (now[name] == value and name in waiting)
    )


async def apply(client: Client, system: Resource, changes: Sequence[BiosChange]) -> None:
    """Hand the changes over; the BIOS takes them at the next boot."""
    if not changes:
        return
    found = await _bios(client, system)
    body: dict[str, object] = {"Attributes": {change.name: change.wanted for change in changes}}
    if found.texts("@Redfish.Settings", "SupportedApplyTimes"):
        body["@Redfish.SettingsApplyTime"] = {"ApplyTime": "OnReset"}
    await client.patch(_settings(client, found), body)


async def _bios(client: Client, system: Resource) -> Resource:
    path = system.link("Bios")
    if path is None:
        raise Unsupported(client.node, client.host, "BIOS attributes")
    return await client.get(path)


def _settings(client: Client, found: Resource) -> str:
    path = found.link("@Redfish.Settings", "SettingsObject")
    if path is None:
        raise Unsupported(client.node, client.host, "changing BIOS attributes")
    return path


def _values(found: Resource) -> dict[str, BiosValue]:
    values = found.at("Attributes")
    if not isinstance(values, dict):
        return {}
    return {
        str(name): value
        for name, value in values.items()
        if value is None or isinstance(value, str | int | bool)
    }
