"""The boot service's manners, uploads, keys, and a rack of five hundred machines."""

from __future__ import annotations

import dataclasses
import hashlib
import time
from pathlib import Path
from typing import Any

import pytest

from lab.maas import BootAssets, MaasConfig, MaasServer, User
from tests.contract.lab_maas.conftest import QUICK, Start
from tests.contract.lab_maas.wire import Got, Wire, until

MAC = "02:4c:41:42:00:01"
KEY = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAILab lab"
Maas = tuple[MaasServer, Wire]


async def commissioning(wire: Wire, **order: str) -> tuple[str, str]:
    system_id = await wire.create("lab-n01", MAC)
    wanted = {"testing_scripts": "none", **order}
    await wire.op(f"machines/{system_id}/", "commission", wanted)
    return system_id, (await wire.boot(MAC))["token"]


async def ready(wire: Wire) -> str:
    system_id, token = await commissioning(wire)
    await wire.report(MAC, token, "commissioning", "finished")
    return system_id


@pytest.mark.parametrize(
    ("report", "status"),
    [
        ({"phase": "commissioning", "event": "finished"}, 403),
        ({"token": "t", "phase": "dancing", "event": "finished"}, 400),
        ({"token": "t", "phase": "boot"}, 400),
        ({"token": "t", "phase": "boot", "event": "started", "results": [{"name": "x"}]}, 400),
        (["no", "report"], 400),
    ],
)
async def test_refuses_what_is_no_report(maas: Maas, report: Any, status: int) -> None:
    _, wire = maas
    await commissioning(wire)
    report = {"token": "", **report} if isinstance(report, dict) else report
    got = await wire.call("POST", f"{wire.root}/boot/{MAC}/report", json=report)
    assert got.status == status, got


async def test_refuses_a_phase_that_the_machine_is_not_in(maas: Maas) -> None:
    _, wire = maas
    _, token = await commissioning(wire)
    got = await wire.report(MAC, token, "installation", "finished")
    assert got.status == 409
    assert got.body == {"error": "a machine that is Commissioning has no installation to report"}


async def test_refuses_a_machine_that_nobody_knows(maas: Maas) -> None:
    _, wire = maas
    assert (await wire.report(MAC, "t", "boot", "finished")).status == 404
    got = await wire.call("GET", f"{wire.root}/boot/not-a-mac")
    assert got.status == 400


async def test_the_installed_system_keeps_its_token_until_it_is_replaced(maas: Maas) -> None:
    _, wire = maas
    system_id = await ready(wire)
    await wire.op(f"machines/{system_id}/", "deploy")
    token = (await wire.boot(MAC))["token"]
    await wire.report(MAC, token, "installation", "finished")
    for address in ("10.77.1.1", "10.77.1.9"):
        assert (await wire.boot(MAC))["intent"] == "local"
        assert (await wire.report(MAC, token, "boot", "finished", address=address)).status == 200
        port = (await wire.get(f"machines/{system_id}/"))["boot_interface"]
        assert port["links"][0]["ip_address"] == address
        assert port["discovered"][0]["ip_address"] == address
    await wire.op(f"machines/{system_id}/", "release")
    await wire.reaches(system_id, "Ready")
    await wire.op(f"machines/{system_id}/", "deploy")
    assert (await wire.report(MAC, token, "boot", "finished")).status == 403


async def test_gives_the_owners_keys_and_user_data_to_the_installer(maas: Maas) -> None:
    _, wire = maas
    await wire.call("POST", "account/prefs/sshkeys/", None, {"key": KEY})
    system_id = await ready(wire)
    await wire.op(f"machines/{system_id}/", "deploy", {"user_data": "aGVsbG8="})
    told = await wire.boot(MAC)
    assert (told["ssh_keys"], told["user_data"], told["image"]) == ([KEY], "aGVsbG8=", "ubuntu/noble")
    assert told["ephemeral"] is False


async def test_an_ephemeral_machine_boots_its_image_every_time(maas: Maas) -> None:
    _, wire = maas
    system_id = await ready(wire)
    await wire.op(f"machines/{system_id}/", "deploy", {"ephemeral_deploy": "true"})
    told = await wire.boot(MAC)
    assert (told["intent"], told["ephemeral"]) == ("install", True)
    await wire.report(MAC, told["token"], "boot", "finished", address="10.77.1.1")
    await wire.reaches(system_id, "Deployed")
    assert (await wire.boot(MAC))["intent"] == "install"


async def test_stays_up_after_commissioning_when_ssh_is_wanted(maas: Maas) -> None:
    _, wire = maas
    system_id, token = await commissioning(wire, enable_ssh="1")
    await until(
        lambda: wire.get(f"machines/{system_id}/"), lambda one: one["power_state"] == "on", "it is on"
    )
    assert (await wire.report(MAC, token, "commissioning", "finished")).body["next"] == "stay"
    machine = await wire.reaches(system_id, "Ready")
    assert machine["power_state"] == "on"


async def test_tests_go_on_in_the_boot_that_commissioned(maas: Maas) -> None:
    _, wire = maas
    system_id, token = await commissioning(wire, testing_scripts="memtester")
    done = await wire.report(MAC, token, "commissioning", "finished")
    assert done.body["next"] == "testing"
    result = {"name": "memtester", "exit_status": 3, "stdout": "", "stderr": ""}
    await wire.report(MAC, token, "testing", "finished", results=[result])
    await wire.reaches(system_id, "Failed testing")


async def test_boots_real_machines_by_ipxe(start: Start) -> None:
    assets = BootAssets("http://there/kernel", "http://there/initrd", "token={token} url={url}")
    _, wire = await start(MaasConfig(delays=QUICK, boot_assets=assets))
    script = await wire.call("GET", f"{wire.root}/ipxe/{MAC}")
    assert script.body.startswith("#!ipxe")
    assert f"url={wire.root}" in script.body
    token = script.body.split("token=")[1].split()[0]
    done = await wire.report(MAC, token, "enlistment", "finished", message="found")
    assert done.body["next"] == "poweroff"


async def upload(wire: Wire, content: bytes, sha256: str) -> tuple[str, Got]:
    form = {
        "name": "custom/mine",
        "architecture": "amd64/generic",
        "sha256": sha256,
        "size": str(len(content)),
    }
    made = await wire.call("POST", "boot-resources/", None, form)
    assert made.status == 201
    (files,) = [one["files"] for one in made.body["sets"].values()]
    path = files["root.tgz"]["upload_uri"].removeprefix("/MAAS/api/2.0/")
    headers = {"Content-Type": "application/octet-stream"}
    for chunk in (content[:7], content[7:]):
        got = await wire.call("PUT", path, data=chunk, headers=headers)
    return made.body["resource_uri"].removeprefix("/MAAS/api/2.0/"), got


async def test_takes_an_image_in_chunks(maas: Maas) -> None:
    _, wire = maas
    content = b"an operating system" * 100
    where, got = await upload(wire, content, hashlib.sha256(content).hexdigest())
    assert got.status == 200
    (held,) = (await wire.get(where))["sets"].values()
    assert held["complete"] is True
    system_id = await ready(wire)
    assert (await wire.op(f"machines/{system_id}/", "deploy", {"distro_series": "custom/mine"}))["osystem"]


async def test_refuses_an_image_that_arrived_changed(maas: Maas) -> None:
    _, wire = maas
    where, got = await upload(wire, b"an operating system", hashlib.sha256(b"another").hexdigest())
    assert got.status == 400
    (held,) = (await wire.get(where))["sets"].values()
    assert held["complete"] is False


async def test_a_plain_user_may_not_touch_what_others_hold(start: Start) -> None:
    plain = User("plain", "plain@lab.invalid", False, "c:t2:s2")
    _, wire = await start(MaasConfig(users=(User(), plain), delays=QUICK, simulate=True))
    system_id = await wire.create("lab-n01", MAC)
    await wire.op(f"machines/{system_id}/", "commission")
    await wire.reaches(system_id, "Ready")
    await wire.op("machines/", "allocate")
    other = wire.as_user(plain)
    for op in ("release", "deploy", "commission", "mark_broken", "power_off"):
        got = await other.call("POST", f"machines/{system_id}/", {"op": op}, {})
        assert (got.status, got.body) == (403, "")
    assert (await other.call("GET", "machines/", {"op": "power_parameters"})).status == 403
    assert await other.status(system_id) == "Allocated"


async def test_five_hundred_machines_are_no_burden(imaginary: Maas) -> None:
    _, wire = imaginary
    for number in range(512):
        third, fourth = divmod(number, 256)
        await wire.create(f"lab-n{number:03}", f"02:4c:41:42:{third:02x}:{fourth:02x}")
    began = time.process_time()  # ours and the server's: both run here
    machines = await wire.get("machines/")
    assert len(machines) == 512
    assert time.process_time() - began < 2.0


async def test_a_lab_that_is_started_again_remembers(start: Start, tmp_path: Path) -> None:
    config = MaasConfig(delays=QUICK, state_file=tmp_path / "maas.json")
    server, wire = await start(config)
    system_id = await ready(wire)
    await wire.op(f"machines/{system_id}/", "deploy")
    token = (await wire.boot(MAC))["token"]
    await server.close()
    _, wire = await start(config)
    assert await wire.status(system_id) == "Deploying"
    assert (await wire.report(MAC, token, "installation", "finished")).status == 200
    assert (await wire.boot(MAC))["intent"] == "local"


async def test_one_that_cannot_listen_leaves_the_others_memory_alone(start: Start, tmp_path: Path) -> None:
    config = MaasConfig(delays=QUICK, state_file=tmp_path / "maas.json")
    server, wire = await start(config)
    await wire.create("lab-n01", MAC)
    await server.close()
    remembered = config.state_file.read_text() if config.state_file else ""
    taken, _ = await start(MaasConfig(delays=QUICK))
    port = int(taken.root.rpartition(":")[2])
    with pytest.raises(OSError, match="address already in use"):
        await start(dataclasses.replace(config, port=port))
    assert config.state_file is not None
    assert config.state_file.read_text() == remembered
