"""Stages against a MAAS that loses answers, goes away, or holds the machine for somebody else."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import pytest

from inventory.model import Stage
from inventory.records import RunState
from lab.bmc import BmcSpec, BmcUser, Rack, start_rack
from lab.bmc.light import LightChassis
from lab.maas import MaasConfig, MaasServer, StubPower, User, start_maas
from lab.maas.config import Delays
from provision import flow
from provision.access import Access
from provision.ansible import PlayPool
from provision.maas.client import MaasClient
from provision.maas.model import Deployment, Machine, MachineStatus, NewMachine
from provision.maas.transport import Limits
from provision.settings import Settings
from provision.stages.job import DEPLOY_ASKED, Options
from provision.stages.site_maas import SiteMaas
from provision.waiting import Pace

KEY = "a:b:c"
MAC = "02:4c:00:00:00:01"
FAST = Limits(call_timeout_s=0.5, deadline_s=0.5, backoff_first_s=0.05, backoff_most_s=0.1)
DELAYS = Delays(power=0.02, commission=0.1, deploy=0.3, boot=0.02, release=0.02, abort=0.02)
SSH = '#!/bin/sh\nfor last; do :; done\nexec /bin/sh -c "$last"\n'


class Rig:
    """A node with a BMC, a MAAS, and the hands of a runner."""

    def __init__(self, access: Access, maas: MaasServer, rack: Rack, chassis: LightChassis) -> None:
        self.access = access
        self.maas = maas
        self.rack = rack
        self.chassis = chassis
        self.site_maas = SiteMaas(access.maas_within, window_s=0.01, looking=FAST, acting=FAST)
        self.hands = flow.Hands(access, self.site_maas, flow.works(PlayPool(1)))
        access.store.claim_run("b-1", kind="bringup", nodes=["n1"], who="ana")

    async def step(self, name: str, run: str = "b-1", **options: object) -> flow.StepResult:
        return await flow.run_step(self.hands, name, "n1", run, Options(**options))  # type: ignore[arg-type]

    async def to(self, *names: str) -> None:
        for name in names:
            result = await self.step(name)
            assert result.ok, result

    def asked(self, operation: str) -> int:
        return sum(n for path, n in self.maas.request_log.items() if path.endswith(f"?op={operation}"))

    def notes(self) -> str:
        return "\n".join(event.message for event in self.access.store.events(kinds=["note"]))

    @property
    def system_id(self) -> str:
        return str(self.access.store.node("n1").system_id)

    async def until(self, seen: str) -> None:
        while not any(seen in path for path in self.maas.request_log):
            await asyncio.sleep(0.01)


@pytest.fixture
async def rig(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Rig]:
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
    rig = Rig(access, maas, rack, chassis)
    yield rig
    await rig.site_maas.close()
    await rack.close()
    await maas.close()
    access.store.close()


@pytest.fixture
async def stranger(rig: Rig) -> AsyncIterator[MaasClient]:
    """Somebody else with a key of the same MAAS."""
    async with rig.access.maas() as client:
        yield client


class Losing(MaasClient):
    """A client whose first answer to one operation is lost on the way, after MAAS did it."""

    maas: MaasServer
    loses: str

    async def _operate(self, system_id: str, op: str, **form: str) -> Machine:
        if op == self.loses:
            self.loses = ""
            self.maas.set_fault("half-body")
            asyncio.get_running_loop().call_later(0.4, lambda: self.maas.set_fault("half-body", on=False))
        return await super()._operate(system_id, op, **form)


@pytest.mark.parametrize(
    ("before", "name", "operation"),
    [
        (("enlisted",), "commissioned", "commission"),
        (("enlisted", "commissioned"), "deployed", "deploy"),
        (("enlisted", "commissioned", "deployed"), "released", "release"),
    ],
)
async def test_what_maas_may_have_done_is_looked_at_before_it_is_asked_again(
    rig: Rig, before: tuple[str, ...], name: str, operation: str
) -> None:
    await rig.to(*before)
    run = "b-1"
    if name == "released":
        run = "i-1"
        rig.access.store.end_run("b-1", RunState.DONE)
        rig.access.store.claim_run(run, kind="reimage", nodes=["n1"], who="ana")
    await rig.site_maas.client.close()
    client = Losing(rig.maas.url, rig.access.secret("file:key"), limits=FAST)
    client.maas, client.loses = rig.maas, operation
    rig.site_maas._client = client
    result = await rig.step(name, run)
    assert result.ok, result
    assert rig.asked(operation) == 1, rig.maas.request_log
    assert "looking before asking again" in rig.notes()
    assert "MAAS had done it" in rig.notes()


async def test_a_maas_that_is_away_for_longer_than_the_stage_may_take_is_waited_for_and_said(
    rig: Rig,
) -> None:
    await rig.to("enlisted")
    task = asyncio.create_task(rig.step("commissioned"))
    await rig.until("op=commission")
    rig.maas.set_fault("maas-down")
    deadline = asyncio.get_running_loop().time() + 4.5  # the stage itself may take 3 s
    while asyncio.get_running_loop().time() < deadline:
        assert not task.done(), task.result()
        await asyncio.sleep(0.1)
    assert "waiting for MAAS: " in rig.notes()
    rig.maas.set_fault("maas-down", on=False)
    assert (await task).ok
    assert "MAAS answers again after " in rig.notes()
    assert rig.asked("commission") == 1


async def test_an_overloaded_maas_is_asked_again_later(rig: Rig) -> None:
    await rig.to("enlisted")
    rig.maas.set_fault("maas-503", value=0.2)
    task = asyncio.create_task(rig.step("commissioned"))
    await rig.until("GET /MAAS/api/2.0/machines/")
    await asyncio.sleep(1.0)
    assert not task.done()
    rig.maas.set_fault("maas-503", on=False)
    assert (await task).ok
    assert rig.asked("commission") == 1


async def test_patience_with_maas_ends(rig: Rig) -> None:
    await rig.to("enlisted")
    rig.access.site.profiles["p"].deadlines["maas"] = 0.5  # type: ignore[index]
    rig.maas.set_fault("maas-down")
    result = await rig.step("commissioned")
    assert (result.ok, result.code) == (False, "maas-unreachable")
    assert rig.access.store.node("n1").pool is None


async def test_a_run_killed_between_its_record_and_the_deployment_deploys_once(rig: Rig) -> None:
    await rig.to("enlisted", "commissioned")
    rig.access.store.event("n1", DEPLOY_ASKED, run="b-1", message="custom/debian-12")
    await rig.to("deployed")
    assert rig.asked("deploy") == 1


async def test_a_run_killed_after_the_deployment_was_asked_for_waits_for_it(
    rig: Rig, stranger: MaasClient
) -> None:
    await rig.to("enlisted", "commissioned")
    rig.access.store.event("n1", DEPLOY_ASKED, run="b-1", message="custom/debian-12")
    await stranger.deploy(rig.system_id, Deployment(osystem="custom", distro_series="debian-12"))
    await rig.to("deployed")
    assert rig.asked("deploy") == 1
    assert rig.access.store.node("n1").deployed_at is not None


async def test_a_deployment_that_a_cancelled_run_left_behind_is_ours(rig: Rig, stranger: MaasClient) -> None:
    await rig.to("enlisted", "commissioned")
    rig.access.store.event("n1", DEPLOY_ASKED, run="b-0", message="custom/debian-12")
    await stranger.deploy(rig.system_id, Deployment(osystem="custom", distro_series="debian-12"))
    while (await stranger.machine(rig.system_id)).status != MachineStatus.DEPLOYED:
        await asyncio.sleep(0.02)
    await rig.to("deployed")
    assert rig.asked("deploy") == 1
    assert rig.access.store.node("n1").deployed_at is not None


@pytest.mark.parametrize("deploys", [False, True])
async def test_a_machine_that_somebody_else_took_is_left_alone(
    rig: Rig, stranger: MaasClient, deploys: bool
) -> None:
    await rig.to("enlisted", "commissioned")
    if deploys:
        await stranger.deploy(rig.system_id, Deployment(osystem="custom", distro_series="debian-12"))
    else:
        await stranger.allocate(rig.system_id)
    boots = rig.rack.bmc("n1").log.count(0x00, 0x08)
    result = await rig.step("deployed")
    assert (result.ok, result.code) == (False, "not-ours")
    assert rig.asked("deploy") == int(deploys)
    assert rig.rack.bmc("n1").log.count(0x00, 0x08) == boots
    assert rig.access.store.node("n1").pool is None


async def test_a_machine_whose_power_maas_would_switch_at_another_bmc_is_not_enlisted(
    rig: Rig, stranger: MaasClient
) -> None:
    power = {"power_address": "127.0.0.9", "power_user": "admin", "power_pass": "pw"}
    await stranger.create(NewMachine(hostname="n1", macs=(MAC,), architecture="amd64/generic", power=power))
    result = await rig.step("enlisted")
    assert (result.ok, result.code) == (False, "maas-mismatch")
    assert "127.0.0.9" in result.detail


async def test_a_bmc_of_another_machine_is_never_commissioned(rig: Rig) -> None:
    """The cable was moved after the BMC had been seen."""
    await rig.to("enlisted")
    rig.access._nodes["n1"] = replace(rig.access.node("n1"), serial="OTHER")
    result = await rig.step("commissioned")
    assert (result.ok, result.code) == (False, "identity")
    assert rig.asked("commission") == 0


async def test_a_node_about_to_be_wiped_leaves_the_pool_first(rig: Rig) -> None:
    """Its run was cut short before it could take the node out."""
    await rig.to("enlisted", "commissioned", "deployed")
    store = rig.access.store
    store.reach("n1", Stage.VERIFIED, run="b-1")
    store.record_verdict("n1", run="b-1", level="quick", answer="yes", reasons=[], evidence=None)
    await rig.to("pool")
    store.end_run("b-1", RunState.DONE)
    store.claim_run("i-1", kind="reimage", nodes=["n1"], who="ana")
    result = await rig.step("released", "i-1", reimage=True, reason="new kernel", who="ana")
    assert result.ok
    assert store.node("n1").pool is None
