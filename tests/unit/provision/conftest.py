"""A site of four nodes on loopback addresses where nothing listens, with a real store in a temp folder."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from provision.access import Access
from provision.maas.client import MaasClient
from provision.settings import Settings
from tests.unit.provision.rig import Rig, build

SITE = """
name: t
maas: {url: "http://127.0.0.1:1/MAAS", key: "file:key"}
ssh: {user: ubuntu, key: "file:ssh"}
credentials: {bmc: {username: admin, password: "file:pw"}}
"""
RACKS = """
racks:
  r1:
    profile: p
    bmc: {credential: bmc, protocol: ipmi}
    nodes:
      "r1-n[01-06]":
        {bmc: "127.0.9.{n}", serial: "S{n}", mac: "52:54:00:00:00:{n:02x}", address: "127.0.9.{n}"}
  r2:
    profile: p
    bmc: {credential: bmc, protocol: ipmi}
    nodes:
      "r2-n[01-02]":
        {bmc: "127.0.8.{n}", serial: "T{n}", mac: "52:54:00:00:01:{n:02x}", address: "127.0.8.{n}"}
"""
PROFILES = """
profiles:
  p: {vendor: V, model: M, os_image: custom/debian-12, limits: {gpu.count: 8}}
"""


@pytest.fixture
def access(tmp_path: Path) -> Iterator[Access]:
    site = tmp_path / "site"
    site.mkdir()
    for name, text in (("site", SITE), ("racks", RACKS), ("profiles", PROFILES)):
        (site / f"{name}.yaml").write_text(text)
    state = tmp_path / "state"
    state.mkdir(mode=0o700)
    for name in ("key", "ssh", "pw"):
        secret = state / name
        secret.touch(mode=0o600)
        secret.write_text("a:b:c")
    settings = Settings.from_environment(
        {"MUSTER_SITE": str(site), "MUSTER_STATE": str(state), "MUSTER_WHO": "marta"}
    )
    opened = Access.open(settings)
    yield opened
    opened.store.close()


@pytest.fixture
async def rig(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Rig]:
    async with build(tmp_path, monkeypatch) as made:
        yield made


@pytest.fixture
async def stranger(rig: Rig) -> AsyncIterator[MaasClient]:
    """Somebody else with a key of the same MAAS."""
    async with rig.access.maas() as client:
        yield client
