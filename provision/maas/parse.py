"""Turns MAAS's JSON into the values of `model`. A missing or odd required field is a BadAnswer."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Any, TypeVar

from provision.maas.errors import MaasBadAnswer
from provision.maas.model import (
    BlockDevice,
    BootResource,
    Event,
    ImageFile,
    Interface,
    Link,
    Machine,
    MachineStatus,
    Named,
    PowerParameters,
    RackController,
    ScriptResult,
    Subnet,
    Tag,
    User,
    Version,
)

Json = Mapping[str, Any]
T = TypeVar("T")

# The power parameter that holds the BMC's address, by MAAS's power driver.
_ADDRESS_KEYS = ("power_address", "mac_address", "node_outlet")


def machine(raw: object) -> Machine:
    """Read one machine."""
    body = obj(raw, "machine")
    code = _integer(body, "status")
    interfaces: list[Json] = [item for item in body.get("interface_set") or () if isinstance(item, dict)]
    hardware = body.get("hardware_info") or {}
    return Machine(
        system_id=_text(body, "system_id"),
        hostname=_text(body, "hostname"),
        status=status(code),
        status_name=_text(body, "status_name"),
        status_message=_loose(body, "status_message"),
        error_description=_loose(body, "error_description"),
        power_state=_loose(body, "power_state") or "unknown",
        power_type=_loose(body, "power_type"),
        pool=_name_of(body.get("pool")),
        zone=_name_of(body.get("zone")),
        tags=tuple(str(tag) for tag in body.get("tag_names") or ()),
        macs=_macs(body.get("boot_interface"), interfaces),
        addresses=_addresses(body, interfaces),
        locked=body.get("locked") is True,
        owner=_loose(body, "owner") or None,
        osystem=_loose(body, "osystem"),
        distro_series=_loose(body, "distro_series"),
        architecture=_loose(body, "architecture"),
        fqdn=_loose(body, "fqdn"),
        serial=_known(hardware, "system_serial") or _known(hardware, "chassis_serial"),
        netboot=body.get("netboot") is True,
        ephemeral=body.get("ephemeral_deploy") is True,
        description=_loose(body, "description"),
    )


def status(code: int) -> MachineStatus | int:
    """Return the status that `code` means, or the bare code where it is new to us."""
    try:
        return MachineStatus(code)
    except ValueError:
        return code


def power_parameters(raw: object) -> PowerParameters:
    """Read one machine's power parameters; lists are joined with commas."""
    body = obj(raw, "power parameters")
    values = {
        str(key): ",".join(str(part) for part in value) if isinstance(value, list) else str(value or "")
        for key, value in body.items()
    }
    address = next((values[key] for key in _ADDRESS_KEYS if values.get(key)), "")
    return PowerParameters(address=address, values=values)


def all_power_parameters(raw: object) -> dict[str, PowerParameters]:
    """Read every machine's power parameters, by system id."""
    return {system_id: power_parameters(each) for system_id, each in obj(raw, "power parameters").items()}


def event(raw: object) -> Event:
    """Read one event."""
    body = obj(raw, "event")
    return Event(
        id=_integer(body, "id"),
        at=_event_time(_text(body, "created")),
        level=_loose(body, "level"),
        type=_loose(body, "type"),
        description=_loose(body, "description"),
        system_id=_loose(body, "node"),
        hostname=_loose(body, "hostname"),
    )


def script_set(raw: object) -> tuple[ScriptResult, ...]:
    """Read the results of one run of scripts."""
    body = obj(raw, "script results")
    kind = _loose(body, "type_name")
    set_id = _integer(body, "id")
    return tuple(_script_result(item, kind, set_id) for item in array(body.get("results"), "script results"))


def interface(raw: object) -> Interface:
    """Read one interface with its links."""
    body = obj(raw, "interface")
    vlan = body.get("vlan")
    return Interface(
        id=_integer(body, "id"),
        name=_text(body, "name"),
        mac=_loose(body, "mac_address").lower(),
        kind=_loose(body, "type"),
        enabled=body.get("enabled") is True,
        connected=body.get("link_connected") is True,
        speed=int(body.get("link_speed") or 0),
        vlan_id=_integer(vlan, "id") if isinstance(vlan, dict) else None,
        links=tuple(_link(item) for item in array(body.get("links") or [], "links")),
    )


def block_device(raw: object) -> BlockDevice:
    """Read one disk."""
    body = obj(raw, "block device")
    return BlockDevice(
        id=_integer(body, "id"),
        name=_text(body, "name"),
        path=_loose(body, "id_path") or _loose(body, "path"),
        size=int(body.get("size") or 0),
        model=_loose(body, "model"),
        serial=_loose(body, "serial"),
        kind=_loose(body, "type"),
        used_for=_loose(body, "used_for"),
    )


def boot_resource(raw: object) -> BootResource:
    """Read one image that MAAS holds."""
    body = obj(raw, "boot resource")
    return BootResource(
        id=_integer(body, "id"),
        name=_text(body, "name"),
        architecture=_loose(body, "architecture"),
        kind=_loose(body, "type"),
    )


def image_files(raw: object) -> tuple[ImageFile, ...]:
    """Read the files of the newest version of an image; none where MAAS has announced none."""
    versions = obj(obj(raw, "boot resource").get("sets") or {}, "the image's versions")
    if not versions:
        return ()
    newest = obj(versions[max(versions)], "the image's version")
    files = obj(newest.get("files") or {}, "the image's files")
    return tuple(_image_file(one) for one in files.values())


def _image_file(raw: object) -> ImageFile:
    body = obj(raw, "the image's file")
    _, _, path = _loose(body, "upload_uri").partition("/api/2.0/")
    return ImageFile(complete=body.get("complete") is True, upload_path=path or None)


def subnet(raw: object) -> Subnet:
    """Read one subnet."""
    body = obj(raw, "subnet")
    vlan = obj(body.get("vlan"), "the subnet's VLAN")
    return Subnet(
        id=_integer(body, "id"),
        name=_text(body, "name"),
        cidr=_text(body, "cidr"),
        gateway=_loose(body, "gateway_ip") or None,
        vlan_id=_integer(vlan, "id"),
        fabric=_loose(vlan, "fabric"),
        managed=body.get("managed") is True,
    )


def named(raw: object) -> Named:
    """Read a pool or a zone."""
    body = obj(raw, "pool or zone")
    return Named(_integer(body, "id"), _text(body, "name"), _loose(body, "description"))


def tag(raw: object) -> Tag:
    """Read one tag."""
    body = obj(raw, "tag")
    return Tag(_text(body, "name"), _loose(body, "comment"), _loose(body, "kernel_opts"))


def rack_controller(raw: object) -> RackController:
    """Read one rack controller."""
    body = obj(raw, "rack controller")
    services = {
        str(item.get("name")): str(item.get("status"))
        for item in body.get("service_set") or ()
        if isinstance(item, dict)
    }
    return RackController(
        _text(body, "system_id"), _text(body, "hostname"), _loose(body, "version"), services
    )


def version(raw: object) -> Version:
    """Read what MAAS says of itself."""
    body = obj(raw, "version")
    capabilities = tuple(str(item) for item in body.get("capabilities") or ())
    return Version(_text(body, "version"), _loose(body, "subversion"), capabilities)


def user(raw: object) -> User:
    """Read the user that the key belongs to."""
    body = obj(raw, "user")
    return User(_text(body, "username"), body.get("is_superuser") is True)


def obj(raw: object, what: str) -> dict[str, Any]:
    """Return `raw` as a JSON object, or raise."""
    if not isinstance(raw, dict):
        raise MaasBadAnswer(what, f"an object was expected, {type(raw).__name__} came")
    return raw


def array(raw: object, what: str) -> list[Any]:
    """Return `raw` as a JSON array, or raise."""
    if not isinstance(raw, list):
        raise MaasBadAnswer(what, f"a list was expected, {type(raw).__name__} came")
    return raw


def each(read: Callable[[object], T], raw: object, what: str) -> tuple[T, ...]:
    """Read every element of a JSON array."""
    return tuple(read(item) for item in array(raw, what))


def _text(body: Json, key: str) -> str:
    value = body.get(key)
    if not isinstance(value, str):
        raise MaasBadAnswer(key, f"the field {key!r} is missing or no text")
    return value


def _integer(body: Json, key: str) -> int:
    value = body.get(key)
    if not isinstance(value, int) or isinstance(value, bool):
        raise MaasBadAnswer(key, f"the field {key!r} is missing or no number")
    return value


def _loose(body: Json, key: str) -> str:
    value = body.get(key)
    return value if isinstance(value, str) else ""


def _name_of(raw: object) -> str:
    return _loose(raw, "name") if isinstance(raw, dict) else ""


def _known(hardware: object, key: str) -> str | None:
    value = hardware.get(key) if isinstance(hardware, dict) else None
    return value if isinstance(value, str) and value not in {"", "Unknown"} else None


def _macs(boot: object, interfaces: list[Json]) -> tuple[str, ...]:
    ordered = [boot, *interfaces] if isinstance(boot, dict) else interfaces
    found = (_loose(item, "mac_address").lower() for item in ordered)
    return tuple(dict.fromkeys(mac for mac in found if mac))


def _addresses(body: Json, interfaces: list[Json]) -> tuple[str, ...]:
    found = [str(address) for address in body.get("ip_addresses") or ()]
    for item in interfaces:
        links = [*(item.get("links") or ()), *(item.get("discovered") or ())]
        found += [link["ip_address"] for link in links if isinstance(link, dict) and link.get("ip_address")]
    return tuple(dict.fromkeys(found))


def _link(raw: object) -> Link:
    body = obj(raw, "link")
    on = body.get("subnet")
    return Link(
        id=_integer(body, "id"),
        mode=_loose(body, "mode"),
        address=_loose(body, "ip_address") or None,
        subnet=_loose(on, "cidr") if isinstance(on, dict) else None,
    )


def _script_result(raw: object, kind: str, set_id: int) -> ScriptResult:
    body = obj(raw, "script result")
    exit_status = body.get("exit_status")
    output = body.get("output")
    return ScriptResult(
        id=_integer(body, "id"),
        name=_text(body, "name"),
        kind=kind,
        status=_integer(body, "status"),
        status_name=_loose(body, "status_name"),
        exit_status=exit_status if isinstance(exit_status, int) else None,
        started=_result_time(body.get("started")),
        ended=_result_time(body.get("ended")),
        set_id=set_id,
        suppressed=body.get("suppressed") is True,
        device=_device(body.get("parameters")),
        output=_decoded(output) if isinstance(output, str) else None,
    )


def _device(parameters: object) -> str | None:
    if not isinstance(parameters, dict):
        return None
    for parameter in parameters.values():
        value = parameter.get("value") if isinstance(parameter, dict) else None
        if isinstance(value, dict):
            return _loose(value, "name") or None
    return None


def _decoded(encoded: str) -> str:
    try:
        return base64.b64decode(encoded, validate=True).decode("utf-8", errors="replace")
    except binascii.Error:
        return encoded


def _event_time(text: str) -> datetime:
    # "Mon, 30 Nov. 2026 08:00:41": UTC, and the month may carry a full stop.
    try:
        found = parsedate_to_datetime(text.replace(".", ""))
    except ValueError as exc:
        raise MaasBadAnswer("events", f"{text!r} is no date") from exc
    return found.replace(tzinfo=UTC) if found.tzinfo is None else found.astimezone(UTC)


def _result_time(raw: object) -> datetime | None:
    if not isinstance(raw, str) or not raw:
        return None
    try:
        return parsedate_to_datetime(raw).astimezone(UTC)
    except ValueError:
        return None
