"""HTTP to one BMC: log in once, ask, log out always; every failure a typed error."""

from __future__ import annotations

import asyncio
import base64
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager

import aiohttp
from aiohttp import ClientTimeout, Fingerprint, TCPConnector

from bmc import errors
from bmc.capability import BmcTarget
from bmc.errors import BadAnswer, Unreachable
from bmc.ipmi.measure import Counts
from bmc.redfish.answer import Answer, Json, broken, refusal
from bmc.redfish.resource import Resource

ROOT = "/redfish/v1"
SESSIONS = f"{ROOT}/SessionService/Sessions"
CONNECT_S = 2.5
PROBE_S = 2.8  # with the two seconds that IPMI is asked, a dead BMC is told in under five
REQUEST_S = 30.0
CLOSE_S = 3.0

_CONNECTIONS = 4  # to one BMC at a time
_MOST_BYTES = 512 << 20
_MOST_PAGES = 2000
_LOST_TRIES = 2
_MOST_TRIES = 40


class Client:
    """One BMC over HTTPS; `open` before use, `close` always.

    Without a pinned fingerprint any certificate is taken: BMCs sign their own.
    """

    def __init__(self, target: BmcTarget, counts: Counts | None = None) -> None:
        self.target = target
        self.node, self.host = target.name, target.host
        self.counts = counts or Counts()
        self.root = Resource(ROOT, {})
        host = f"[{target.host}]" if ":" in target.host else target.host
        self._base = f"https://{host}:{target.redfish_port}"
        self._http: aiohttp.ClientSession | None = None
        self._token: str | None = None
        self._session_path: str | None = None
        self._basic: str | None = None
        self._closing: asyncio.Task[None] | None = None

    # --- session

    async def probe(self) -> Resource:
        """Read the service root, which needs no login. Raises Unreachable, BadAnswer, Unsupported."""
        if self._http is None:
            self._http = self._connect()
        try:
            async with asyncio.timeout(PROBE_S):
                self.root = await self.get(ROOT)
        except TimeoutError as exc:
            await self._disconnect()
            raise Unreachable(self.node, self.host, PROBE_S, "no answer to the service root") from exc
        except BaseException:
            await self._disconnect()
            raise
        if self.root.text("RedfishVersion") is None:
            await self._disconnect()
            raise BadAnswer(self.node, self.host, "the service root is no Redfish")
        return self.root

    def _connect(self) -> aiohttp.ClientSession:
        pin = self.target.fingerprint
        verify: Fingerprint | bool = False
        if pin is not None:
            try:
                verify = Fingerprint(bytes.fromhex(pin.replace(":", "")))
            except ValueError as exc:
                raise errors.CertificateRefused(self.node, self.host, pin, "(the pin is no SHA-256)") from exc
        return aiohttp.ClientSession(
            connector=TCPConnector(limit=_CONNECTIONS, ssl=verify),
            timeout=ClientTimeout(total=REQUEST_S, sock_connect=CONNECT_S),
            cookie_jar=aiohttp.DummyCookieJar(),
            headers={"Accept": "application/json", "OData-Version": "4.0"},
        )

    async def open(self) -> None:
        """Log in: a session where the BMC has them, else name and password with each request."""
        if not self.root.data:
            await self.probe()
        try:
            await self._log_in()
        except BaseException:
            self.counts.failed += 1
            await self._disconnect()
            raise

    async def _log_in(self) -> None:
        credential = self.target.credential
        path = self.root.link("Links", "Sessions") or SESSIONS
        body = {"UserName": credential.username, "Password": credential.password}
        answer = await self._send("POST", path, json_body=body)
        if answer.status in (200, 201, 204) and "X-Auth-Token" in answer.headers:
            self._token = answer.headers["X-Auth-Token"]
            self._session_path = answer.location or self._own_path(answer)
            self.counts.opened += 1
        elif answer.status in (204, 404, 405, 501):
            secret = f"{credential.username}:{credential.password}".encode()
            self._basic = "Basic " + base64.b64encode(secret).decode()
            await self.get(self.root.link("Systems") or f"{ROOT}/Systems")  # now the password is known
        else:
            raise refusal(self.target, f"POST {path}", answer)

    def _own_path(self, answer: Answer) -> str | None:
        try:
            return Resource(SESSIONS, answer.json()).text("@odata.id")
        except ValueError:
            return None

    async def close(self) -> None:
        """Log out, also where the caller is being cancelled; never raises BmcError."""
        self._closing = asyncio.get_running_loop().create_task(self._close())
        await asyncio.shield(self._closing)

    async def _close(self) -> None:
        try:
            if self._token is not None:
                async with asyncio.timeout(CLOSE_S):
                    answer = await self._send("DELETE", self._session_path or SESSIONS)
                if answer.status < 300 and self._session_path:
                    self.counts.closed += 1
                else:
                    self.counts.lost += 1
        except (errors.BmcError, TimeoutError):
            self.counts.lost += 1
        finally:
            await self._disconnect()

    async def _disconnect(self) -> None:
        self._token = self._basic = None
        http, self._http = self._http, None
        if http is not None:
            await http.close()

    # --- requests

    async def get(self, path: str) -> Resource:
        """Read a resource. Waits where the BMC says when to come back. Raises the leaves of errors."""
        answer = await self.ask("GET", path)
        try:
            return Resource(path.split("?")[0], answer.json())
        except ValueError as exc:
            raise BadAnswer(self.node, self.host, f"{path} is no JSON object") from exc

    async def post(self, path: str, body: Json | None = None) -> Answer:
        return await self.ask("POST", path, body or {})

    async def patch(self, path: str, body: Json) -> Answer:
        """Change a resource; where the BMC wants its version named, name it."""
        try:
            return await self.ask("PATCH", path, body)
        except errors.CommandRefused as exc:
            if exc.code not in (412, 428):
                raise
        tagged = (await self.get(path)).text("@odata.etag")
        return await self.ask("PATCH", path, body, {"If-Match": tagged or "*"})

    async def ask(
        self, method: str, path: str, body: Json | None = None, headers: Mapping[str, str] | None = None
    ) -> Answer:
        """Send a request and return its answer; anything but success is raised."""
        end = asyncio.get_running_loop().time() + REQUEST_S
        for _ in range(_MOST_TRIES):
            answer = await self._send(method, path, json_body=body, headers=headers)
            if answer.status == 401 and self._token is not None:  # the BMC has forgotten the session
                self.counts.lost += 1
                self._token = None
                await self._log_in()
                answer = await self._send(method, path, json_body=body, headers=headers)
            if answer.status < 300:
                return answer
            if answer.status in (301, 302, 307, 308) and answer.location and answer.location != path:
                path = answer.location
                continue
            error = refusal(self.target, f"{method} {path}", answer)
            wait_s = error.retry_after_s if isinstance(error, errors.Busy) else None
            if method != "GET" or not wait_s or asyncio.get_running_loop().time() + wait_s > end:
                raise error
            await asyncio.sleep(wait_s)
        raise BadAnswer(self.node, self.host, f"{path} leads in a circle")

    async def upload(self, path: str, parts: aiohttp.FormData, timeout_s: float) -> Answer:
        """Post a multipart form."""
        answer = await self._send("POST", path, form=parts, timeout_s=timeout_s)
        if answer.status >= 300:
            raise refusal(self.target, f"POST {path}", answer)
        return answer

    async def members(self, path: str) -> tuple[Resource, ...]:
        """Return a collection's members in full, over all its pages."""
        if self.root.at("ProtocolFeaturesSupported", "ExpandQuery", "NoLinks") is True:
            try:
                return await self._members(f"{path}?$expand=.($levels=1)")
            except (errors.CommandRefused, errors.Unsupported):
                pass  # it promised more than it does
        return await self._members(path)

    async def _members(self, path: str) -> tuple[Resource, ...]:
        found: dict[str, Resource] = {}
        following: str | None = path
        for _ in range(_MOST_PAGES):
            page = await self.get(following or path)
            rows = page.rows("Members")
            bare = [row.path for row in rows if set(row.data) <= {"@odata.id"}]
            filled = {row.path: row for row in await asyncio.gather(*map(self.get, bare))}
            fresh = {row.path: filled.get(row.path, row) for row in rows if row.path not in found}
            found |= fresh
            following = page.text("Members@odata.nextLink") or page.text("@odata.nextLink")
            if following is None or not fresh:
                return tuple(found.values())
        raise BadAnswer(self.node, self.host, f"{path} has no last page")

    async def _send(
        self,
        method: str,
        path: str,
        *,
        json_body: Json | None = None,
        form: aiohttp.FormData | None = None,
        headers: Mapping[str, str] | None = None,
        timeout_s: float = REQUEST_S,
    ) -> Answer:
        if self._http is None:
            raise Unreachable(self.node, self.host, 0.0, "the session is closed")
        sent = dict(headers or {})
        if self._token is not None:
            sent["X-Auth-Token"] = self._token
        elif self._basic is not None:
            sent["Authorization"] = self._basic
        tries = _LOST_TRIES if method in ("GET", "DELETE") else 1
        for left in reversed(range(tries)):
            try:
                async with self._http.request(
                    method,
                    self._base + path,
                    json=json_body,
                    data=form,
                    headers=sent,
                    allow_redirects=False,
                    timeout=ClientTimeout(total=timeout_s, sock_connect=CONNECT_S),
                ) as answer:
                    return Answer(answer.status, answer.headers, await self._read(path, answer))
            except aiohttp.ServerDisconnectedError as exc:  # an idle connection closed as we used it
                if not left:
                    raise BadAnswer(self.node, self.host, f"{path}: connection closed") from exc
            except (aiohttp.ClientError, TimeoutError, OSError, ValueError) as exc:
                raise broken(self.target, path, exc, timeout_s) from exc
        raise AssertionError("the loop returns or raises")

    async def _read(self, path: str, answer: aiohttp.ClientResponse) -> bytes:
        if (answer.content_length or 0) > _MOST_BYTES:
            raise BadAnswer(self.node, self.host, f"{path} has {answer.content_length} bytes")
        body = bytearray()
        async for piece in answer.content.iter_chunked(1 << 16):
            body += piece
            if len(body) > _MOST_BYTES:
                raise BadAnswer(self.node, self.host, f"{path} does not end")
        return bytes(body)


@asynccontextmanager
async def logged_in(client: Client) -> AsyncIterator[Client]:
    """Log in for the length of the block."""
    await client.open()
    try:
        yield client
    finally:
        await client.close()
