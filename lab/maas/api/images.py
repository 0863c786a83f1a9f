"""`boot-resources/`: OS images, and uploads in chunks."""

from __future__ import annotations

import hashlib
from datetime import UTC, datetime

from lab.maas.api.resource import Action, Answer, Call, Resource, bad, require_admin
from lab.maas.errors import Refusal
from lab.maas.model.region import BootResource, ImageFile
from lab.maas.render import API

Json = dict[str, object]

_FILE_TYPES = {
    "tgz": ("root.tgz", "root-tgz"),
    "ddtgz": ("root-dd.tgz", "root-dd"),
    "ddraw": ("root-dd.raw", "root-dd.raw"),
    "ddxz": ("root-dd.xz", "root-dd.xz"),
    "ddgz": ("root-dd.gz", "root-dd.gz"),
}
_REQUIRED = ("name", "architecture", "sha256", "size")


def read_images(call: Call) -> Answer:
    """List images, the newest first."""
    found = sorted(call.region.images.values(), key=lambda one: one.id, reverse=True)
    return Answer([_listed(one) for one in found])


def _listed(one: BootResource) -> Json:
    shown: Json = {
        "id": one.id,
        "type": "Uploaded" if one.uploaded else "Synced",
        "name": one.name.removeprefix("custom/"),
        "architecture": one.architecture,
        "resource_uri": f"{API}/boot-resources/{one.id}/",
        "last_deployed": one.last_deployed,
    }
    if one.uploaded:
        return {**shown, "title": one.title, "subarches": one.subarches, "base_image": one.base}
    return {**shown, "platform": "generic", "supported_platforms": "generic"}


def _whole(one: BootResource, *, announced: bool) -> Json:
    shown = _listed(one)
    if one.file is None:
        return {**shown, "sets": {}}
    filename, filetype = _FILE_TYPES[one.file.name]
    file: Json = {
        "filename": filename,
        "filetype": filetype,
        "sha256": one.file.sha256,
        "filename_on_disk": one.file.sha256[:7],
        "size": one.file.size,
        "complete": one.file.complete,
    }
    held: Json = {
        "version": one.version,
        "label": "uploaded",
        "size": one.file.size,
        "complete": one.file.complete,
    }
    if announced or not one.file.complete:
        progress = 100.0 * one.file.received / one.file.size if one.file.size else 0.0
        held["progress"] = progress
        file |= {
            "progress": progress,
            "upload_uri": f"{API}/boot-resources/{one.id}/upload/{one.file.id}/",
        }
    return {**shown, "sets": {one.version: {**held, "files": {filename: file}}}}


def create_image(call: Call) -> Answer:
    """Announce an upload; the bytes follow at `upload_uri`."""
    require_admin(call)
    form = call.form
    if missing := [name for name in _REQUIRED if not form.one(name)]:
        raise Refusal(400, {name: ["This field is required."] for name in missing})
    kind = form.one("filetype", "tgz")
    if kind not in _FILE_TYPES:
        raise bad("filetype", f"Select a valid choice. {kind} is not one of the available choices.")
    if not form.one("size").isdigit():
        raise bad("size", "Enter a whole number.")
    sha256, size = form.one("sha256"), int(form.one("size"))
    if call.region.image_sizes.setdefault(sha256, size) != size:
        raise Refusal(400, "File already exists with sha256 that is of different size.")
    name = form.one("name") if "/" in form.one("name") else f"custom/{form.one('name')}"
    made = BootResource(
        id=_number_of(call, name),
        name=name,
        architecture=form.one("architecture"),
        uploaded=True,
        title=form.one("title"),
        base=form.one("base_image"),
        version=datetime.fromtimestamp(call.ctl.now(), UTC).strftime("%Y%m%d"),
        file=ImageFile(call.region.number("image_file"), kind, sha256, size),
    )
    call.region.images[made.id] = made
    return Answer(_whole(made, announced=True), status=201)


def _number_of(call: Call, name: str) -> int:
    """An upload with a known name replaces that image."""
    known = next((one.id for one in call.region.images.values() if one.name == name), None)
    return call.region.number("image") if known is None else known


def _image(call: Call) -> BootResource:
    wanted = call.params["id"]
    found = call.region.images.get(int(wanted)) if wanted.isdigit() else None
    if found is None:
        raise Refusal(404, "No BootResource matches the given query.", content_type="text/plain")
    return found


def read_image(call: Call) -> Answer:
    """Show an image and its files."""
    return Answer(_whole(_image(call), announced=False))


def delete_image(call: Call) -> Answer:
    """Remove an image."""
    require_admin(call)
    del call.region.images[_image(call).id]
    return Answer(b"", status=204, content_type="text/plain")


def upload(call: Call) -> Answer:
    """Take the next chunk of an upload; the last one is checked."""
    require_admin(call)
    file = _image(call).file
    if file is None or str(file.id) != call.params["file_id"]:
        raise Refusal(404, "No BootResourceFile matches the given query.", content_type="text/plain")
    if file.complete:
        raise Refusal(400, "Cannot upload to a complete file.")
    if file.received + len(call.raw) > file.size:
        raise Refusal(400, "Too much data received.")
    file.received += len(call.raw)
    file.content.update(call.raw)
    if file.received == file.size:
        file.digest = file.content.hexdigest()
        if not file.complete:
            file.received, file.content = 0, hashlib.sha256()
            raise Refusal(400, f"Saved content does not match given SHA256 value: {file.sha256}.")
    return Answer(b"", content_type="text/plain")


RESOURCES = (
    Resource(
        "BootResourcesHandler",
        "boot-resources/",
        (Action("GET", None, read_images), Action("POST", None, create_image)),
    ),
    Resource(
        "BootResourceHandler",
        "boot-resources/{id}/",
        (Action("GET", None, read_image), Action("DELETE", None, delete_image)),
    ),
    Resource(
        "BootResourceFileUploadHandler",
        "boot-resources/{id}/upload/{file_id}/",
        (Action("PUT", None, upload),),
    ),
)
