"""MAAS, Prometheus and launchers see what the store says; MAAS is the lab's, spoken to over HTTP."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from dataclasses import dataclass

import pytest

from inventory.model import Pool
from lab.maas import Delays, MaasConfig, MaasServer, StubPower, start_maas
from provision.access import Access
from provision.maas.model import Machine, NewMachine
from provision.maas.transport import Limits
from provision.pools import files, owed
from provision.pools.mirror import make_up, mirror, publish
from tests.unit.pools.conftest import Make
from tests.unit.pools.making import admit, hold

QUICK = Delays(0.0, 0.02, 0.02, 0.05, 0.02, 0.02, 0.02, 0.02, 0.02)
NODES = ("a1-n01", "a1-n02", "a1-n03")


@dataclass
class Site:
    """A site with a MAAS that has three of its machines."""

    access: Access
    server: MaasServer

    async def machine(self, name: str) -> Machine:
        async with self.access.maas() as maas:
            found = await maas.find(hostname=name)
        assert found is not None
        return found


@pytest.fixture
async def site(make: Make) -> AsyncIterator[Site]:
    config = MaasConfig(simulate=True, delays=QUICK)
    server = await start_maas(config, StubPower())
    access = make(maas=server.url, key=config.users[0].api_key)
    async with access.maas() as maas:
        for number, name in enumerate(NODES):
            made = await maas.create(
                NewMachine(
                    hostname=name,
                    macs=(f"52:54:00:00:00:0{number}",),
                    power={"power_address": f"192.0.2.{number}", "power_user": "u", "power_pass": "p"},
                )
            )
            access.store.observe(name, system_id=made.system_id)
    yield Site(access, server)
    await server.close()


async def test_maas_shows_pool_tag_and_why_and_takes_them_back(site: Site) -> None:
    access = site.access
    admit(access, *NODES)
    assert await mirror(access, NODES) == []
    shown = await site.machine("a1-n01")
    assert (shown.pool, shown.tags, shown.description) == ("reliable", ("muster-reliable",), "")

    hold(access, "a1-n01", "Xid 79")
    assert await mirror(access, ["a1-n01"]) == []
    shown = await site.machine("a1-n01")
    assert (shown.pool, shown.tags) == ("quarantine", ("muster-quarantine",))
    since = access.store.node("a1-n01").pool_since
    assert shown.description == f"muster: quarantine since {since:%Y-%m-%d} by automation: Xid 79"

    access.store.set_pool("a1-n01", None, by="ana", why="fixed")
    assert await mirror(access, ["a1-n01"]) == []
    shown = await site.machine("a1-n01")
    assert (shown.pool, shown.tags, shown.description) == ("default", (), "muster: default")


async def test_what_others_wrote_on_a_machine_stays(site: Site) -> None:
    access = site.access
    state = access.store.node("a1-n01")
    async with access.maas() as maas:
        await maas.update(state.system_id or "", description="belongs to physics")
        await maas.ensure_tag("liquid-cooled")
        await maas.tag_nodes("liquid-cooled", add=[state.system_id or ""])
    hold(access, "a1-n01")
    assert await mirror(access, ["a1-n01"]) == []
    shown = await site.machine("a1-n01")
    assert shown.description == "belongs to physics"
    assert set(shown.tags) == {"liquid-cooled", "muster-quarantine"}


async def test_a_second_mirror_changes_nothing_in_maas(site: Site) -> None:
    admit(site.access, *NODES)
    await mirror(site.access, NODES)
    site.server.forget_requests()
    await mirror(site.access, NODES)
    assert site.server.request_log, "it must have looked"
    assert [call for call in site.server.request_log if not call.startswith("GET ")] == []


async def test_many_at_once_are_all_shown(site: Site) -> None:
    admit(site.access, *NODES)
    assert await asyncio.gather(*(mirror(site.access, [name]) for name in NODES)) == [[], [], []]
    assert {(await site.machine(name)).pool for name in NODES} == {"reliable"}


async def test_a_locked_machine_is_said_and_the_others_are_shown(site: Site) -> None:
    admit(site.access, *NODES)
    locked = site.access.store.node("a1-n02").system_id or ""
    site.server.machines[locked].locked = True
    (problem,) = await mirror(site.access, NODES)
    assert problem.startswith("a1-n02: MAAS does not show its pool yet: ")
    assert "locked" in problem
    assert (await site.machine("a1-n03")).pool == "reliable"


async def test_a_maas_that_lost_a_machine_shows_the_others(site: Site) -> None:
    admit(site.access, *NODES)
    async with site.access.maas() as maas:
        await maas.delete(site.access.store.node("a1-n02").system_id or "")
    assert await mirror(site.access, NODES) == []
    assert (await site.machine("a1-n03")).pool == "reliable"


async def test_a_maas_that_is_away_undoes_nothing_and_is_said(site: Site) -> None:
    admit(site.access, *NODES)
    await site.server.close()
    (problem,) = await mirror(site.access, NODES, limits=Limits(deadline_s=0.2))
    assert problem.startswith("a1-n[01-03]: MAAS does not show its pool yet: ")
    assert site.access.store.node("a1-n01").pool is Pool.RELIABLE


async def test_what_maas_was_not_shown_is_shown_once_it_is_back(site: Site) -> None:
    access = site.access
    admit(access, *NODES)
    site.server.set_fault("maas-down")
    assert await mirror(access, NODES[:2], limits=Limits(deadline_s=0.2))
    assert owed.load(access.settings.state) == set(NODES[:2])
    site.server.set_fault("maas-down", on=False)
    assert await make_up(access) == set()
    assert (await site.machine("a1-n01")).pool == "reliable"
    assert (await site.machine("a1-n03")).pool == "default"  # nobody asked for it
    assert [event.node for event in access.store.events(kinds=["note"])] == list(NODES[:2])


async def test_what_is_owed_is_shown_with_the_next_nodes(site: Site) -> None:
    admit(site.access, *NODES)
    site.server.set_fault("maas-down")
    await mirror(site.access, NODES[:1], limits=Limits(deadline_s=0.2))
    site.server.set_fault("maas-down", on=False)
    assert await mirror(site.access, NODES[1:2]) == []
    assert (await site.machine("a1-n01")).pool == "reliable"
    assert owed.load(site.access.settings.state) == set()


def test_files_say_where_everyone_stands_and_who_has_whom(access: Access) -> None:
    admit(access, "a1-n01", "a1-n02")
    admit(access, "a1-n03", pool=Pool.SPARE)
    access.store.allocate("train", ["a1-n02"], who="ana")
    assert publish(access) == []
    state = access.settings.state
    groups = {
        group["labels"]["node"]: group for group in json.loads((state / "file_sd/nodes.json").read_text())
    }
    assert groups["a1-n03"]["labels"]["pool"] == "spare"
    assert groups["a1-n03"]["targets"] == ["127.0.9.3:9100"]
    assert (state / "hostfiles/reliable").read_text() == "a1-n01\na1-n02\n"
    assert (state / "hostfiles/spare").read_text() == "a1-n03\n"
    assert files.allocated_file(state, "train").read_text() == "a1-n02\n"
    access.store.give_back(["a1-n02"], by="ana")
    publish(access)
    assert not files.allocated_file(state, "train").exists()


def test_a_file_that_would_say_the_same_is_left_alone(access: Access) -> None:
    publish(access)
    path = access.settings.state / "file_sd/nodes.json"
    before = path.stat().st_ino
    publish(access)
    assert path.stat().st_ino == before
    admit(access, "a1-n01")
    publish(access)
    assert path.stat().st_ino != before


def test_files_that_cannot_be_written_are_said(access: Access) -> None:
    (access.settings.state / "file_sd").write_text("in the way")
    (problem,) = publish(access)
    assert problem.startswith(f"the files in {access.settings.state} cannot be written: ")
