"""A plain client of the API and of the boot service, for tests."""

from __future__ import annotations

import asyncio
import base64
import time
import uuid
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import aiohttp

from lab.maas import User

Fields = Mapping[str, str | int | Sequence[str]]


@dataclass(frozen=True)
class Got:
    status: int
    body: Any
    headers: Mapping[str, str]


def sign(api_key: str, **changes: str) -> str:
    consumer, token, secret = api_key.split(":")
    parts = {
        "oauth_version": "1.0",
        "oauth_signature_method": "PLAINTEXT",
        "oauth_consumer_key": consumer,
        "oauth_token": token,
        "oauth_signature": f"%26{secret}",
        "oauth_nonce": uuid.uuid4().hex,
        "oauth_timestamp": str(int(time.time())),
        **changes,
    }
    return "OAuth " + ", ".join(f'{name}="{value}"' for name, value in parts.items())


def pairs(fields: Fields | None) -> list[tuple[str, str]]:
    found = []
    for name, value in (fields or {}).items():
        many = [value] if isinstance(value, str | int) else value
        found += [(name, str(one)) for one in many]
    return found


class Wire:
    """Speaks HTTP to a lab MAAS as one of its users, or as nobody."""

    def __init__(self, session: aiohttp.ClientSession, url: str, user: User | None) -> None:
        self.session = session
        self.api = f"{url}/api/2.0/"
        self.root = url.removesuffix("/MAAS")
        self.user = user

    def as_user(self, user: User | None) -> Wire:
        return Wire(self.session, f"{self.root}/MAAS", user)

    async def call(
        self,
        method: str,
        path: str,
        query: Fields | None = None,
        form: Fields | None = None,
        **extra: Any,
    ) -> Got:
        headers = dict(extra.pop("headers", {}))
        if self.user is not None and "Authorization" not in headers:
            headers["Authorization"] = sign(self.user.api_key)
        url = path if path.startswith("http") else self.api + path
        data = extra.pop("data", None)
        if form is not None:
            data = aiohttp.FormData(pairs(form))
        async with self.session.request(
            method, url, params=pairs(query), data=data, headers=headers, **extra
        ) as answer:
            text = await answer.text()
            is_json = answer.content_type == "application/json"
            return Got(answer.status, await answer.json() if is_json else text, dict(answer.headers))

    async def get(self, path: str, **query: str) -> Any:
        got = await self.call("GET", path, query)
        assert got.status == 200, got
        return got.body

    async def op(self, path: str, op: str, form: Fields | None = None) -> Any:
        got = await self.call("POST", path, {"op": op}, form or {})
        assert got.status == 200, got
        return got.body

    async def create(self, hostname: str, mac: str, **fields: str) -> str:
        wanted = {
            "hostname": hostname,
            "architecture": "amd64/generic",
            "mac_addresses": mac,
            "power_type": "ipmi",
            "power_parameters_power_address": "127.0.9.1",
            "commission": "false",
            **fields,
        }
        got = await self.call("POST", "machines/", None, wanted)
        assert got.status == 200, got
        return str(got.body["system_id"])

    async def status(self, system_id: str) -> str:
        return str((await self.get(f"machines/{system_id}/"))["status_name"])

    async def reaches(self, system_id: str, *wanted: str, seconds: float = 10.0) -> dict[str, Any]:
        """Wait until a machine has one of the wanted statuses."""
        return await until(
            lambda: self.get(f"machines/{system_id}/"),
            lambda found: found["status_name"] in wanted,
            f"{system_id} is {' or '.join(wanted)}",
            seconds,
        )

    async def boot(self, mac: str) -> dict[str, Any]:
        async with self.session.get(f"{self.root}/boot/{mac}") as answer:
            assert answer.status == 200, await answer.text()
            return dict(await answer.json())

    async def report(self, mac: str, token: str, phase: str, event: str, **more: Any) -> Got:
        told = {"token": token, "phase": phase, "event": event, "message": "", "address": None, **more}
        async with self.session.post(f"{self.root}/boot/{mac}/report", json=told) as answer:
            return Got(answer.status, await answer.json(), dict(answer.headers))


async def until(ask: Callable[[], Any], good: Callable[[Any], bool], what: str, seconds: float = 10.0) -> Any:
    """Ask until the answer is good; fail with what was waited for and the last answer."""
    deadline = time.monotonic() + seconds
    while True:
        found = await ask()
        if good(found):
            return found
        assert time.monotonic() < deadline, f"waited {seconds} s until {what}; last: {found}"
        await asyncio.sleep(0.02)


def b64(text: str) -> str:
    return base64.b64encode(text.encode()).decode()
