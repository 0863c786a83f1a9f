"""The state of one Redfish service, and how requests find their handlers."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from aiohttp import web

from lab.bmc.bmc import Bmc
from lab.bmc.redfish.answers import Answer, Json, Rejected, error, not_found
from lab.bmc.redfish.certificate import Identity
from lab.bmc.redfish.jobs import JobQueue
from lab.bmc.redfish.logs import LifecycleLog, stamp
from lab.bmc.redfish.sessions import WebSessions
from lab.bmc.spec import Privilege
from lab.bmc.users import Account

MAX_BODY = 64 * 1024 * 1024


class Service:
    """What one BMC keeps for Redfish besides its IPMI state."""

    def __init__(self, bmc: Bmc, identity: Identity, show_certificate: Callable[[Identity], None]) -> None:
        self.bmc = bmc
        self.identity = identity
        self.show_certificate = show_certificate
        self.pending_key: str | None = None  # of a signing request that waits for its certificate
        self.sessions = WebSessions(bmc.spec.redfish_session_limit, bmc.now)
        self.jobs = JobQueue(bmc.now, self.stamp, lambda: bmc.power.boots)
        self.lifecycle = LifecycleLog()
        self.attributes: dict[str, Any] = {}  # BIOS: what differs from the registry's defaults
        self.pending: dict[str, Any] = {}  # BIOS: what waits for the next boot
        self.firmware: dict[str, str] = {}  # versions that updates brought, by component
        self.images: dict[str, bytes] = {}  # pushed and not yet installed
        self.exports: dict[str, bytes] = {}  # files that jobs have made, by path
        self.subscriptions: dict[str, Json] = {}
        self.eula_accepted = False

    def stamp(self) -> str:
        return stamp(self.bmc.clock.now())

    def note(self, message_id: str, message: str, **words: str) -> None:
        """Write a line into the lifecycle log."""
        self.lifecycle.add(self.bmc.clock.now(), message_id, message, **words)

    def forget(self) -> None:
        """Drop what a restart of the BMC drops: logins."""
        self.sessions.clear()


@dataclass(frozen=True, slots=True)
class Call:
    """One request on its way to its handler."""

    service: Service
    method: str
    path: str
    names: Mapping[str, str]  # the parts of the path that the route names
    query: Mapping[str, str]
    body: Json
    request: web.BaseRequest
    account: Account | None

    @property
    def bmc(self) -> Bmc:
        return self.service.bmc

    @property
    def user(self) -> str:
        return self.account.name.decode(errors="replace") if self.account else "unknown"


Run = Callable[[Call], Awaitable[Answer]]


@dataclass(frozen=True, slots=True)
class Route:
    """One row: `{name}` in a path stands for one segment. `privilege` None is open to all."""

    method: str
    path: str
    run: Run
    privilege: Privilege | None = Privilege.USER


def with_members(path: str, run: Run) -> tuple[Route, Route]:
    """Return the routes of a collection that holds its members whole: itself, and one of them."""

    async def one(call: Call) -> Answer:
        body = (await run(call)).body or {}
        found = (member for member in body["Members"] if member["@odata.id"] == call.path)
        member = next(found, None)
        return Answer(member) if member else not_found(call.path)

    return Route("GET", path, run), Route("GET", f"{path}/{{member}}", one)


class Routes:
    """All routes; shared by every BMC."""

    def __init__(self, routes: Iterable[Route]) -> None:
        self._exact: dict[str, dict[str, Route]] = {}
        self._patterns: list[tuple[re.Pattern[str], dict[str, Route]]] = []
        by_path: dict[str, dict[str, Route]] = {}
        for route in routes:
            methods = by_path.setdefault(route.path, {})
            if route.method in methods:
                raise ValueError(f"{route.method} {route.path} stands twice")
            methods[route.method] = route
        for path, methods in by_path.items():
            if "{" in path:
                pattern = re.sub(r"\\{(\w+)\\}", r"(?P<\1>[^/]+)", re.escape(path))
                self._patterns.append((re.compile(pattern), methods))
            else:
                self._exact[path] = methods

    def __iter__(self) -> Iterator[Route]:
        tables = [*self._exact.values(), *(methods for _, methods in self._patterns)]
        return (route for methods in tables for route in methods.values())

    def find(self, method: str, path: str) -> tuple[Route, Mapping[str, str]]:
        """Return the route and what its path names. Raises Rejected with 404 or 405."""
        trimmed = path.rstrip("/") or "/"
        methods, names = self._methods(trimmed)
        if methods is None:
            raise Rejected(not_found(path))
        route = methods.get("GET" if method == "HEAD" else method)
        if route is None:
            allowed = ", ".join(sorted(methods))
            text = f"The operation {method} is not supported by the resource."
            raise Rejected(error(405, "Base.1.12.OperationNotAllowed", text, Allow=allowed))
        return route, names

    def _methods(self, path: str) -> tuple[dict[str, Route] | None, Mapping[str, str]]:
        exact = self._exact.get(path)
        if exact is not None:
            return exact, {}
        for pattern, methods in self._patterns:
            match = pattern.fullmatch(path)
            if match:
                return methods, match.groupdict()
        return None, {}
