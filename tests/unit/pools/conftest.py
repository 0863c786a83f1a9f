"""A site of two pods with three racks, and a store in a temp folder; nothing listens anywhere."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from provision.access import Access
from provision.settings import Settings

SITE = """
name: t
maas: {url: "http://127.0.0.1:1/MAAS", key: "file:key"}
ssh: {user: ubuntu, key: "file:ssh"}
credentials: {bmc: {username: admin, password: "file:pw"}}
spare_share: 0.2
"""
RACKS = """
racks:
  a1:
    pod: su-1
    profile: big
    bmc: {credential: bmc}
    nodes:
      "a1-n[01-06]": {bmc: "127.0.9.{n}", serial: "A{n}", address: "127.0.9.{n}"}
      a1-i01: {bmc: 127.0.9.99, serial: I1, roles: [image_registry]}
  a2:
    pod: su-1
    profile: big
    bmc: {credential: bmc}
    nodes:
      "a2-n[01-04]": {bmc: "127.0.8.{n}", serial: "B{n}"}
  b1:
    pod: su-2
    profile: big
    bmc: {credential: bmc}
    nodes:
      "b1-n[01-05]": {bmc: "127.0.7.{n}", serial: "C{n}"}
      "b1-s[01-02]": {bmc: "127.0.6.{n}", serial: "D{n}", profile: small}
"""
PROFILES = """
profiles:
  big: {vendor: V, model: M, limits: {gpu.count: 8}}
  small: {vendor: V, model: S}
"""
Make = Callable[..., Access]


@pytest.fixture
def make(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Make]:
    """Writes the site, with changes to site.yaml appended, and opens it; commands open the same."""
    opened = []

    def go(*more: str, maas: str = "", key: str = "a:b:c") -> Access:
        site, state = tmp_path / "site", tmp_path / "state"
        site.mkdir(exist_ok=True)
        state.mkdir(mode=0o700, exist_ok=True)
        text = SITE.replace("http://127.0.0.1:1/MAAS", maas) if maas else SITE
        for name, body in (("site", "\n".join([text, *more])), ("racks", RACKS), ("profiles", PROFILES)):
            (site / f"{name}.yaml").write_text(body)
        for name in ("key", "ssh", "pw"):
            secret = state / name
            secret.touch(mode=0o600)
            secret.write_text(key)
        environment = {"MUSTER_SITE": str(site), "MUSTER_STATE": str(state), "MUSTER_WHO": "marta"}
        for name, value in environment.items():
            monkeypatch.setenv(name, value)
        access = Access.open(Settings.from_environment(environment))
        opened.append(access)
        return access

    yield go
    for access in opened:
        access.store.close()


@pytest.fixture
def access(make: Make) -> Access:
    """The site as it is."""
    return make()
