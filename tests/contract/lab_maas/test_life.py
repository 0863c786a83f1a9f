"""A machine's life through the API and the boot service."""

from __future__ import annotations

from typing import Any

import pytest

from lab.maas import MaasServer, StubPower
from tests.contract.lab_maas.wire import Wire, b64

MAC = "02:4c:41:42:00:01"
Maas = tuple[MaasServer, Wire]


async def told(wire: Wire, intent: str) -> dict[str, Any]:
    found = await wire.boot(MAC)
    assert found["intent"] == intent
    return found


async def commissioned(wire: Wire) -> str:
    system_id = await wire.create("lab-n01", MAC)
    await wire.op(f"machines/{system_id}/", "commission", {"testing_scripts": "none"})
    boot = await told(wire, "commission")
    assert (await wire.report(MAC, boot["token"], "commissioning", "started")).status == 200
    assert (await wire.report(MAC, boot["token"], "commissioning", "finished")).body["next"] == "poweroff"
    await wire.reaches(system_id, "Ready")
    return system_id


async def installing(wire: Wire) -> tuple[str, dict[str, Any]]:
    system_id = await commissioned(wire)
    await wire.op("machines/", "allocate", {"system_id": system_id})
    await wire.op(f"machines/{system_id}/", "deploy", {"distro_series": "custom/debian-12"})
    return system_id, await told(wire, "install")


async def deployed(wire: Wire) -> str:
    system_id, boot = await installing(wire)
    await wire.report(MAC, boot["token"], "installation", "started")
    done = await wire.report(MAC, boot["token"], "installation", "finished")
    assert done.body["next"] == "reboot"
    boot = await told(wire, "local")
    await wire.report(MAC, boot["token"], "boot", "finished", address="10.77.1.1")
    await wire.reaches(system_id, "Deployed")
    return system_id


async def test_goes_from_new_to_deployed_and_back(maas: Maas, power: StubPower) -> None:
    _, wire = maas
    system_id = await deployed(wire)
    machine = await wire.get(f"machines/{system_id}/")
    assert machine["interface_set"][0]["links"][0]["ip_address"] == "10.77.1.1"
    assert machine["osystem"] == "custom"
    assert machine["distro_series"] == "debian-12"
    await wire.op(f"machines/{system_id}/", "release", {"erase": "true", "quick_erase": "true"})
    freed = await wire.reaches(system_id, "Ready")
    assert freed["owner"] is None
    assert freed["power_state"] == "off"
    assert [call for call, _ in power.calls].count("on-pxe") == 2
    assert power.calls[-1] == ("off", "lab-n01")


async def test_tells_why_an_installation_failed(maas: Maas) -> None:
    _, wire = maas
    system_id, boot = await installing(wire)
    log = {"name": "/tmp/install.log", "exit_status": 1, "stdout": b64("no space left on device\n")}
    await wire.report(MAC, boot["token"], "installation", "failed", message="curthooks", results=[log])
    machine = await wire.reaches(system_id, "Failed deployment")
    assert machine["error_description"].startswith("Installation failed")
    events = await wire.get("events/", op="query", id=system_id)
    assert ("Node installation failure", "'curtin' curthooks") in [
        (one["type"], one["description"]) for one in events["events"]
    ]
    found = await wire.get(f"nodes/{system_id}/results/", type="installation", include_output="true")
    assert found[0]["results"][0]["output"] == log["stdout"]


async def test_refuses_a_token_of_an_earlier_boot(maas: Maas) -> None:
    _, wire = maas
    _, boot = await installing(wire)
    await told(wire, "install")
    late = await wire.report(MAC, boot["token"], "installation", "finished")
    assert late.status == 403


async def test_enlists_a_machine_that_it_does_not_know(maas: Maas) -> None:
    _, wire = maas
    boot = await told(wire, "enlist")
    assert (await wire.report(MAC, boot["token"], "enlistment", "finished", message="found")).status == 200
    machines = await wire.get("machines/")
    assert [(one["hostname"], one["status_name"]) for one in machines] == [("found", "New")]


@pytest.mark.parametrize("script_exit", [0, 1])
async def test_commissioning_follows_the_scripts(maas: Maas, script_exit: int) -> None:
    _, wire = maas
    system_id = await wire.create("lab-n01", MAC)
    await wire.op(f"machines/{system_id}/", "commission", {"testing_scripts": "none"})
    boot = await told(wire, "commission")
    names = [one["name"] for one in boot["scripts"]]
    assert "50-maas-01-commissioning" in names
    result = {"name": names[0], "exit_status": script_exit, "stdout": b64("said\n")}
    await wire.report(MAC, boot["token"], "commissioning", "finished", results=[result])
    await wire.reaches(system_id, "Failed commissioning" if script_exit else "Ready")


async def test_imaginary_machines_do_their_part_by_themselves(imaginary: Maas) -> None:
    _, wire = imaginary
    system_id = await wire.create("lab-n01", MAC)
    await wire.op(f"machines/{system_id}/", "commission")
    await wire.reaches(system_id, "Ready")
    await wire.op(f"machines/{system_id}/", "deploy")
    await wire.reaches(system_id, "Deployed")
    await wire.op(f"machines/{system_id}/", "release")
    await wire.reaches(system_id, "Ready")
