"""One call to MAAS: signed, timed, repeated only where that is safe, refused with MAAS's reason."""

from __future__ import annotations

import asyncio
import json
import logging
import random
import re
import time
import uuid
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import NoReturn
from urllib.parse import urlencode

import aiohttp

from provision.maas.errors import (
    MaasAuthRejected,
    MaasBadAnswer,
    MaasClockSkew,
    MaasConflict,
    MaasForbidden,
    MaasNoRack,
    MaasNotFound,
    MaasRejected,
    MaasUnavailable,
    MaasUncertain,
    MaasUnreachable,
)
from provision.maas.oauth import ApiKey, authorization

_log = logging.getLogger(__name__)

Fields = tuple[tuple[str, str], ...]

_GATEWAY = frozenset({502, 504})
_FORM = "application/x-www-form-urlencoded"
_DOUBLINGS_MOST = 16  # far past any ceiling; a day of tries must not overflow a float


@dataclass(frozen=True, slots=True)
class Limits:
    """How long MAAS is waited for, in seconds. `deadline_s` covers one call with all its repeats."""

    call_timeout_s: float = 60.0
    deadline_s: float = 180.0
    backoff_first_s: float = 0.5
    backoff_most_s: float = 15.0
    connections: int = 16


@dataclass(frozen=True, slots=True)
class Ambient:
    """Clock, sleep and chance, so that a test can hold them."""

    clock: Callable[[], float] = time.monotonic
    wall: Callable[[], float] = time.time
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep
    rng: Callable[[], float] = random.random


@dataclass(frozen=True, slots=True)
class Call:
    """One request. `name` is how errors speak of it; `form` may hold secrets and is not shown."""

    name: str
    method: str
    path: str
    query: Fields = ()
    form: Fields = field(default=(), repr=False)
    body: bytes | None = field(default=None, repr=False)
    content_type: str = _FORM
    machine: str | None = None

    @property
    def safe(self) -> bool:
        """True where repeating changes nothing."""
        return self.method == "GET"


@dataclass(frozen=True, slots=True)
class _Answer:
    status: int
    content_type: str
    retry_after: float | None
    body: bytes

    @property
    def text(self) -> str:
        return self.body.decode("utf-8", errors="replace")


class _NotSentError(Exception):
    """The request never left us."""


class _LostError(Exception):
    """The request left, the answer did not arrive whole."""


class Transport:
    """Sends calls to one MAAS."""

    def __init__(
        self,
        url: str,
        key: ApiKey,
        *,
        session: aiohttp.ClientSession | None = None,
        limits: Limits | None = None,
        ambient: Ambient | None = None,
    ) -> None:
        self.url = api_url(url)
        self._key = key
        self._limits = limits or Limits()
        self._ambient = ambient or Ambient()
        self._session = session
        self._owned = session is None
        # Ours and not the pool's: waiting for a turn must not count as MAAS not answering.
        self._turns = asyncio.Semaphore(self._limits.connections)

    def __repr__(self) -> str:
        return f"Transport({self.url})"

    async def open(self) -> None:
        """Make the connection pool; it must be made inside the running loop."""
        if self._session is None:
            self._session = aiohttp.ClientSession(
                connector=aiohttp.TCPConnector(limit=self._limits.connections)
            )

    async def close(self) -> None:
        """Close the pool, if it is ours."""
        if self._owned and self._session is not None:
            await self._session.close()
            self._session = None

    async def send(self, call: Call) -> object:
        """Return the parsed body (None where it is empty). Raises a MaasError."""
        started: float | None = None
        tries = 0
        while True:
            tries += 1
            try:
                async with self._turns:
                    started = self._ambient.clock() if started is None else started
                    left = self._limits.deadline_s - (self._ambient.clock() - started)
                    answer = await self._once(call, min(self._limits.call_timeout_s, max(left, 0.1)))
            except _NotSentError as exc:
                await self._pause(call, started, tries, why=str(exc), cause=exc.__cause__)
                continue
            except _LostError as exc:
                if not call.safe:
                    raise self._uncertain(call, started, str(exc)) from exc.__cause__
                await self._pause(call, started, tries, why=str(exc), cause=exc.__cause__)
                continue
            doubt = _doubt(answer)
            if doubt and not call.safe:
                raise self._uncertain(call, started, doubt)
            if doubt:
                await self._pause(call, started, tries, why=doubt)
                continue
            if _to_be_repeated(call, answer):
                await self._pause(call, started, tries, why=_reason(answer), answer=answer)
                continue
            return _read(call, answer)

    async def _once(self, call: Call, timeout_s: float) -> _Answer:
        if self._session is None:
            await self.open()
        assert self._session is not None  # noqa: S101 - open() has just made it
        headers = {
            "Authorization": authorization(
                self._key, timestamp=int(self._ambient.wall()), nonce=uuid.uuid4().hex
            ),
            "Accept": "application/json",
        }
        data = None
        if call.method in {"POST", "PUT"}:
            headers["Content-Type"] = call.content_type
            data = call.body if call.body is not None else urlencode(call.form).encode()
        try:
            async with self._session.request(
                call.method,
                self.url + call.path,
                params=call.query,
                data=data,
                headers=headers,
                allow_redirects=False,  # a redirect would carry the key to another host
                timeout=aiohttp.ClientTimeout(total=timeout_s, sock_connect=min(10.0, timeout_s / 2)),
            ) as response:
                body = await response.read()
                return _Answer(
                    response.status,
                    response.content_type,
                    _seconds(response.headers.get("Retry-After")),
                    body,
                )
        except aiohttp.ConnectionTimeoutError as exc:
            raise _NotSentError("no connection in time") from exc
        except (aiohttp.ClientConnectorError, aiohttp.InvalidURL) as exc:
            raise _NotSentError(_short(exc)) from exc
        except TimeoutError as exc:
            raise _LostError(f"no answer within {timeout_s:.0f} s") from exc
        except aiohttp.ClientError as exc:
            raise _LostError(_short(exc)) from exc

    def _uncertain(self, call: Call, started: float | None, why: str) -> MaasUncertain:
        now = self._ambient.clock()
        waited = now - (now if started is None else started)
        return MaasUncertain(self.url, waited, why, call=call.name, machine=call.machine)

    async def _pause(
        self,
        call: Call,
        started: float | None,
        tries: int,
        *,
        why: str,
        cause: BaseException | None = None,
        answer: _Answer | None = None,
    ) -> None:
        """Sleep before the next try, or raise when the deadline would pass meanwhile."""
        limits = self._limits
        asked = answer.retry_after if answer else None
        doublings = min(tries - 1, _DOUBLINGS_MOST)
        ceiling = min(limits.backoff_most_s, limits.backoff_first_s * 2**doublings)
        # "Retry-After: 0" must not turn a long outage into a busy loop.
        wait = asked or ceiling * (0.5 + self._ambient.rng() / 2)
        now = self._ambient.clock()
        waited = now - (now if started is None else started)
        if waited + wait >= limits.deadline_s:
            if answer is not None:
                _refuse(call, answer)
            raise MaasUnreachable(self.url, waited, why) from cause
        _log.info("MAAS call %s: try %d failed (%s), next in %.1f s", call.name, tries, why, wait)
        await self._ambient.sleep(wait)


def api_url(url: str) -> str:
    """Return the API root for what an operator writes: http://host:5240/MAAS, with or without the rest."""
    root = url.rstrip("/")
    root = root.removesuffix("/api/2.0")
    return root + "/api/2.0/"


def form_fields(fields: Mapping[str, str | Sequence[str] | None]) -> Fields:
    """Return form fields, lists repeated, empty ones left out: MAAS takes an empty field as a value."""
    pairs: list[tuple[str, str]] = []
    for name, value in fields.items():
        values = (value,) if isinstance(value, str) else (value or ())
        pairs += [(name, each) for each in values if each != ""]
    return tuple(pairs)


def for_machine(call: Call, machine: str) -> Call:
    """Return the call, naming the machine it is about."""
    return replace(call, machine=machine)


def _doubt(answer: _Answer) -> str | None:
    """Return why this refusal does not tell whether the call was carried out, or None where it does."""
    if answer.status in _GATEWAY:
        return f"a proxy answered {answer.status}"
    if answer.status == 401 and "Nonce already used" in answer.text:
        return "MAAS has seen this request before"  # something between us delivered it twice
    return None


def _to_be_repeated(call: Call, answer: _Answer) -> bool:
    if _no_rack(answer):
        # It does not come back for being asked again at once, and the caller knows how long to wait.
        return False
    if answer.status == 503:
        return call.safe or answer.retry_after is not None  # a refusal before anything was done
    return answer.status == 500 and call.safe


def _read(call: Call, answer: _Answer) -> object:
    if answer.status >= 400:
        _refuse(call, answer)
    if answer.status >= 300:
        raise MaasBadAnswer(call.name, "a redirect; is the URL MAAS's own?", status=answer.status)
    if not answer.body.strip():
        return None
    if "html" in answer.content_type:
        raise MaasBadAnswer(
            call.name, "HTML came; is the URL MAAS's own?", status=answer.status, excerpt=_excerpt(answer)
        )
    try:
        return json.loads(answer.body)
    except ValueError as exc:
        if not call.safe and answer.content_type == "text/plain":
            return answer.text
        raise MaasBadAnswer(call.name, "no JSON", status=answer.status, excerpt=_excerpt(answer)) from exc


def _refuse(call: Call, answer: _Answer) -> NoReturn:
    reason = _reason(answer)
    kind: type[MaasRejected] = MaasRejected
    if answer.status == 401:
        kind = MaasAuthRejected
        if "Expired timestamp" in reason:
            kind, reason = MaasClockSkew, _skew(reason)
    elif _no_rack(answer):
        kind = MaasNoRack
    elif answer.status == 400 and "because of the current state" in reason:
        kind = MaasConflict
    else:
        kind = _KINDS.get(answer.status, MaasRejected)
    raise kind(answer.status, reason, call=call.name, machine=call.machine, retry_after=answer.retry_after)


_KINDS: dict[int, type[MaasRejected]] = {
    403: MaasForbidden,
    404: MaasNotFound,
    409: MaasConflict,
    503: MaasUnavailable,
}


def _no_rack(answer: _Answer) -> bool:
    if answer.status == 503:
        return "No rack controllers" in answer.text
    return answer.status == 500 and "determining BMC task queue" in answer.text


def _reason(answer: _Answer) -> str:
    """Return MAAS's own words in one line."""
    text = answer.text.strip()
    if not text:
        return "MAAS gave no reason" if answer.status != 403 else "not allowed, or the machine is locked"
    if "json" in answer.content_type or text.startswith("{"):
        try:
            body = json.loads(text)
        except ValueError:
            return _one_line(text)
        if isinstance(body, dict):
            return "; ".join(_complaint(field, said) for field, said in body.items())
    if answer.content_type == "text/html":
        text = re.sub(r"<[^>]*>", " ", text)
    return _one_line(text)


def _complaint(name: str, said: object) -> str:
    words = " ".join(str(item) for item in said) if isinstance(said, list) else str(said)
    return words if name == "__all__" else f"{name}: {words}"


def _skew(reason: str) -> str:
    times = re.search(r"given (\d+) and now (\d+)", reason)
    if times is None:
        return reason
    behind = int(times[2]) - int(times[1])
    return f"this host's clock is {behind} s behind MAAS's, which allows 300 s"


def _one_line(text: str, most: int = 300) -> str:
    line = " ".join(text.split())
    # An invalid signature is answered with the expected one, which holds the secret of the key.
    line = re.sub(r"(Expected signature base string:).*", r"\1 (not shown)", line)
    return line if len(line) <= most else line[: most - 1] + "…"


def _excerpt(answer: _Answer) -> str:
    return _one_line(re.sub(r"<[^>]*>", " ", answer.text), 120)


def _short(exc: BaseException) -> str:
    return _one_line(str(exc), 200) or type(exc).__name__


def _seconds(value: str | None) -> float | None:
    try:
        return max(0.0, float(value)) if value else None
    except ValueError:
        return None  # an HTTP date; MAAS sends seconds
