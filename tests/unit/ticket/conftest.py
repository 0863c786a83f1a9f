"""A site of two nodes where nothing listens, its secrets, and ways to a node that are fakes."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import cast

import pytest

from bmc.capability import Bmc, BmcIdentity, PowerState, Reading, SelEntry
from bmc.errors import BmcError, Unsupported
from bmc.redfish.driver import Redfish
from inventory.store import Store
from provision.access import Access
from provision.settings import Settings
from provision.ssh import SshResult
from provision.ticket.collecting import Case
from provision.ticket.lines import HostDead, Login
from provision.ticket.redact import Profile

NOW = datetime(2026, 8, 21, 14, 51, 0, tzinfo=UTC)
PASSWORD = "kuebel-Wagen+7/x"
MAAS_KEY = "consumer0aZ:token1bYtoken:secret2cXsecret"

SITE = """
name: t
maas: {url: "http://maas.dc1.example:5240/MAAS", key: "file:maas"}
ssh: {user: ubuntu, key: "file:ssh"}
credentials: {bmc: {username: oobadmin, password: "file:pw"}}
"""
RACKS = """
racks:
  r1:
    profile: p
    bmc: {credential: bmc, protocol: ipmi}
    nodes:
      "r1-n[01-02]":
        {bmc: "127.0.9.{n}", serial: "S4X193{n}", mac: "52:54:00:00:00:{n:02x}", address: "10.9.1.{n}"}
"""
PROFILES = """
profiles:
  p: {vendor: Supermicro, model: SYS-821GE, os_image: custom/debian-12, limits: {gpu.count: 8}}
"""
KEY = "-----BEGIN OPENSSH PRIVATE " + "KEY-----\n{}\n-----END OPENSSH PRIVATE " + "KEY-----"
KEY_LINES = ("b3BlbnNzaC1rZXktdjEAAAAABG5vbmUAAAAEbm9uZQ", "x7Qd" * 16, "y9Rw" * 16)


@pytest.fixture
def access(tmp_path: Path) -> Iterator[Access]:
    site, state = tmp_path / "site", tmp_path / "state"
    site.mkdir()
    state.mkdir(mode=0o700)
    for name, text in (("site", SITE), ("racks", RACKS), ("profiles", PROFILES)):
        (site / f"{name}.yaml").write_text(text)
    for name, text in (("maas", MAAS_KEY), ("ssh", KEY.format("\n".join(KEY_LINES))), ("pw", PASSWORD)):
        (state / name).touch(mode=0o600)
        (state / name).write_text(text)
    opened = Access.open(
        Settings.from_environment(
            {"MUSTER_SITE": str(site), "MUSTER_STATE": str(state), "MUSTER_WHO": "marta"}
        )
    )
    opened.store.close()
    opened.store = Store.open(opened.settings.database, clock=lambda: NOW)
    yield opened
    opened.store.close()


@dataclass
class FakeBmc:
    """A BMC that answers at once; `broken` maps a question to what is raised instead."""

    broken: Mapping[str, Exception] = field(default_factory=dict)
    serial: str = "S4X1931"
    asked: list[str] = field(default_factory=list)

    def _ask(self, what: str) -> None:
        self.asked.append(what)
        if what in self.broken:
            raise self.broken[what]

    async def identity(self) -> BmcIdentity:
        self._ask("identity")
        return BmcIdentity("ipmi", "Supermicro", "SYS-821GE-TNHR", "1.03", "guid-1", self.serial)

    async def power_state(self) -> PowerState:
        self._ask("power_state")
        return PowerState.ON

    async def sel(self) -> tuple[SelEntry, ...]:
        self._ask("sel")
        return (
            SelEntry(1, NOW, "PSU1", "Power Supply AC lost", "critical", True, bytes(range(16))),
            SelEntry(2, None, "PSU1", "Power Supply AC lost", "ok", False, bytes(16)),
        )

    async def sensors(self) -> tuple[Reading, ...]:
        self._ask("sensors")
        return (Reading("Inlet", "Temperature", 24.0, "C", "ok", {"upper critical": 47.0}),)

    async def fru(self) -> dict[str, dict[str, str]]:
        self._ask("fru")
        return {"builtin": {"chassis serial": "S4X1931"}, "PSU 1": {"product serial": "P1K2M3"}}


class FakeHost:
    """SSH to a node: the first word of a command leads to its output; what is not named is not installed."""

    def __init__(
        self, outputs: Mapping[str, bytes | SshResult | Exception] | None = None, dead: str = ""
    ) -> None:
        self.outputs = dict(outputs or {})
        self.dead = dead
        self.commands: list[list[str]] = []

    async def run(self, command: list[str], *, timeout_s: float, limit: int = 1) -> SshResult:
        self.commands.append(command)
        if self.dead:
            raise HostDead(self.dead)
        assert command[:3] == ["timeout", "-k", "5"]
        found = self.outputs.get(command[4])
        if isinstance(found, Exception):
            raise found
        if isinstance(found, SshResult):
            return found
        if found is None:
            return SshResult(127, b"", b"timeout: failed to run command: No such file or directory")
        return SshResult(0, found, b"")


class Logins:
    """Counts how often somebody logged in and out."""

    def __init__(self, bmc: object, refused: BmcError | None = None) -> None:
        self.bmc, self.refused = bmc, refused
        self.ins = self.outs = 0

    @asynccontextmanager
    async def open(self) -> AsyncIterator[object]:
        self.ins += 1
        if self.refused is not None:
            raise self.refused
        try:
            yield self.bmc
        finally:
            self.outs += 1


class MakeCase:
    """Makes a case of node r1-n01 with fakes in place of what a test names."""

    def __init__(self, access: Access) -> None:
        self._access = access

    def __call__(
        self, *, bmc: Logins | None = None, host: FakeHost | None = None, audience: Profile = Profile.VENDOR
    ) -> Case:
        node = self._access.node("r1-n01")
        no_redfish = Unsupported(node.name, node.bmc.host, "Redfish")
        ipmi = bmc or Logins(FakeBmc())
        return Case(
            access=self._access,
            node=node,
            profile=self._access.profile(node),
            now=NOW,
            bmc=cast("Login[Bmc]", Login(ipmi.open)),
            redfish=cast("Login[Redfish]", Login(Logins(None, no_redfish).open)),
            host=host or FakeHost(),
            audience=audience,
        )


@pytest.fixture
def make_case(access: Access) -> MakeCase:
    return MakeCase(access)
