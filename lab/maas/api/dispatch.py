"""From an HTTP request to an action and back: signatures, refusals, and the forms of answers."""

from __future__ import annotations

import inspect
import json
import re
from dataclasses import dataclass
from urllib.parse import parse_qsl

from aiohttp import web

from lab.maas.api.form import Form, read_body
from lab.maas.api.oauth import Keys
from lab.maas.api.resource import Action, Answer, Call, Resource
from lab.maas.api.table import RESOURCES, describe
from lab.maas.config import User
from lab.maas.errors import Refusal
from lab.maas.life.conductor import Conductor
from lab.maas.render import API

_JSON = "application/json; charset=utf-8"
_TEXT = "text/plain; charset=utf-8"
_ROUTES: tuple[tuple[re.Pattern[str], Resource], ...] = tuple((one.pattern, one) for one in RESOURCES)


@dataclass(slots=True)
class Dispatcher:
    """Answers everything below the API's root."""

    ctl: Conductor
    keys: Keys

    async def __call__(self, request: web.Request) -> web.Response:
        """Answer one request."""
        try:
            return await self._answer(request)
        except Refusal as exc:
            return refused(exc)

    async def _answer(self, request: web.Request) -> web.Response:
        path = request.path.removeprefix(API).removeprefix("/")
        if path == "describe/":
            return answered(Answer(describe(f"{request.scheme}://{request.host}")))
        resource, params = _find(path)
        if resource is None:
            raise Refusal(404, f"Unknown API endpoint: {request.path}.")
        user = self.keys.user_of(request.headers.get("Authorization"), self.ctl.now())
        action = _choose(resource, request, user)
        body = await read_body(request)
        call = Call(
            ctl=self.ctl,
            user=user,
            params=params,
            query=Form(parse_qsl(request.query_string, keep_blank_values=True)),
            form=body.form,
            files=body.files,
            raw=body.raw,
            path=request.path,
        )
        done = action.act(call)
        return answered(await done if inspect.isawaitable(done) else done)


def _find(path: str) -> tuple[Resource | None, dict[str, str]]:
    for pattern, one in _ROUTES:
        if (found := pattern.match(path)) is not None:
            return one, found.groupdict()
    return None, {}


def _choose(resource: Resource, request: web.Request, user: User | None) -> Action:
    """Find the action, in the order in which MAAS looks: signature, method, operation."""
    action = resource.action(request.method, request.query.get("op"))
    if user is None and not (action is not None and action.anonymous):
        if resource.has_anonymous:
            raise _unrecognised(request)
        raise Refusal(401, "Forbidden", content_type="text/plain")
    if request.method not in resource.methods:
        raise MethodRefused(resource.methods)
    if action is None:
        raise _unrecognised(request)
    return action


def _unrecognised(request: web.Request) -> Refusal:
    op = request.query.get("op")
    return Refusal(400, f"Unrecognised signature: method={request.method} op={op}")


class MethodRefused(Refusal):
    """A method that an address does not take; the answer names those that it does."""

    def __init__(self, methods: tuple[str, ...]) -> None:
        super().__init__(405, "", content_type="text/html; charset=utf-8")
        self.methods = methods


def answered(answer: Answer) -> web.Response:
    """Write a success as HTTP."""
    if isinstance(answer.body, bytes):
        body, kind = answer.body, answer.content_type or _TEXT
    else:
        body, kind = json.dumps(answer.body).encode(), answer.content_type or _JSON
    headers = {"Content-Type": kind, "Vary": "Authorization, Cookie", **answer.headers}
    return web.Response(status=answer.status, body=body, headers=headers)


def refused(refusal: Refusal) -> web.Response:
    """Write a refusal as HTTP."""
    if isinstance(refusal.body, dict):
        body, kind = json.dumps(refusal.body).encode(), refusal.content_type or _JSON
    else:
        body, kind = refusal.body.encode(), refusal.content_type or _TEXT
    headers = {"Content-Type": kind, "Vary": "Cookie"}
    if refusal.status == 401 and kind.startswith("text/html"):
        headers["WWW-Authenticate"] = 'OAuth realm="OAuth"'
    if isinstance(refusal, MethodRefused):
        headers["Allow"] = ", ".join(refusal.methods)
    return web.Response(status=refusal.status, body=body, headers=headers)
