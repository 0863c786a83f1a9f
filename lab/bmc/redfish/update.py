"""Firmware: inventory, and updates fetched (SimpleUpdate) or pushed (multipart).

The lab's firmware images are text: a line "LAB FIRMWARE", then `component: ID` and `version: V`.
"""

from __future__ import annotations

import json
from dataclasses import dataclass

import aiohttp
from aiohttp import web

from lab.bmc.redfish.answers import (
    UPDATE,
    Answer,
    Json,
    Rejected,
    bad_value,
    collection,
    error,
    link,
    missing_property,
    not_found,
    resource,
)
from lab.bmc.redfish.jobs import Job, JobFailed, accepted
from lab.bmc.redfish.service import MAX_BODY, Call, Route
from lab.bmc.spec import Privilege

INVENTORY = f"{UPDATE}/FirmwareInventory"
SIMPLE_UPDATE = f"{UPDATE}/Actions/UpdateService.SimpleUpdate"
PUSH = f"{UPDATE}/MultipartUpload"
MAGIC = "LAB FIRMWARE"
FETCH_LIMIT_S = 30.0
_IMMEDIATE, _ON_RESET = "Immediate", "OnReset"
_APPLY_TIMES = (_IMMEDIATE, _ON_RESET)


@dataclass(frozen=True, slots=True)
class Component:
    """Something that carries firmware, as it left the factory."""

    component_id: str
    name: str
    version: str
    needs_boot: bool = True


COMPONENTS = (
    Component("BIOS.Setup.1-1", "BIOS", "2.3.5"),
    Component(
        "iDRAC.Embedded.1-1", "Integrated Dell Remote Access Controller", "7.10.50.00", needs_boot=False
    ),
    Component("CPLD.Embedded.1", "System CPLD", "1.2.1"),
    Component("NIC.Integrated.1-1-1", "Lab Ethernet 25G 2P", "22.31.6"),
    Component("InfiniBand.Slot.31-1", "NVIDIA ConnectX-7", "28.39.1002"),
    Component("PSU.Slot.1", "Power Supply 1", "00.1B.53", needs_boot=False),
    Component("PSU.Slot.2", "Power Supply 2", "00.1B.53", needs_boot=False),
    *(Component(f"Video.Slot.{slot}-1", f"HGX H100 GPU {slot}", "96.00.89.00.01") for slot in range(1, 9)),
)
_BY_ID = {component.component_id: component for component in COMPONENTS}


def _version(call: Call, component: Component) -> str:
    return call.service.firmware.get(component.component_id, component.version)


async def _service(_call: Call) -> Answer:
    return Answer(
        resource(
            UPDATE,
            "UpdateService.v1_11_3.UpdateService",
            "Update Service",
            ServiceEnabled=True,
            FirmwareInventory=link(INVENTORY),
            HttpPushUri=INVENTORY,
            MultipartHttpPushUri=PUSH,
            MaxImageSizeBytes=MAX_BODY,
            Actions={
                "#UpdateService.SimpleUpdate": {
                    "target": SIMPLE_UPDATE,
                    "TransferProtocol@Redfish.AllowableValues": ["HTTP", "HTTPS"],
                    "@Redfish.OperationApplyTimeSupport": {"SupportedValues": list(_APPLY_TIMES)},
                }
            },
        )
    )


def _entry(call: Call, component: Component) -> Json:
    version = _version(call, component)
    inventory_id = f"Installed-0-{version}__{component.component_id}"
    return resource(
        f"{INVENTORY}/{inventory_id}",
        "SoftwareInventory.v1_10_0.SoftwareInventory",
        component.name,
        Version=version,
        Updateable=True,
        SoftwareId="0",
        Status={"Health": "OK", "State": "Enabled"},
    )


async def _inventory(call: Call) -> Answer:
    members = [link(_entry(call, component)["@odata.id"]) for component in COMPONENTS]
    return Answer(collection(INVENTORY, "SoftwareInventoryCollection", members))


async def _inventory_one(call: Call) -> Answer:
    for component in COMPONENTS:
        entry = _entry(call, component)
        if entry["Id"] == call.names["item"]:
            return Answer(entry)
    return not_found(call.path)


async def _simple_update(call: Call) -> Answer:
    uri = call.body.get("ImageURI")
    if not isinstance(uri, str):
        raise missing_property("ImageURI")
    apply_time = _apply_time(call.body)
    pushed = call.service.images.get(uri)
    if pushed is None and not uri.startswith(("http://", "https://")):
        raise bad_value("ImageURI", uri)
    image = pushed if pushed is not None else await _fetch(uri)
    return accepted(_make_job(call, image, apply_time))


def _apply_time(body: Json) -> str:
    value = body.get("@Redfish.OperationApplyTime", _IMMEDIATE)
    if value not in _APPLY_TIMES:
        raise bad_value("@Redfish.OperationApplyTime", value)
    return str(value)


async def _fetch(uri: str) -> bytes | None:
    """Return the image; None where it cannot be had, which fails the job as on a real BMC."""
    limit = aiohttp.ClientTimeout(total=FETCH_LIMIT_S)
    try:
        async with aiohttp.ClientSession(timeout=limit) as client, client.get(uri, ssl=False) as answer:
            return await answer.content.read() if answer.status == 200 else None
    except (aiohttp.ClientError, TimeoutError):
        return None


def _make_job(call: Call, image: bytes | None, apply_time: str) -> Job:
    service = call.service

    def install() -> None:
        if image is None:
            raise JobFailed("Unable to transfer the image: RED052.")
        component, version = _read_image(image)
        service.firmware[component.component_id] = version
        service.note("SUP0516", f"{component.name} was updated to {version}.", category="Updates")

    waits = apply_time == _ON_RESET or (image is not None and _waits_for_boot(image))
    return service.jobs.add("FirmwareUpdate", "Firmware Update", call.bmc.spec.job_s, install, at_boot=waits)


def _waits_for_boot(image: bytes) -> bool:
    try:
        return _read_image(image)[0].needs_boot
    except JobFailed:
        return False


def _read_image(image: bytes) -> tuple[Component, str]:
    lines = image[:4096].decode("ascii", errors="replace").splitlines()
    fields = dict(line.split(": ", 1) for line in lines[1:] if ": " in line)
    component = _BY_ID.get(fields.get("component", ""))
    if not lines or lines[0] != MAGIC or component is None or not fields.get("version"):
        raise JobFailed("Unable to verify Update Package signature: RED007.")
    return component, fields["version"]


async def _push(call: Call) -> Answer:
    """Take a multipart upload: a part of parameters as JSON, and the image."""
    parts = await _parts(call.request)
    if "UpdateParameters" not in parts:
        raise missing_property("UpdateParameters")
    if "UpdateFile" not in parts:
        raise missing_property("UpdateFile")
    try:
        parameters = json.loads(parts["UpdateParameters"])
    except ValueError as exc:
        raise Rejected(malformed()) from exc
    if not isinstance(parameters, dict):
        raise Rejected(malformed())
    return accepted(_make_job(call, parts["UpdateFile"], _apply_time(parameters)))


async def _push_plain(call: Call) -> Answer:
    """Take an image for a SimpleUpdate to come."""
    parts = await _parts(call.request)
    if not parts:
        raise missing_property("file")
    path = f"{INVENTORY}/Available-{len(call.service.images) + 1}"
    call.service.images[path] = next(iter(parts.values()))
    return Answer(None, 201, {"Location": path})


async def _parts(request: web.BaseRequest) -> dict[str, bytes]:
    if not request.content_type.startswith("multipart/"):
        raise Rejected(error(415, "Base.1.12.UnsupportedMediaType", "A multipart body is expected."))
    parts: dict[str, bytes] = {}
    try:
        reader = await request.multipart()
        while (part := await reader.next()) is not None:
            if isinstance(part, aiohttp.BodyPartReader):
                parts[part.name or "file"] = bytes(await part.read())
    except ValueError as exc:
        raise Rejected(malformed()) from exc
    return parts


def malformed() -> Answer:
    return error(
        400,
        "Base.1.12.MalformedJSON",
        "The request body submitted was malformed JSON and could not be parsed by the receiving service.",
        "Ensure that the request body is valid JSON and resubmit the request.",
    )


ROUTES = (
    Route("GET", UPDATE, _service),
    Route("GET", INVENTORY, _inventory),
    Route("GET", f"{INVENTORY}/{{item}}", _inventory_one),
    Route("POST", INVENTORY, _push_plain, Privilege.ADMINISTRATOR),
    Route("POST", SIMPLE_UPDATE, _simple_update, Privilege.ADMINISTRATOR),
    Route("POST", PUSH, _push, Privilege.ADMINISTRATOR),
)
