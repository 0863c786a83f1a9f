"""The HTTPS side of one BMC: TLS, logins, faults, and the way to the handlers."""

from __future__ import annotations

import asyncio
import base64
import binascii
import datetime
import json
import ssl
from dataclasses import replace

from aiohttp import web

from lab.bmc.bmc import Bmc
from lab.bmc.faults import Fault
from lab.bmc.redfish import bios, chassis, events, idrac, root, system, update
from lab.bmc.redfish.answers import Answer, Json, Rejected, error
from lab.bmc.redfish.certificate import Identity, expired_twin, load, make_identity
from lab.bmc.redfish.logs import sel_entry
from lab.bmc.redfish.service import Call, Route, Routes, Service
from lab.bmc.spec import Privilege
from lab.bmc.users import Account

ROUTES = Routes(
    (
        *root.ROUTES,
        *system.ROUTES,
        *bios.ROUTES,
        *chassis.ROUTES,
        *idrac.ROUTES,
        *update.ROUTES,
        *events.ROUTES,
    )
)
MAX_JSON = 1 << 20
DOWN_POLL_S = 0.05
_HTML = (
    b"<!DOCTYPE html><html><head><title>500</title></head><body><h1>Internal Server Error</h1></body></html>"
)
_GONE = web.Response(status=500)


class RedfishEndpoint:
    """Speaks Redfish for one BMC on its own address."""

    def __init__(self, bmc: Bmc) -> None:
        self.bmc = bmc
        self.port = bmc.spec.redfish_port or 0
        self._context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self._made_at = datetime.datetime.now(datetime.UTC)
        identity = make_identity(bmc.name, bmc.spec.host, self._made_at)
        self.service = Service(bmc, identity, self._show)
        self._show(identity)
        self._web = web.Server(self._handle, access_log=None)
        self._listener: asyncio.Server | None = None
        bmc.faults.watch(self._fault_changed)
        bmc.watch_resets(self.service.forget)
        bmc.sel.watch(self._tell_subscribers)
        self._pushes: set[asyncio.Task[None]] = set()

    @property
    def fingerprint(self) -> str:
        """SHA-256 of the certificate that the next handshake shows, as hex pairs."""
        return self._shown.fingerprint

    async def start(self) -> None:
        """Listen. Raises OSError where the address cannot be had."""
        loop = asyncio.get_running_loop()
        self._listener = await loop.create_server(
            self._web, self.bmc.spec.host, self.bmc.spec.redfish_port, ssl=self._context
        )
        self.port = self._listener.sockets[0].getsockname()[1]

    async def close(self) -> None:
        for task in tuple(self._pushes):
            task.cancel()
        if self._listener is not None:
            self._listener.close()
        await self._web.shutdown(0.1)
        if self._listener is not None:
            await self._listener.wait_closed()

    def _show(self, identity: Identity) -> None:
        load(self._context, identity)
        self._shown = identity

    def _tell_subscribers(self, record: bytes) -> None:
        """Push an event for a new SEL record."""
        if not self.service.subscriptions or self.bmc.down:
            return
        entry = sel_entry(record)
        words = (entry["MessageId"], entry["Message"], entry["Severity"])
        task = asyncio.get_running_loop().create_task(events.push(self.service, *words))
        self._pushes.add(task)
        task.add_done_callback(self._pushes.discard)

    def _fault_changed(self, fault: Fault, value: float) -> None:
        if fault is Fault.EXPIRED_CERTIFICATE:
            sound, where = self.service.identity, (self.bmc.name, self.bmc.spec.host)
            self._show(expired_twin(sound, *where, self._made_at) if value else sound)

    async def _handle(self, request: web.BaseRequest) -> web.StreamResponse:
        self.bmc.log.add_request(request.method, request.path)
        faults = self.bmc.faults
        if self.bmc.down:
            await self._wait_for_the_end(request)
            return _GONE
        slow = self.bmc.spec.delay_s + faults.value(Fault.SLOW)
        if slow:
            await asyncio.sleep(slow)
        if faults.strikes(Fault.HTML_ERROR):
            return web.Response(status=500, body=_HTML, content_type="text/html")
        answer = _not_ready(faults.value(Fault.NOT_READY)) if faults.active(Fault.NOT_READY) else None
        return await self._send(request, answer or await self._answer(request))

    async def _wait_for_the_end(self, request: web.BaseRequest) -> None:
        """Say nothing for as long as the BMC is down, then drop the connection."""
        while self.bmc.down and request.transport is not None:
            await asyncio.sleep(DOWN_POLL_S)
        if request.transport is not None:
            request.transport.abort()

    async def _answer(self, request: web.BaseRequest) -> Answer:
        try:
            account = self._who(request)
            route, names = ROUTES.find(request.method, request.path)
            if route.privilege is not None and account is None:
                return root.denied()
            self._permit(route, account)
            call = Call(
                self.service,
                request.method,
                request.path.rstrip("/"),
                names,
                request.query,
                await _body(request),
                request,
                account,
            )
            answer = await route.run(call)
            return await _shape(call, answer) if request.method == "GET" else answer
        except Rejected as rejected:
            return rejected.answer

    def _who(self, request: web.BaseRequest) -> Account | None:
        """Return whose request it is: by token, else by name and password."""
        token = request.headers.get("X-Auth-Token")
        if token:
            session = self.service.sessions.by_token(token)
            return session.account if session else None
        words = request.headers.get("Authorization", "").split(" ", 1)
        if len(words) != 2 or words[0].lower() != "basic" or self.bmc.faults.active(Fault.WRONG_PASSWORD):
            return None
        try:
            name, _, password = base64.b64decode(words[1], validate=True).partition(b":")
        except binascii.Error:
            return None
        return self.bmc.users.authenticate(name, password)

    def _permit(self, route: Route, account: Account | None) -> None:
        if route.privilege is None or account is None:
            return
        level = account.privilege if account.privilege != Privilege.NO_ACCESS else 0
        if level < route.privilege:
            raise Rejected(
                error(
                    403,
                    "Base.1.12.InsufficientPrivilege",
                    "There are insufficient privileges for the account or credentials associated with the "
                    "current session to perform the requested operation.",
                )
            )

    async def _send(self, request: web.BaseRequest, answer: Answer) -> web.StreamResponse:
        body = answer.raw if answer.raw is not None else _text(answer.body)
        headers = {"OData-Version": "4.0", "Cache-Control": "no-cache", **answer.headers}
        if self.bmc.faults.strikes(Fault.HALF_BODY) and len(body) > 1:
            return await self._send_half(request, answer, body)
        kind = answer.content_type if body else None
        return web.Response(status=answer.status, body=body, headers=headers, content_type=kind)

    async def _send_half(self, request: web.BaseRequest, answer: Answer, body: bytes) -> web.StreamResponse:
        response = web.StreamResponse(status=answer.status, headers=dict(answer.headers))
        response.content_type, response.content_length = answer.content_type, len(body)
        await response.prepare(request)
        await response.write(body[: len(body) // 2])
        if request.transport is not None:
            request.transport.close()
        return response


async def _shape(call: Call, answer: Answer) -> Answer:
    """Apply $expand (one level, of collections) and $select."""
    body = answer.body
    if body is None or answer.status != 200:
        return answer
    if "$expand" in call.query and "Members" in body:
        body = {**body, "Members": [await _expanded(call, member) for member in body["Members"]]}
    if "$select" in call.query:
        wanted = set(call.query["$select"].split(","))
        body = {name: value for name, value in body.items() if name.startswith("@odata.") or name in wanted}
    return replace(answer, body=body)


async def _expanded(call: Call, member: Json) -> Json:
    """Return what a link leads to; a member that is whole already stays as it is."""
    if set(member) != {"@odata.id"}:
        return member
    path = member["@odata.id"]
    route, names = ROUTES.find("GET", path)
    answer = await route.run(replace(call, path=path, names=names, query={}))
    return answer.body or member


def _text(body: Json | None) -> bytes:
    return b"" if body is None else json.dumps(body).encode()


async def _body(request: web.BaseRequest) -> Json:
    """Return the JSON object of a request; multipart bodies are left to their handler."""
    if request.method in ("GET", "HEAD", "DELETE") or request.content_type.startswith("multipart/"):
        return {}
    text = await request.read()
    if len(text) > MAX_JSON:
        raise Rejected(error(413, "Base.1.12.PayloadTooLarge", "The request body is too large."))
    if not text:
        return {}
    try:
        body = json.loads(text)
    except ValueError as exc:
        raise Rejected(update.malformed()) from exc
    if not isinstance(body, dict):
        raise Rejected(update.malformed())
    return body


def _not_ready(seconds: float) -> Answer:
    return error(
        503,
        "IDRAC.2.8.SYS518",
        "iDRAC is currently unable to display any information because data sources are unavailable.",
        "Wait for the data to be available and retry the operation.",
        Retry_After=f"{seconds:.0f}",
    )
