"""A node with a BMC, and a MAAS that holds it, for stages that touch both."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from lab.bmc import BmcSpec, BmcUser, Rack, start_rack
from lab.bmc.light import LightChassis
from lab.maas import MaasConfig, MaasServer, StubPower, User, start_maas
from lab.maas.config import Delays
from provision import flow
from provision.access import Access
from provision.ansible import PlayPool
from provision.maas.transport import Limits
from provision.settings import Settings
from provision.stages.job import Options
from provision.stages.site_maas import SiteMaas
from provision.waiting import Pace

KEY = "a:b:c"
MAC = "02:4c:00:00:00:01"
FAST = Limits(call_timeout_s=0.5, deadline_s=0.5, backoff_first_s=0.05, backoff_most_s=0.1)
DELAYS = Delays(power=0.02, commission=0.1, deploy=0.3, boot=0.02, release=0.02, abort=0.02)
SSH = '#!/bin/sh\nfor last; do :; done\nexec /bin/sh -c "$last"\n'


class Rig:
    """A node with a BMC, a MAAS, and the hands of a runner."""

    def __init__(
        self, access: Access, maas: MaasServer, rack: Rack, chassis: LightChassis, programs: Path
    ) -> None:
        self.access = access
        self.programs = programs
        self.awake = True
        self.maas = maas
        self.rack = rack
        self.chassis = chassis
        self.site_maas = SiteMaas(access.maas_within, window_s=0.01, looking=FAST, acting=FAST)
        self.hands = flow.Hands(access, self.site_maas, flow.works(PlayPool(1)))
        access.store.claim_run("b-1", kind="bringup", nodes=["n1"], who="ana")

    async def step(self, name: str, run: str = "b-1", **options: object) -> flow.StepResult:
        talking = asyncio.create_task(self._talk())
        try:
            return await flow.run_step(self.hands, name, "n1", run, Options(**options))  # type: ignore[arg-type]
        finally:
            talking.cancel()

    async def _talk(self) -> None:
        """Show the login prompt that the record of a good boot waits for."""
        while self.awake:
            self.chassis.print(b"\r\nn1 login: ")
            await asyncio.sleep(0.05)

    async def to(self, *names: str) -> None:
        for name in names:
            result = await self.step(name)
            assert result.ok, result

    def asked(self, operation: str) -> int:
        return sum(n for path, n in self.maas.request_log.items() if path.endswith(f"?op={operation}"))

    def notes(self) -> str:
        return "\n".join(event.message for event in self.access.store.events(kinds=["note"]))

    def deaf(self) -> None:
        """Have the node answer no SSH, and be silent on its console."""
        self.awake = False
        (self.programs / "ssh").write_text("#!/bin/sh\nexit 255\n")

    def runs(self, process: str) -> None:
        """Have the node's GPUs be used by a process."""
        (self.programs / "nvidia-smi").write_text(f"#!/bin/sh\necho '{process}'\n")
        (self.programs / "nvidia-smi").chmod(0o755)

    def disguise(self, serial: str) -> None:
        """Have another machine answer at the BMC's address: the cable was moved."""
        self.access._nodes["n1"] = replace(self.access.node("n1"), serial=serial)

    def hurry(self, stage: str, seconds: float) -> None:
        """Give a stage less time than the site's files do."""
        self.access.site.profiles["p"].deadlines[stage] = seconds  # type: ignore[index]

    @property
    def system_id(self) -> str:
        return str(self.access.store.node("n1").system_id)

    async def until(self, seen: str) -> None:
        while not any(seen in path for path in self.maas.request_log):
            await asyncio.sleep(0.01)


@asynccontextmanager
async def build(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Rig]:
    chassis = LightChassis(name="n1", serial="L1", mac=MAC)
    await chassis.power_on(boot_device=None)
    config = MaasConfig(simulate=True, users=(User(api_key=KEY),), delays=DELAYS)
    maas = await start_maas(config, StubPower())
    rack = await start_rack(
        [BmcSpec(chassis=chassis, host="127.0.0.1", port=0, users=(BmcUser("admin", "pw"),))]
    )
    port = rack.bmc("n1").port
    site, state, programs = (tmp_path / name for name in ("site", "state", "bin"))
    for folder in (site, state, programs):
        folder.mkdir(mode=0o700)
    (site / "site.yaml").write_text(
        f'name: t\nmaas: {{url: "{maas.url}", key: "file:key"}}\nssh: {{user: u, key: "file:ssh"}}\n'
        'credentials: {bmc: {username: admin, password: "file:pw"}}\n'
    )
    (site / "racks.yaml").write_text(
        "racks:\n  r1:\n    profile: p\n    bmc: {credential: bmc, protocol: ipmi}\n    nodes:\n"
        f"      n1: {{bmc: {{host: 127.0.0.1, port: {port}}}, serial: L1, address: 127.0.0.1, "
        f'mac: "{MAC}"}}\n'
    )
    (site / "profiles.yaml").write_text(
        "profiles:\n  p: {vendor: V, model: M, os_image: custom/debian-12,\n"
        "      deadlines: {commissioned: 3, deployed: 3, released: 3, ssh: 3, console: 3}}\n"
    )
    for name, text in (("key", KEY), ("ssh", "-"), ("pw", "pw")):
        (state / name).touch(mode=0o600)
        (state / name).write_text(text)
    (programs / "ssh").write_text(SSH)
    (programs / "ssh").chmod(0o755)
    monkeypatch.setenv("PATH", f"{programs}:{os.environ['PATH']}")
    settings = Settings.from_environment({"MUSTER_SITE": str(site), "MUSTER_STATE": str(state)})
    access = Access.open(replace(settings, pace=Pace(first=0.02, longest=0.1)))
    rig = Rig(access, maas, rack, chassis, programs)
    yield rig
    await rig.site_maas.close()
    await rack.close()
    await maas.close()
    access.store.close()
