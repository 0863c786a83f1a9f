"""Services of the BMC itself: firmware, telemetry, its certificate."""

from __future__ import annotations

import hashlib
import json
import ssl
from collections.abc import Iterator
from pathlib import Path

import aiohttp
from cryptography import x509

from bmc.capability import Certificate, FirmwareItem, Metric
from bmc.errors import BadAnswer, CommandRefused, PrivilegeTooLow, Unsupported
from bmc.redfish.answer import Answer
from bmc.redfish.client import ROOT, Client
from bmc.redfish.resource import Resource, parse_time
from bmc.redfish.tasks import finished

UPDATE_S = 3600.0
UPLOAD_S = 900.0

_SIMPLE = "#UpdateService.SimpleUpdate"


async def firmware(client: Client) -> tuple[FirmwareItem, ...]:
    """Return what carries firmware and its version, by id. Former versions are left out."""
    service = await _service(client, "UpdateService")
    path = service.link("FirmwareInventory")
    if path is None:
        raise Unsupported(client.node, client.host, "a firmware inventory")
    found = [
        FirmwareItem(
            id=row.text("Id") or row.path.rsplit("/", 1)[-1],
            name=row.text("Name") or "",
            version=row.text("Version") or "",
            updateable=row.flag("Updateable") is True,
        )
        for row in await client.members(path)
    ]
    return tuple(
        item for item in sorted(found, key=lambda item: item.id) if not item.id.startswith("Previous")
    )


async def update_firmware(client: Client, image: Path | str, *, at_reset: bool) -> str:
    """Push a file by multipart, or have the BMC fetch a URL; wait for the task; return its id."""
    service = await _service(client, "UpdateService")
    apply_time = "OnReset" if at_reset else "Immediate"
    if isinstance(image, Path):
        answer = await _push(client, service, image, apply_time)
    else:
        target = service.action(_SIMPLE)
        if target is None:
            raise Unsupported(client.node, client.host, "fetching firmware from a URL")
        body: dict[str, object] = {"ImageURI": image}
        if service.at("Actions", _SIMPLE, "@Redfish.OperationApplyTimeSupport") is not None:
            body["@Redfish.OperationApplyTime"] = apply_time
        answer = await client.post(target, body)
    if not at_reset:
        await finished(client, answer, UPDATE_S)
    return (answer.location or "").rsplit("/", 1)[-1]


async def _push(client: Client, service: Resource, image: Path, apply_time: str) -> Answer:
    path = service.text("MultipartHttpPushUri")
    if path is None:
        raise Unsupported(client.node, client.host, "pushing firmware")
    parameters = {"Targets": [], "@Redfish.OperationApplyTime": apply_time}
    with image.open("rb") as file:
        form = aiohttp.FormData()
        form.add_field("UpdateParameters", json.dumps(parameters), content_type="application/json")
        form.add_field("UpdateFile", file, filename=image.name, content_type="application/octet-stream")
        return await client.upload(path, form, UPLOAD_S)


async def metrics(client: Client) -> tuple[Metric, ...]:
    """Return every value of every telemetry report."""
    service = await _service(client, "TelemetryService")
    path = service.link("MetricReports")
    if path is None:
        raise Unsupported(client.node, client.host, "telemetry")
    return tuple(
        Metric(
            report=report.text("Id") or report.path.rsplit("/", 1)[-1],
            id=row.text("MetricId") or "",
            value=str(row.at("MetricValue")),
            source=row.text("MetricProperty") or "",
            time=parse_time(row.text("Timestamp")),
        )
        for report in await client.members(path)
        for row in report.rows("MetricValues")
    )


async def certificate(client: Client, manager: Resource) -> Certificate:
    """Return the certificate with which the BMC answers HTTPS."""
    network = manager.link("NetworkProtocol")
    path = (await client.get(network)).link("HTTPS", "Certificates") if network else None
    if path is None:
        raise Unsupported(client.node, client.host, "its certificates")
    try:
        members = (await client.get(path)).links("Members")
    except Unsupported:
        members = ()
    found = await client.get(members[0] if members else f"{path}/SecurityCertificate.1")
    pem = found.text("CertificateString")
    try:
        der = ssl.PEM_cert_to_DER_cert(pem or "")
        ends = x509.load_der_x509_certificate(der).not_valid_after_utc
    except ValueError as exc:
        raise BadAnswer(client.node, client.host, "the certificate is no PEM") from exc
    return Certificate(found.path, pem or "", hashlib.sha256(der).hexdigest(), ends)


async def certificate_request(client: Client, manager: Resource) -> str:
    """Have the BMC make a key and a signing request; return the request."""
    target = await _certificate_action(client, "#CertificateService.GenerateCSR")
    held = (await certificate(client, manager)).path.rsplit("/", 1)[0]
    body = {"CommonName": client.host, "CertificateCollection": {"@odata.id": held}}
    answer = await client.post(target, body)
    try:
        text = Resource(target, answer.json()).text("CSRString")
    except ValueError:
        text = None
    if text is None:
        raise BadAnswer(client.node, client.host, "no signing request came back")
    return text


async def replace_certificate(client: Client, manager: Resource, pem: str) -> None:
    """Install a certificate for the key of the last signing request."""
    target = await _certificate_action(client, "#CertificateService.ReplaceCertificate")
    held = (await certificate(client, manager)).path
    body = {"CertificateString": pem, "CertificateType": "PEM", "CertificateUri": {"@odata.id": held}}
    await client.post(target, body)


async def _certificate_action(client: Client, name: str) -> str:
    target = (await _service(client, "CertificateService")).action(name)
    if target is None:
        raise Unsupported(client.node, client.host, "changing its certificate")
    return target


async def _service(client: Client, name: str) -> Resource:
    return await client.get(client.root.link(name) or f"{ROOT}/{name}")


async def tree(client: Client, most: int) -> dict[str, bytes]:
    """Walk the tree breadth first; what a BMC refuses, or what makes no sense, is left out."""
    waiting = [client.root.link(name) or f"{ROOT}/{name}" for name in ("Systems", "Chassis", "Managers")]
    found: dict[str, bytes] = {}
    seen = set(waiting)
    while waiting and len(found) < most:
        path = waiting.pop(0)
        try:
            resource = await client.get(path)
        except (BadAnswer, CommandRefused, PrivilegeTooLow, Unsupported):
            continue
        found[path] = json.dumps(resource.data, indent=1).encode()
        for link in _links(resource.data):
            below = link.split("#")[0].rstrip("/")
            if below.startswith(f"{ROOT}/") and below not in seen:
                seen.add(below)
                waiting.append(below)
    return found


def _links(value: object) -> Iterator[str]:
    if isinstance(value, dict):
        for key, inner in value.items():
            if key == "@odata.id" and isinstance(inner, str):
                yield inner
            elif key != "Links":  # these lead sideways and back
                yield from _links(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from _links(inner)
