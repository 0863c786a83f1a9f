"""The shape of the API: resources, their actions, a call, and an answer."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field

from lab.maas.api.form import Form
from lab.maas.config import User
from lab.maas.errors import Refusal
from lab.maas.life.conductor import Conductor
from lab.maas.model.machine import Machine
from lab.maas.model.region import Region


@dataclass(frozen=True, slots=True)
class Answer:
    """A successful answer; `body` is JSON unless it is bytes."""

    body: object = None
    status: int = 200
    content_type: str | None = None
    headers: dict[str, str] = field(default_factory=dict)


@dataclass(slots=True)
class Call:
    """One request as an action sees it."""

    ctl: Conductor
    user: User | None
    params: dict[str, str]
    query: Form
    form: Form
    files: dict[str, bytes]
    raw: bytes
    path: str

    @property
    def region(self) -> Region:
        """The region's memory."""
        return self.ctl.region

    @property
    def who(self) -> User:
        """The user, where the action is not for everybody."""
        if self.user is None:
            raise Refusal(401, "Forbidden", content_type="text/plain")
        return self.user

    def machine(self) -> Machine:
        """Return the machine that the address names. Raises Refusal."""
        found = self.region.machines.get(self.params["system_id"])
        if found is None:
            raise Refusal(404, "No Machine matches the given query.", content_type="text/plain")
        return found


Act = Callable[[Call], Awaitable[Answer]] | Callable[[Call], Answer]


@dataclass(frozen=True, slots=True)
class Action:
    """What a method and operation do at an address; `op` is None for the plain method."""

    method: str
    op: str | None
    act: Act
    anonymous: bool = False
    admin: bool = False

    @property
    def name(self) -> str:
        """The name in the API's description."""
        plain = {"GET": "read", "POST": "create", "PUT": "update", "DELETE": "delete"}
        return self.op or plain[self.method]


@dataclass(frozen=True, slots=True)
class Resource:
    """One address pattern, such as `machines/{system_id}/`."""

    name: str
    path: str
    actions: tuple[Action, ...]
    # Resources that have anonymous operations answer the unsigned differently.
    has_anonymous: bool = False

    @property
    def params(self) -> tuple[str, ...]:
        """The names in the path's braces."""
        return tuple(re.findall(r"{(\w+)}", self.path))

    @property
    def methods(self) -> tuple[str, ...]:
        """The methods that the address takes, in MAAS's order."""
        found = {one.method for one in self.actions}
        return tuple(one for one in ("GET", "POST", "PUT", "DELETE") if one in found)

    @property
    def pattern(self) -> re.Pattern[str]:
        """The expression that the part of an address below the API's root matches."""
        return re.compile("^" + re.sub(r"{(\w+)}", r"(?P<\1>[^/]+)", self.path) + "$")

    def action(self, method: str, op: str | None) -> Action | None:
        """Return the action for a method and operation."""
        return next((one for one in self.actions if one.method == method and one.op == op), None)


def require_admin(call: Call) -> None:
    """Refuse a plain user with MAAS's empty 403. Raises Refusal."""
    if not call.who.superuser:
        raise Refusal(403, "")


def bad(field_name: str, text: str) -> Refusal:
    """Return MAAS's form error for one field."""
    return Refusal(400, {field_name: [text]})
