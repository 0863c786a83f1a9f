"""Replays recorded requests against a lab MAAS, doing in between what the recording's author did."""

from __future__ import annotations

import asyncio
import hashlib
import json
import uuid
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import aiohttp

from lab.maas import MaasServer, User
from tests.contract.lab_maas.node import Node, recorded_inventory
from tests.contract.lab_maas.shape import differences, rename, spoken_differences
from tests.contract.lab_maas.wire import Wire, sign

FOLDER = Path(__file__).parents[2] / "fixtures" / "maas_recorded"
RACK = [f"rack7-n{number:02}" for number in range(1, 10)]
TESTED = "rack7-n40"
# The recording's upload: its checksum is in the recorded request.
IMAGE = b"".join(hashlib.sha256(b"muster lab image %d" % n).digest() for n in range(3125))


@dataclass(frozen=True)
class Recording:
    number: int
    name: str
    at: int
    request: dict[str, Any]
    response: Any


def load() -> list[Recording]:
    found = []
    for file in sorted(FOLDER.glob("*.json")):
        number, _, name = file.stem.partition("-")
        whole = json.loads(file.read_text(encoding="utf-8"))
        found.append(Recording(int(number), name, whole["at"], whole["request"], whole["response"]))
    return found


class ReplayClock:
    """Tells the time of the recording, and waits for real."""

    def __init__(self) -> None:
        self.present = 0.0

    def time(self) -> float:
        return self.present

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds)


def mac_of(hostname: str) -> str:
    return f"02:4c:42:{int(hostname[-2:]) + (15 if hostname == RACK[0] else 16):02x}:01:01"


class Replay:
    def __init__(self, server: MaasServer, wire: Wire, clock: ReplayClock, users: dict[str, User]) -> None:
        self._server = server
        self._wire = wire
        self._clock = clock
        self._users = users
        self._recordings = {(one.number, one.name): one for one in load()}
        by_name = {one.name: one for one in self._recordings.values()}
        self._inventory = recorded_inventory(by_name["script-results-commissioning"].response["body"])
        self._recorded_ids = _recorded_ids(list(self._recordings.values()))
        self._live: dict[str, str] = {}
        self._nonce = uuid.uuid4().hex

    async def run(self) -> dict[tuple[int, str], list[str]]:
        """Return the differences of every recording."""
        found: dict[tuple[int, str], list[str]] = {}
        before = self._steps()
        for key, one in self._recordings.items():
            self._clock.present = max(self._clock.present, float(one.at))
            for step in before.pop(key[0], ()):
                await step()
            found[key] = await self._compare(one)
        assert not before, f"steps before unknown recordings: {sorted(before)}"
        return found

    async def _compare(self, one: Recording) -> list[str]:
        if "race" in one.request:
            return await self._race(one)
        if one.name == "metadata-netboot-off":
            got = await self._wire.call("POST", **self._installer.netboot_off())
        else:
            got = await self._send(one)
        self._learn(one, got.body)
        to_recorded = {live: recorded for recorded, live in self._live.items()}
        body = rename(got.body, to_recorded)
        wanted = one.response
        lines = []
        if got.status != wanted["status"]:
            lines.append(f"status: {wanted['status']} recorded, {got.status} answered: {str(body)[:200]}")
        for name, value in wanted["headers"].items():
            if got.headers.get(name.title().replace("Www", "WWW")) != value:
                lines.append(f"header {name}: {value!r} recorded, {got.headers.get(name.title())!r} answered")
        if wanted["status"] >= 400 and body != wanted["body"]:
            lines.append(f"text: {wanted['body']!r} recorded, {body!r} answered")
        lines += differences(wanted["body"], body)
        return lines + spoken_differences(wanted["body"], body)

    async def _send(self, one: Recording) -> Any:
        request = rename(one.request, self._live)
        headers = self._authorization(one)
        wire = self._wire.as_user(self._users.get(request.get("as", "")))
        path = request["path"].removeprefix("/MAAS/api/2.0/")
        form = dict(request.get("form") or {}) or None
        extra: dict[str, Any] = {"headers": headers}
        if form and "<files>" in form:
            extra["data"] = _with_file(form)
            form = None
        return await wire.call(request["method"], path, request.get("query"), form, **extra)

    def _authorization(self, one: Recording) -> dict[str, str]:
        key = self._users["warden"].api_key
        consumer, token, _ = key.split(":")
        now = int(self._clock.time())
        signed: dict[str, Callable[[], str]] = {
            "machines-badkey": lambda: sign("nobody:nothing:never", oauth_timestamp=str(now)),
            "nonce-first": lambda: sign(key, oauth_timestamp=str(now), oauth_nonce=_nonce(self._recordings)),
            "nonce-reused": lambda: sign(key, oauth_timestamp=str(now), oauth_nonce=_nonce(self._recordings)),
            "timestamp-400s-old": lambda: sign(key, oauth_timestamp=str(now - 400)),
            "timestamp-future": lambda: sign(key, oauth_timestamp=str(now + 4000)),
            "bad-secret": lambda: sign(f"{consumer}:{token}:wrong", oauth_timestamp=str(now)),
            "bad-token": lambda: sign(f"{consumer}:absent:wrong", oauth_timestamp=str(now)),
        }
        if one.name in signed:
            return {"Authorization": signed[one.name]()}
        user = self._users.get(one.request.get("as", ""))
        return {"Authorization": sign(user.api_key, oauth_timestamp=str(now))} if user else {}

    def _learn(self, one: Recording, got: Any) -> None:
        """Pair the ids of machines that recording and answer name alike."""
        recorded = one.response["body"]
        pairs = zip(_each(recorded), _each(got), strict=False)
        for first, second in pairs:
            if first.get("hostname") == second.get("hostname") and "system_id" in first:
                self._live.setdefault(first["system_id"], second["system_id"])

    async def _race(self, one: Recording) -> list[str]:
        raced: dict[str, Callable[[], Awaitable[Any]]] = {
            "race-allocate-same": lambda: self._op("machines/", "allocate", system_id=self._id(RACK[6])),
            "race-allocate-any": lambda: self._op("machines/", "allocate"),
            "race-deploy": lambda: self._op(self._path(RACK[6]), "deploy", distro_series="noble"),
        }
        answers = await asyncio.gather(*(raced[one.name]() for _ in one.response))
        to_recorded = {live: recorded for recorded, live in self._live.items()}
        got = sorted(
            (
                answer.status,
                (answer.body["hostname"] if one.name != "race-deploy" else "machine")
                if answer.status == 200
                else rename(answer.body, to_recorded),
            )
            for answer in answers
        )
        wanted = sorted((status, text) for status, text in one.response)
        return [] if got == wanted else [f"answers: {wanted} recorded, {got} answered"]

    # What the recording's author did between the recordings, in the order of the recordings.

    def _steps(self) -> dict[int, tuple[Callable[[], Awaitable[None]], ...]]:
        node = self._node
        return {
            26: (node(RACK[0]).commissions, self._ready(RACK[0])),
            67: (self._build_rack,),
            68: (self._tag,),
            78: (self._deploy(RACK[1]),),
            79: (node(RACK[1]).installs, self._status(RACK[1], "Deployed")),
            88: (self._rescued(RACK[1]),),
            90: (self._status(RACK[1], "Deployed"),),
            92: (self._status(RACK[1], "Deployed"), self._release_erasing(RACK[1])),
            94: (self._join(RACK[3]), self._allocate(RACK[3])),
            99: (self._addressed(RACK[3]),),
            102: (self._installing(RACK[3]),),
            103: (self._configuring,),
            104: (self._comes_up, self._status(RACK[3], "Deployed")),
            108: (self._status(RACK[3], "Ready"), self._join(RACK[4])),
            109: (self._broken_install(RACK[4]), self._status(RACK[4], "Failed deployment")),
            115: (self._join(RACK[5]),),
            117: (self._status(RACK[5], "Allocated"),),
            128: (self._know(RACK[6]),),
            141: (self._status("rack7-n38", "New"),),
            145: (self._create(TESTED),),
            146: (self._commission_fails, self._status(TESTED, "Failed commissioning")),
            151: (node(TESTED).commissions, self._ready(TESTED)),
            152: (node(TESTED).fails_tests, self._status(TESTED, "Failed testing")),
            168: (self._release(RACK[6]),),
            169: (*(self._release(name) for name in RACK[2:8]), self._join(RACK[6])),
            170: (self._abort(RACK[6]), self._status(RACK[6], "Allocated")),
            174: (self._upload,),
            177: (self._know(RACK[8]),),
            179: (self._allocate(RACK[7]), self._no_rack),
        }

    def _id(self, hostname: str) -> str:
        return next(one.system_id for one in self._server.machines.values() if one.hostname == hostname)

    def _path(self, hostname: str) -> str:
        return f"machines/{self._id(hostname)}/"

    async def _op(self, path: str, op: str, **form: str) -> Any:
        stamp = sign(self._users["warden"].api_key, oauth_timestamp=str(int(self._clock.time())))
        return await self._wire.call("POST", path, {"op": op}, form, headers={"Authorization": stamp})

    async def _done(self, path: str, op: str, **form: str) -> None:
        got = await self._op(path, op, **form)
        assert got.status == 200, (path, op, got)

    def _node(self, hostname: str) -> Node:
        return Node(self._wire, mac_of(hostname), self._inventory)

    def _status(self, hostname: str, wanted: str) -> Callable[[], Awaitable[None]]:
        async def step() -> None:
            async with asyncio.timeout(10):
                while self._server.machines[self._id(hostname)].status.label != wanted:
                    await asyncio.sleep(0.01)

        return step

    def _ready(self, hostname: str) -> Callable[[], Awaitable[None]]:
        return self._status(hostname, "Ready")

    def _create(self, hostname: str) -> Callable[[], Awaitable[None]]:
        async def step() -> None:
            first = mac_of(hostname)
            form = {
                "hostname": hostname,
                "architecture": "amd64/generic",
                "mac_addresses": [first, first.replace(":01:01", ":02:01")],
                "power_type": "ipmi",
                "power_parameters_power_address": "10.89.1.99",
                "commission": "false",
            }
            got = await self._wire.call(
                "POST", "machines/", None, form, headers=self._authorization(_UNRECORDED)
            )
            assert got.status == 200, got
            recorded = self._recorded_ids.get(hostname)
            if recorded is not None:
                self._live[recorded] = got.body["system_id"]

        return step

    async def _build_rack(self) -> None:
        for hostname in RACK[1:]:
            await self._create(hostname)()
            await self._done(self._path(hostname), "commission", testing_scripts="none")
            await self._node(hostname).commissions()
        # The recording never says the host names of these.
        self._live["n3dfaf"] = self._id(RACK[2])
        self._live["xyprrw"] = self._id(RACK[7])
        self._live["pk8t7k"] = self._id(RACK[8])

    def _know(self, hostname: str) -> Callable[[], Awaitable[None]]:
        async def step() -> None:
            assert self._id(hostname) in self._live.values(), f"nothing recorded names {hostname}"

        return step

    def _join(self, hostname: str) -> Callable[[], Awaitable[None]]:
        async def step() -> None:
            ports = self._server.machines[self._id(hostname)].interfaces
            path = f"nodes/{self._id(hostname)}/interfaces/{ports[0].id}/"
            headers = self._authorization(_UNRECORDED)
            got = await self._wire.call("PUT", path, None, {"vlan": "5001"}, headers=headers)
            assert got.status == 200, got
            await self._done(path, "link_subnet", mode="AUTO", subnet="1")

        return step

    def _deploy(self, hostname: str) -> Callable[[], Awaitable[None]]:
        return lambda: self._done(self._path(hostname), "deploy", distro_series="noble")

    def _allocate(self, hostname: str) -> Callable[[], Awaitable[None]]:
        return lambda: self._done("machines/", "allocate", system_id=self._id(hostname))

    def _release(self, hostname: str) -> Callable[[], Awaitable[None]]:
        async def step() -> None:
            await self._done(self._path(hostname), "release")
            await self._ready(hostname)()

        return step

    def _release_erasing(self, hostname: str) -> Callable[[], Awaitable[None]]:
        return lambda: self._done(self._path(hostname), "release", erase="true")

    def _abort(self, hostname: str) -> Callable[[], Awaitable[None]]:
        return lambda: self._done(self._path(hostname), "abort")

    def _rescued(self, hostname: str) -> Callable[[], Awaitable[None]]:
        async def step() -> None:
            node = self._node(hostname)
            await node.boots("rescue")
            await node.says("rescue", "started")
            await self._status(hostname, "Rescue mode")()

        return step

    def _addressed(self, hostname: str) -> Callable[[], Awaitable[None]]:
        async def step() -> None:
            links = self._server.machines[self._id(hostname)].interfaces[0].links
            async with asyncio.timeout(10):
                while links[0].ip is None:
                    await asyncio.sleep(0.01)

        return step

    def _installing(self, hostname: str) -> Callable[[], Awaitable[None]]:
        async def step() -> None:
            self._installer = self._node(hostname)
            await self._installer.boots("install")
            await self._installer.says("installation", "started")

        return step

    async def _configuring(self) -> None:
        await self._installer.says("installation", "progress", message="cmd-install/stage-curthooks: now")

    async def _comes_up(self) -> None:
        await self._installer.comes_up()

    async def _tag(self) -> None:
        await self._done("tags/rowc/", "update_nodes", add=self._id(RACK[1]))

    def _broken_install(self, hostname: str) -> Callable[[], Awaitable[None]]:
        async def step() -> None:
            node = self._node(hostname)
            await node.boots("install")
            await node.says("installation", "failed", message="curtin command install")

        return step

    async def _commission_fails(self) -> None:
        await self._node(TESTED).commissions(failing="20-maas-01-install-lldpd")

    async def _upload(self) -> None:
        created = next(one for key, one in self._recordings.items() if key[1] == "boot-resource-create")
        file = created.response["body"]["sets"]["20260303"]["files"]["root.tgz"]
        got = await self._wire.call(
            "PUT",
            file["upload_uri"].removeprefix("/MAAS/api/2.0/").replace("/7/", "/1/"),
            data=IMAGE,
            headers={**self._authorization(_UNRECORDED), "Content-Type": "application/octet-stream"},
        )
        assert got.status == 200, got

    async def _no_rack(self) -> None:
        self._server.set_fault("no-rack")


_UNRECORDED = Recording(0, "", 0, {"as": "warden"}, None)


def _each(body: Any) -> list[dict[str, Any]]:
    many = body if isinstance(body, list) else [body]
    return [one for one in many if isinstance(one, dict)]


def _recorded_ids(recordings: list[Recording]) -> dict[str, str]:
    return {
        machine["hostname"]: machine["system_id"]
        for one in recordings
        if isinstance(one.response, dict)
        for machine in _each(one.response["body"])
        if "hostname" in machine and "system_id" in machine
    }


def _nonce(recordings: dict[tuple[int, str], Recording]) -> str:
    refused = next(one for one in recordings.values() if one.name == "nonce-reused")
    return str(refused.response["body"].split("used: ")[1].rstrip("'"))


def _with_file(form: dict[str, Any]) -> Any:
    data = aiohttp.FormData()
    for name, value in form.items():
        if name != "<files>":
            data.add_field(name, str(value))
    for name in form["<files>"]:
        data.add_field(name, b"#!/bin/sh\nexit 0\n", filename=name)
    return data
