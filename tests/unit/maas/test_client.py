"""What goes over the wire for each call, and what comes back of it."""

from __future__ import annotations

import base64
import json
from datetime import UTC, datetime

import pytest
from aiohttp import web

from provision.maas.client import MaasClient
from provision.maas.errors import MaasBadAnswer, MaasRejected
from provision.maas.model import (
    Deployment,
    LinkMode,
    MachineStatus,
    NewMachine,
    ResultKind,
    StopMode,
)

API = "/MAAS/api/2.0/"


async def test_reads_a_machine(maas, scripted, body):
    scripted.say(web.json_response(body()))
    found = await maas.machine("abc123")
    assert found.status is MachineStatus.READY
    assert found.macs == ("02:00:00:00:71:02", "02:00:00:00:71:01")  # the one that boots comes first
    assert found.addresses == ("10.71.0.9",)
    assert (found.pool, found.zone, found.tags) == ("default", "row-b", ("gpu",))
    assert found.serial == "CH-0071"
    assert scripted.seen[0].path == API + "machines/abc123/"


async def test_an_unknown_status_survives(maas, scripted, body):
    scripted.say(web.json_response(body(status=77, status_name="Levitating")))
    found = await maas.machine("abc123")
    assert (found.status, found.status_name) == (77, "Levitating")
    assert not found.failed
    assert not found.in_transition


async def test_the_few_fields_of_an_enlisted_machine_are_enough(maas, scripted):
    few = {"system_id": "xy", "hostname": "r7-n02", "status": 0, "status_name": "New", "status_message": None}
    scripted.say(web.json_response(few))
    found = await maas.machine("xy")
    assert (found.macs, found.addresses, found.pool, found.power_state) == ((), (), "", "unknown")


async def test_many_machines_are_asked_for_in_batches(maas, scripted, body):
    scripted.say(web.json_response([body()]))
    ids = [f"id{number}" for number in range(130)]
    assert len(await maas.machines(ids=ids, pool="default")) == 3
    assert [len(seen.query["id"]) for seen in scripted.seen] == [64, 64, 2]
    assert [id_ for seen in scripted.seen for id_ in seen.query["id"]] == ids
    assert all(seen.query["pool"] == ["default"] for seen in scripted.seen)


async def test_no_ids_asks_nothing(maas, scripted):
    scripted.say(web.json_response([]))
    assert await maas.machines(ids=[]) == ()
    assert scripted.seen == []


async def test_finds_by_mac_and_refuses_to_choose_between_two(maas, scripted, body):
    scripted.say(web.json_response([body()]), web.json_response([]), web.json_response([body(), body()]))
    found = await maas.find(mac="02:00:00:00:71:02")
    assert found is not None
    assert scripted.seen[0].query == {"mac_address": ["02:00:00:00:71:02"]}
    assert await maas.find(hostname="r7-n01") is None
    with pytest.raises(MaasBadAnswer, match="2 machines match"):
        await maas.find(hostname="r7-n01")


async def test_enlists_without_commissioning(maas, scripted, body):
    scripted.say(web.json_response(body(status=0, status_name="New")))
    power = {"power_address": "10.9.0.1", "power_pass": "hush"}
    new = NewMachine("r7-n01", ("02:00:00:00:71:01", "02:00:00:00:71:02"), power=power)
    await maas.create(new)
    form = scripted.seen[0].form
    assert form["commission"] == ["false"]
    assert form["mac_addresses"] == ["02:00:00:00:71:01", "02:00:00:00:71:02"]
    assert json.loads(form["power_parameters"][0]) == power
    assert "description" not in form
    assert "hush" not in repr(new)


CUSTOM = Deployment("custom", "debian-12", user_data=b"#cloud-config\n", ephemeral=True)

CALLS = {
    "commission": (
        lambda m: m.commission("abc123"),
        {"enable_ssh": ["0"], "skip_bmc_config": ["1"], "testing_scripts": ["none"]},
    ),
    "deploy": (
        lambda m: m.deploy("abc123", CUSTOM),
        {
            "osystem": ["custom"],
            "distro_series": ["debian-12"],
            "user_data": [base64.b64encode(b"#cloud-config\n").decode()],
            "ephemeral_deploy": ["true"],
        },
    ),
    "release": (
        lambda m: m.release("abc123", erase=True, quick_erase=True, comment="run 4"),
        {"erase": ["true"], "secure_erase": ["false"], "quick_erase": ["true"], "comment": ["run 4"]},
    ),
    "abort": (lambda m: m.abort("abc123"), {}),
    "mark_broken": (lambda m: m.mark_broken("abc123", comment="GPU 3"), {"comment": ["GPU 3"]}),
    "mark_fixed": (lambda m: m.mark_fixed("abc123"), {}),
    "lock": (lambda m: m.lock("abc123"), {}),
    "unlock": (lambda m: m.unlock("abc123"), {}),
    "rescue_mode": (lambda m: m.rescue_mode("abc123"), {}),
    "exit_rescue_mode": (lambda m: m.exit_rescue_mode("abc123"), {}),
    "test": (
        lambda m: m.test("abc123", testing_scripts=["memory", "disk"]),
        {"testing_scripts": ["memory,disk"]},
    ),
    "override_failed_testing": (
        lambda m: m.override_failed_testing("abc123", comment="known"),
        {"comment": ["known"]},
    ),
    "set_workload_annotations": (
        lambda m: m.annotate("abc123", run="42", old=""),
        {"run": ["42"], "old": [""]},
    ),
    "power_on": (lambda m: m.power_on("abc123"), {}),
    "power_off": (lambda m: m.power_off("abc123", stop_mode=StopMode.SOFT), {"stop_mode": ["soft"]}),
}  # fmt: skip


@pytest.mark.parametrize("op", CALLS)
async def test_an_operation_sends_its_form(maas, scripted, body, op):
    call, form = CALLS[op]
    scripted.say(web.json_response(body()))
    assert (await call(maas)).hostname == "r7-n01"
    (seen,) = scripted.seen
    assert (seen.method, seen.path, seen.query) == ("POST", API + "machines/abc123/", {"op": [op]})
    assert seen.form == form
    assert seen.headers["Content-Type"] == "application/x-www-form-urlencoded"


async def test_allocates_by_system_id_and_nothing_looser(maas, scripted, body):
    scripted.say(web.json_response(body(status=10, status_name="Allocated")))
    await maas.allocate("abc123", agent_name="muster", comment="run 4")
    (seen,) = scripted.seen
    assert seen.path == API + "machines/"
    assert seen.form == {"system_id": ["abc123"], "agent_name": ["muster"], "comment": ["run 4"]}


async def test_updates_and_deletes(maas, scripted, body):
    scripted.say(web.json_response(body()), web.Response(status=204))
    await maas.update("abc123", pool="spare", power_parameters_power_address="10.9.0.2")
    await maas.delete("abc123")
    put, delete = scripted.seen
    assert (put.method, put.form["pool"]) == ("PUT", ["spare"])
    assert put.form["power_parameters_power_address"] == ["10.9.0.2"]
    assert delete.method == "DELETE"


async def test_a_tag_that_another_run_just_made_is_no_error(maas, scripted):
    exists = web.json_response({"name": ["Tag with this Name already exists."]}, status=400)
    scripted.say(web.json_response([]), exists)
    await maas.ensure_tag("gpu", comment="has GPUs")
    assert scripted.seen[1].form == {"name": ["gpu"], "comment": ["has GPUs"]}
    scripted.replies = [web.json_response([{"name": "gpu"}])]
    await maas.ensure_tag("gpu")
    assert [seen.method for seen in scripted.seen] == ["GET", "POST", "GET"]
    scripted.replies = [web.json_response([]), web.json_response({"name": ["Invalid tag name."]}, status=400)]
    with pytest.raises(MaasRejected, match="Invalid tag name"):
        await maas.ensure_tag("bad name")


async def test_pools_and_zones_are_made_when_missing(maas, scripted):
    made = web.json_response({"id": 3, "name": "x"})
    scripted.say(web.json_response([{"id": 0, "name": "default"}]), made)
    await maas.ensure_pool("spare")
    scripted.replies = [web.json_response([{"id": 1, "name": "row-b"}])]
    await maas.ensure_zone("row-b")
    assert [(seen.method, seen.path.removeprefix(API)) for seen in scripted.seen] == [
        ("GET", "resourcepools/"),
        ("POST", "resourcepools/"),
        ("GET", "zones/"),
    ]


async def test_tagging_nobody_asks_nothing(maas, scripted):
    scripted.say(web.json_response({"added": 2, "removed": 0}))
    await maas.tag_nodes("gpu")
    await maas.tag_nodes("gpu", add=["abc123", "def456"])
    (seen,) = scripted.seen
    assert (seen.query, seen.form) == ({"op": ["update_nodes"]}, {"add": ["abc123", "def456"]})


async def test_events_come_newest_first_and_since_a_time(maas, scripted):
    def event(number: int, second: int) -> dict[str, object]:
        at = f"Mon, 02 Nov. 2026 08:00:{second:02}"
        return {"id": number, "level": "INFO", "type": "Deploying", "created": at, "node": "abc123"}

    scripted.say(web.json_response({"count": 3, "events": [event(8, 20), event(9, 30), event(7, 10)]}))
    found = await maas.events("abc123", after=6, since=datetime(2026, 11, 2, 8, 0, 15, tzinfo=UTC))
    assert [one.id for one in found] == [9, 8]
    assert scripted.seen[0].query["after"] == ["6"]
    assert scripted.seen[0].query["limit"] == ["1000"]


async def test_script_results_are_decoded_and_the_newest_run_comes_first(maas, scripted):
    def run(set_id: int, **result: object) -> dict[str, object]:
        one = {"id": set_id * 10, "name": "memory", "status": 2, "status_name": "Passed", "exit_status": 0}
        return {"id": set_id, "type_name": "Testing", "results": [one | result]}

    printed = base64.b64encode("bad DIMM A3 \u00e9".encode()).decode()
    disk = {"storage": {"type": "storage", "value": {"name": "nvme1n1", "serial": "X"}}}
    failed = run(5, status=3, status_name="Failed", exit_status=4, output=printed, parameters=disk)
    scripted.say(web.json_response([run(4), failed]))
    newest, older = await maas.results("abc123", ResultKind.TESTING, include_output=True)
    assert (newest.set_id, newest.failed, newest.device) == (5, True, "nvme1n1")
    assert newest.output == "bad DIMM A3 é"
    assert (older.set_id, older.failed, older.output) == (4, False, None)
    assert scripted.seen[0].query == {"type": ["testing"], "include_output": ["true"]}


@pytest.mark.parametrize("state", ["on", "off", "unknown", "error"])
async def test_power_states_are_kept_apart(maas, scripted, state):
    scripted.say(web.json_response({"state": state}))
    assert await maas.query_power_state("abc123") == state


async def test_power_parameters_are_never_shown(maas, scripted):
    raw = {"power_address": "10.9.0.1", "power_pass": "hush", "workaround_flags": ["a", "b"], "k_g": ""}
    scripted.say(web.json_response(raw), web.json_response({"abc123": raw}))
    one = await maas.power_parameters("abc123")
    every = await maas.all_power_parameters()
    assert every == {"abc123": one}
    assert (one.address, one.values["power_pass"]) == ("10.9.0.1", "hush")
    assert one.values["workaround_flags"] == "a,b"
    assert "hush" not in f"{one!r} {one} {every}"


async def test_links_an_interface_and_reads_the_link_back(maas, scripted):
    link = {"id": 9, "mode": "static", "ip_address": "10.71.0.9", "subnet": {"cidr": "10.71.0.0/16"}}
    answer = {"id": 3, "name": "eth0", "links": [link], "vlan": {"id": 5001}}
    scripted.say(web.json_response(answer), web.json_response([answer]))
    linked = await maas.hardware.link_subnet("abc123", 3, LinkMode.STATIC, subnet=1, address="10.71.0.9")
    assert (linked.links[0].address, linked.links[0].subnet) == ("10.71.0.9", "10.71.0.0/16")
    assert linked.vlan_id == 5001
    assert scripted.seen[0].path == API + "nodes/abc123/interfaces/3/"
    assert (await maas.hardware.interfaces("abc123"))[0] == linked


async def test_sets_a_storage_layout(maas, scripted, body):
    scripted.say(web.json_response(body()))
    await maas.hardware.set_storage_layout("abc123", "flat")
    (seen,) = scripted.seen
    assert (seen.query, seen.form) == ({"op": ["set_storage_layout"]}, {"storage_layout": ["flat"]})


async def test_reads_what_maas_holds(maas, scripted):
    scripted.say(web.json_response({"version": "3.7.1", "capabilities": ["authenticate-api"]}))
    assert (await maas.version()).version == "3.7.1"
    scripted.replies = [web.json_response({"username": "bringer", "is_superuser": True})]
    assert (await maas.whoami()).admin
    scripted.replies = [web.json_response([{"id": 2, "name": "debian-12", "type": "Uploaded"}])]
    assert (await maas.images.read())[0].os_image == "custom/debian-12"
    subnet = {"id": 1, "name": "nodes", "cidr": "10.71.0.0/16", "vlan": {"id": 1, "fabric": "f"}}
    scripted.replies = [web.json_response([subnet])]
    assert (await maas.subnets())[0].cidr == "10.71.0.0/16"
    rack = {"system_id": "rk1", "hostname": "rack-b", "service_set": [{"name": "dhcpd", "status": "dead"}]}
    scripted.replies = [web.json_response([rack])]
    assert (await maas.rack_controllers())[0].services == {"dhcpd": "dead"}
    disk = {"id": 4, "name": "nvme0n1", "size": 7, "id_path": "/dev/disk/by-id/x"}
    scripted.replies = [web.json_response([disk])]
    assert (await maas.hardware.block_devices("abc123"))[0].path == "/dev/disk/by-id/x"


def test_the_client_shows_where_it_speaks_and_nothing_more(key):
    assert repr(MaasClient("http://m/MAAS", key)) == "MaasClient(http://m/MAAS/api/2.0/)"
