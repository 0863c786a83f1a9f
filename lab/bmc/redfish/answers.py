"""What a Redfish handler gets and gives, and error bodies as iDRACs word them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

Json = dict[str, Any]

ROOT = "/redfish/v1"
SYSTEM = f"{ROOT}/Systems/System.Embedded.1"
CHASSIS = f"{ROOT}/Chassis/System.Embedded.1"
MANAGER = f"{ROOT}/Managers/iDRAC.Embedded.1"
LC_SERVICE = f"{MANAGER}/Oem/Dell/DellLCService"
JOBS = f"{MANAGER}/Oem/Dell/Jobs"
TASKS = f"{ROOT}/TaskService/Tasks"
UPDATE = f"{ROOT}/UpdateService"


@dataclass(frozen=True, slots=True)
class Answer:
    """One HTTP answer; `body` is sent as JSON, `raw` as it is."""

    body: Json | None = None
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)
    raw: bytes | None = None
    content_type: str = "application/json"


class Rejected(Exception):
    """A request ends with an error answer."""

    def __init__(self, answer: Answer) -> None:
        super().__init__(f"HTTP status {answer.status}")
        self.answer = answer


def link(path: str) -> Json:
    return {"@odata.id": path}


def resource(path: str, kind: str, name: str, **values: object) -> Json:
    """Return a resource; `kind` is its @odata.type without the leading #."""
    return {
        "@odata.context": f"{ROOT}/$metadata#{kind.split('.')[0]}.{kind.split('.')[0]}",
        "@odata.id": path,
        "@odata.type": f"#{kind}",
        "Id": path.rsplit("/", 1)[-1],
        "Name": name,
        **values,
    }


def collection(path: str, kind: str, members: Sequence[Json]) -> Json:
    """Return a collection of links or of whole members."""
    return {
        "@odata.context": f"{ROOT}/$metadata#{kind}.{kind}",
        "@odata.id": path,
        "@odata.type": f"#{kind}.{kind}",
        "Name": kind,
        "Members": list(members),
        "Members@odata.count": len(members),
    }


def error(status: int, message_id: str, message: str, resolution: str = "", **headers: str) -> Answer:
    """Return an error answer; underscores in header names stand for hyphens."""
    detail = {
        "Message": message,
        "MessageArgs": [],
        "MessageArgs@odata.count": 0,
        "MessageId": message_id,
        "RelatedProperties": [],
        "RelatedProperties@odata.count": 0,
        "Resolution": resolution or "No response action is required.",
        "Severity": "Critical" if status < 500 else "Informational",
    }
    body = {
        "error": {
            "@Message.ExtendedInfo": [detail],
            "code": "Base.1.12.GeneralError",
            "message": "A general error has occurred. See ExtendedInfo for more information",
        }
    }
    return Answer(body, status, {name.replace("_", "-"): value for name, value in headers.items()})


def success(status: int = 200) -> Answer:
    """Return the body with which an iDRAC says that a change was made."""
    detail = {
        "Message": "The request completed successfully.",
        "MessageId": "Base.1.12.Success",
        "MessageArgs": [],
        "Severity": "OK",
        "Resolution": "None",
    }
    return Answer({"@Message.ExtendedInfo": [detail]}, status)


def not_found(path: str) -> Answer:
    return error(
        404,
        "Base.1.12.ResourceMissingAtURI",
        f"The resource at the URI {path} was not found.",
        "Place a valid resource at the URI or correct the URI and resubmit the request.",
    )


def missing_property(name: str) -> Rejected:
    return Rejected(
        error(
            400,
            "Base.1.12.PropertyMissing",
            f"The property {name} is a required property and must be included in the request.",
            "Ensure that the property is in the request body and has a valid value.",
        )
    )


def bad_value(name: str, value: object) -> Rejected:
    return Rejected(
        error(
            400,
            "Base.1.12.PropertyValueNotInList",
            f"The value '{value}' for the property {name} is not in the list of acceptable values.",
            "Choose a value from the enumeration list that the implementation can support.",
        )
    )


def unknown_property(name: str) -> Rejected:
    return Rejected(
        error(
            400,
            "Base.1.12.PropertyUnknown",
            f"The property {name} is not in the list of valid properties for the resource.",
            "Remove the unknown property from the request body and resubmit the request.",
        )
    )


def choose(body: Json, name: str, allowed: Sequence[str]) -> str:
    """Return a property that must be one of `allowed`."""
    value = body.get(name)
    if value is None:
        raise missing_property(name)
    if value not in allowed:
        raise bad_value(name, value)
    return str(value)
