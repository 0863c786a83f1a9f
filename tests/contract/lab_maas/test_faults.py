"""Faults are named, set while the lab runs, and lifted again."""

from __future__ import annotations

import asyncio
import dataclasses

import aiohttp
import pytest

from lab.maas import MaasConfig, MaasServer, StubPower, UnknownFault, UnknownMachine
from tests.contract.lab_maas.conftest import QUICK, Start
from tests.contract.lab_maas.wire import Wire, sign

MAC = "02:4c:41:42:00:01"
Maas = tuple[MaasServer, Wire]


async def ready(wire: Wire) -> str:
    system_id = await wire.create("lab-n01", MAC)
    await wire.op(f"machines/{system_id}/", "commission", {"testing_scripts": "none"})
    await wire.reaches(system_id, "Ready")
    return system_id


async def events_of(wire: Wire, system_id: str) -> list[tuple[str, str, str]]:
    found = await wire.get("events/", op="query", id=system_id)
    return [(one["level"], one["type"], one["description"]) for one in found["events"]]


async def test_says_when_to_come_back(maas: Maas) -> None:
    server, wire = maas
    server.set_fault("maas-503", value=7)
    got = await wire.call("GET", "machines/")
    assert (got.status, got.headers["Retry-After"]) == (503, "7")
    server.set_fault("maas-503", on=False)
    assert await wire.get("machines/") == []


async def test_hangs_up_on_everybody_when_down(maas: Maas) -> None:
    server, wire = maas
    server.set_fault("maas-down")
    with pytest.raises(aiohttp.ClientConnectionError):
        await wire.call("GET", "machines/")
    with pytest.raises(aiohttp.ClientConnectionError):
        await wire.boot(MAC)
    server.set_fault("maas-down", on=False)
    assert await wire.get("machines/") == []


async def test_answers_late_when_slow(maas: Maas) -> None:
    server, wire = maas
    server.set_fault("slow", value=30)
    with pytest.raises(TimeoutError):
        await wire.call("GET", "machines/", timeout=aiohttp.ClientTimeout(total=0.2))


async def test_breaks_off_in_the_middle_of_an_answer(maas: Maas) -> None:
    server, wire = maas
    server.set_fault("half-body")
    with pytest.raises(aiohttp.ClientPayloadError):
        await wire.call("GET", "machines/")


async def test_answers_with_a_page_of_a_proxy(maas: Maas) -> None:
    server, wire = maas
    server.set_fault("html-error")
    got = await wire.call("GET", "machines/")
    assert got.status == 502
    assert got.body.startswith("<html>")


async def test_refuses_a_fault_or_machine_that_does_not_exist(maas: Maas) -> None:
    server, _ = maas
    with pytest.raises(UnknownFault, match="no fault 'maas-504'; known: maas-503"):
        server.set_fault("maas-504")
    with pytest.raises(UnknownMachine, match="no machine 'lab-n99'"):
        server.set_fault("deploy-fails", machine="lab-n99")


@pytest.mark.parametrize(
    ("fault", "op", "form", "failed", "event"),
    [
        (
            "deploy-fails",
            "deploy",
            {},
            "Failed deployment",
            ("ERROR", "Node installation failure", "'curtin' curtin command install"),
        ),
        ("commission-fails", "commission", {}, "Failed commissioning", ("INFO", "Failed commissioning", "")),
        ("test-fails", "test", {}, "Failed testing", ("INFO", "Failed testing", "")),
    ],
)
async def test_fails_one_machine_and_says_why(
    imaginary: Maas, fault: str, op: str, form: dict[str, str], failed: str, event: tuple[str, str, str]
) -> None:
    server, wire = imaginary
    system_id = await ready(wire)
    server.set_fault(fault, machine="lab-n01")
    await wire.op(f"machines/{system_id}/", op, form)
    await wire.reaches(system_id, failed)
    assert event in await events_of(wire, system_id)
    server.set_fault(fault, machine="lab-n01", on=False)
    if failed == "Failed deployment":
        await wire.op(f"machines/{system_id}/", "release")
        await wire.reaches(system_id, "Ready")
    else:
        await wire.op(f"machines/{system_id}/", "commission")
        await wire.reaches(system_id, "Ready")


@pytest.mark.parametrize(
    ("erase", "failed"), [("false", "Failed releasing"), ("true", "Failed disk erasing")]
)
async def test_fails_to_release(imaginary: Maas, erase: str, failed: str) -> None:
    server, wire = imaginary
    system_id = await ready(wire)
    await wire.op(f"machines/{system_id}/", "deploy")
    await wire.reaches(system_id, "Deployed")
    server.set_fault("release-fails", machine=system_id)
    await wire.op(f"machines/{system_id}/", "release", {"erase": erase})
    machine = await wire.reaches(system_id, failed)
    assert machine["error_description"]
    server.set_fault("release-fails", machine=system_id, on=False)
    await wire.op(f"machines/{system_id}/", "release")
    await wire.reaches(system_id, "Ready")


async def test_sticks_in_deploying_without_a_reason(start: Start) -> None:
    server, wire = await start(MaasConfig(delays=QUICK, node_timeout=1.0))
    stuck, other = [await wire.create(f"lab-n0{n}", f"02:4c:41:42:00:0{n}") for n in (1, 2)]
    for system_id in (stuck, other):
        mac = server.machines[system_id].interfaces[0].mac
        await wire.op(f"machines/{system_id}/", "commission", {"testing_scripts": "none"})
        await wire.report(mac, (await wire.boot(mac))["token"], "commissioning", "finished")
    server.set_fault("stuck-deploying", machine=stuck)
    for system_id in (stuck, other):
        await wire.op(f"machines/{system_id}/", "deploy")
    await wire.reaches(other, "Failed deployment")
    assert await wire.status(stuck) == "Deploying"
    token = (await wire.boot(MAC))["token"]
    await wire.report(MAC, token, "installation", "finished")
    assert (await wire.boot(MAC))["intent"] == "install"
    assert not [one for one in await events_of(wire, stuck) if one[0] == "ERROR"]


@pytest.mark.parametrize(
    ("op", "failed"), [("commission", "Failed commissioning"), ("rescue_mode", "Failed to enter rescue mode")]
)
async def test_gives_up_on_a_machine_that_never_speaks(start: Start, op: str, failed: str) -> None:
    _, wire = await start(MaasConfig(delays=QUICK, node_timeout=0.3))
    system_id = await wire.create("lab-n01", MAC)
    status = (await wire.op(f"machines/{system_id}/", op))["status_name"]
    machine = await wire.reaches(system_id, failed)
    reason = f"Node operation '{status}' timed out after 0.005 minutes."
    assert machine["error_description"] == reason
    assert ("ERROR", "Marking node failed", reason) in await events_of(wire, system_id)


async def test_fails_a_machine_whose_bmc_does_not_obey(maas: Maas, power: StubPower) -> None:
    _, wire = maas
    power.failing.add("lab-n01")
    system_id = await wire.create("lab-n01", MAC)
    await wire.op(f"machines/{system_id}/", "commission")
    machine = await wire.reaches(system_id, "Failed commissioning")
    assert machine["power_state"] == "error"
    assert ("ERROR", "Failed to power on node", "the BMC does not answer") in await events_of(wire, system_id)
    assert await wire.get(f"machines/{system_id}/", op="query_power_state") == {"state": "error"}


async def test_two_who_deploy_one_machine_at_once_get_one_machine(imaginary: Maas) -> None:
    _, wire = imaginary
    system_id = await ready(wire)
    path = f"machines/{system_id}/"
    answers = await asyncio.gather(*(wire.call("POST", path, {"op": "deploy"}, {}) for _ in range(4)))
    assert sorted(one.status for one in answers) == [200, 409, 409, 409]


async def test_counts_what_was_asked(maas: Maas) -> None:
    server, wire = maas
    await wire.get("machines/")
    await wire.get("machines/", op="is_registered", mac_address=MAC)
    assert dict(server.request_log) == {
        "GET /MAAS/api/2.0/machines/": 1,
        "GET /MAAS/api/2.0/machines/?op=is_registered": 1,
    }
    server.forget_requests()
    assert not server.request_log


async def test_locks_out_a_client_whose_clock_is_behind(maas: Maas) -> None:
    _, wire = maas
    assert wire.user is not None
    late = sign(wire.user.api_key, oauth_timestamp="1000000000")
    got = await wire.call("GET", "machines/", headers={"Authorization": late})
    assert got.status == 401
    assert "Expired timestamp" in got.body


async def test_secrets_stay_out_of_what_people_print(maas: Maas) -> None:
    server, wire = maas
    system_id = await wire.create("lab-n01", MAC, power_parameters_power_pass="hush-hush")
    assert "hush-hush" not in repr(server.machines[system_id])
    assert wire.user is not None
    assert wire.user.api_key not in repr(wire.user)
    assert "hush-hush" not in repr(dataclasses.replace(wire.user, password="hush-hush"))
