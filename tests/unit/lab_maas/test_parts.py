"""Disks, addresses, inventory, images, signatures and constraints, without a server."""

from __future__ import annotations

import base64
import json

import pytest

from lab.maas import BootAssets, Intent, User
from lab.maas.api import filters
from lab.maas.api.form import Form
from lab.maas.api.oauth import Keys
from lab.maas.boot.ipxe import netboot_script
from lab.maas.errors import Refusal
from lab.maas.life import deploy, inventory, network, scripts, storage
from lab.maas.life.conductor import Conductor
from lab.maas.life.deploy import DeployOrder
from lab.maas.life.scripts import ReportedResult
from lab.maas.model.machine import Machine
from lab.maas.model.region import BootResource, ImageFile
from lab.maas.model.status import Status
from tests.unit.lab_maas.conftest import add


def commission(ctl: Conductor, machine: Machine, report: object | None = None) -> None:
    made = scripts.commissioning_set(ctl, machine, skip_bmc_config=False)
    if report is not None:
        text = base64.b64encode(json.dumps(report).encode()).decode()
        told = ReportedResult("50-maas-01-commissioning", 0, text)
        scripts.write(ctl, machine, made, [told])
    inventory.apply(ctl, machine, made)
    machine.status = Status.READY


def test_takes_the_inventory_that_the_machine_reports(ctl: Conductor, machine: Machine) -> None:
    thread = {"id": 0}
    report = {
        "resources": {
            "cpu": {"sockets": [{"name": "Lab CPU", "cores": [{"threads": [thread, thread]}] * 4}]},
            "memory": {"total": 2048 * 1024 * 1024},
            "storage": {
                "disks": [
                    {"id": "sda", "size": 10**12, "model": "Disk", "serial": "D1"},
                    {"id": "sr0", "size": 10**6, "read_only": True},
                ]
            },
            "network": {
                "cards": [{"vendor": "V", "ports": [{"id": "ens1", "address": "02:4C:41:42:09:01"}]}]
            },
            "system": {
                "serial": "LAB-0001",
                "uuid": "u",
                "vendor": "Lab",
                "motherboard": {"serial": "B1"},
            },
        }
    }
    commission(ctl, machine, report)
    assert (machine.facts.cores, machine.facts.memory, machine.facts.uuid) == (8, 2048, "u")
    assert machine.facts.info["system_serial"] == "LAB-0001"
    assert machine.facts.info["mainboard_serial"] == "B1"
    assert [(one.name, one.serial) for one in machine.disks] == [("sda", "D1")]
    assert machine.interfaces[-1].mac == "02:4c:41:42:09:01"
    assert machine.interfaces[0].links[0].mode == "dhcp"


@pytest.mark.parametrize("report", [None, [], {"resources": 1}])
def test_takes_the_labs_profile_without_a_report(
    ctl: Conductor, machine: Machine, report: object | None
) -> None:
    commission(ctl, machine, report)
    assert machine.facts.cores == ctl.config.hardware.cores
    assert machine.facts.info["system_serial"] == "LAB-lab-n01"


def test_layouts_put_one_root_on_the_disks(ctl: Conductor, machine: Machine) -> None:
    commission(ctl, machine)
    storage.set_layout(ctl, machine, "lvm")
    assert [one.name for one in machine.disks] == ["nvme0n1", "nvme1n1", "vgroot-lvroot"]
    assert storage.root_is_mounted(machine)
    storage.set_layout(ctl, machine, "blank")
    assert not storage.root_is_mounted(machine)
    storage.set_layout(ctl, machine, "flat")
    assert storage.root_is_mounted(machine)
    machine.status = Status.DEPLOYED
    with pytest.raises(Refusal):
        storage.set_layout(ctl, machine, "flat")


def test_addresses_are_given_once(ctl: Conductor, machine: Machine) -> None:
    other = add(ctl, "lab-n02", "02:4c:41:42:00:02")
    for one in (machine, other):
        commission(ctl, one)
        network.link_subnet(ctl, one.interfaces[0], "AUTO", "1", None)
        network.claim_addresses(ctl.region, one)
    found = [one.interfaces[0].links[0].ip for one in (machine, other)]
    assert found == ["10.77.0.3", "10.77.0.4"]
    with pytest.raises(Refusal) as caught:
        network.link_subnet(ctl, other.interfaces[0], "static", "1", "10.77.0.3")
    assert caught.value.body == {"ip_address": ["IP address is already in use."]}
    network.drop_addresses(machine)
    network.link_subnet(ctl, other.interfaces[0], "static", "1", "10.77.0.3")


@pytest.mark.parametrize(
    ("mode", "subnet", "ip", "field"),
    [
        ("sideways", "1", None, "mode"),
        ("auto", "9", None, "subnet"),
        ("auto", None, None, "subnet"),
        ("static", "1", "10.99.0.1", "ip_address"),
        ("static", "1", "plum", "ip_address"),
    ],
)
def test_refuses_links_that_cannot_be(
    ctl: Conductor, machine: Machine, mode: str, subnet: str | None, ip: str | None, field: str
) -> None:
    commission(ctl, machine)
    with pytest.raises(Refusal) as caught:
        network.link_subnet(ctl, machine.interfaces[0], mode, subnet, ip)
    assert isinstance(caught.value.body, dict)
    assert list(caught.value.body) == [field]


def test_a_deployed_machines_own_address_is_believed(ctl: Conductor, machine: Machine) -> None:
    commission(ctl, machine)
    network.learn_address(ctl.region, machine, "10.77.1.1")
    port = machine.interfaces[0]
    assert (port.discovered, port.links[0].ip) == ("10.77.1.1", "10.77.1.1")


@pytest.mark.parametrize(
    ("series", "osystem", "found"),
    [
        ("", "", "ubuntu/noble"),
        ("jammy", "", "ubuntu/jammy"),
        ("ubuntu/jammy", "", "ubuntu/jammy"),
        ("debian-12", "custom", "custom/debian-12"),
        ("custom/debian-12", "", "custom/debian-12"),
        ("debian-12", "", "custom/debian-12"),
    ],
)
def test_finds_the_image_by_any_of_its_names(ctl: Conductor, series: str, osystem: str, found: str) -> None:
    assert deploy.choose_image(ctl, DeployOrder(series, osystem)).name == found


def test_an_image_that_has_not_arrived_cannot_be_deployed(ctl: Conductor) -> None:
    file = ImageFile(1, "tgz", "abc", 10)
    ctl.region.images[9] = BootResource(9, "custom/new", "amd64/generic", uploaded=True, file=file)
    with pytest.raises(Refusal, match="is not a valid distro_series"):
        deploy.choose_image(ctl, DeployOrder("custom/new"))


def test_deployment_needs_a_network_and_a_root(ctl: Conductor, machine: Machine) -> None:
    commission(ctl, machine)
    storage.set_layout(ctl, machine, "blank")
    with pytest.raises(Refusal, match="Mount the root"):
        deploy.begin(ctl, machine, "admin", DeployOrder())
    machine.interfaces[0].links = []
    with pytest.raises(Refusal, match="must be configured to use a network"):
        deploy.begin(ctl, machine, "admin", DeployOrder())
    assert (machine.status, machine.owner) == (Status.READY, None)


KEY = User(api_key="consumer:token:secret")


def header(**changes: str) -> str:
    parts = {
        "oauth_consumer_key": "consumer",
        "oauth_token": "token",
        "oauth_signature": "%26secret",
        "oauth_signature_method": "PLAINTEXT",
        "oauth_timestamp": "1000",
        "oauth_nonce": "n",
        **changes,
    }
    return "OAuth " + ", ".join(f'{name}="{value}"' for name, value in parts.items())


@pytest.mark.parametrize("signature", ["%26secret", "&secret", "%2526secret"])
def test_knows_who_signed_however_the_secret_is_quoted(signature: str) -> None:
    assert Keys([KEY]).user_of(header(oauth_signature=signature), 1000.0) is KEY


@pytest.mark.parametrize("given", [None, "", "Basic abc", 'OAuth oauth_token="token"'])
def test_takes_the_unsigned_for_nobody(given: str | None) -> None:
    assert Keys([KEY]).user_of(given, 1000.0) is None


def test_a_nonce_is_good_once_and_a_stamp_for_five_minutes() -> None:
    keys = Keys([KEY])
    keys.user_of(header(), 1300.0)
    with pytest.raises(Refusal, match="Nonce already used: n"):
        keys.user_of(header(), 1300.0)
    with pytest.raises(Refusal, match="Expired timestamp"):
        keys.user_of(header(oauth_nonce="m"), 1301.0)
    assert keys.user_of(header(oauth_nonce="o"), 10.0) is KEY


def chosen(ctl: Conductor, *pairs: tuple[str, str]) -> list[str]:
    return [one.hostname for one in filters.chosen(ctl.region, filters.list_tests(ctl.region, Form(pairs)))]


def test_lists_what_meets_every_constraint(ctl: Conductor, machine: Machine) -> None:
    other = add(ctl, "lab-n02", "02:4c:41:42:00:02")
    other.status = Status.READY
    assert chosen(ctl) == ["lab-n01", "lab-n02"]
    assert chosen(ctl, ("status", "ready"), ("zone", "default")) == ["lab-n02"]
    assert chosen(ctl, ("id", machine.system_id), ("id", other.system_id)) == ["lab-n01", "lab-n02"]
    assert chosen(ctl, ("mac_address", "02:4C:41:42:00:02")) == ["lab-n02"]
    assert chosen(ctl, ("not_in_pool", "default")) == []
    with pytest.raises(Refusal) as caught:
        chosen(ctl, ("page", "1"), ("pool", "absent"))
    assert caught.value.body == {
        "page": ["No such constraint."],
        "pool": ["No such pool(s): absent."],
    }


WORDS = {"mac": "02:4c:41:42:00:01", "token": "t", "system_id": "4xk7ra", "hostname": "lab-n01", "image": "i"}
ASSETS = BootAssets(
    "http://there/kernel",
    "http://there/initrd",
    "quiet mac={mac} token={token} for={intent} {unknown}",
    {Intent.RESCUE: "http://there/rescue"},
)


def test_ipxe_loads_the_kernel_for_what_maas_wants() -> None:
    script = netboot_script(ASSETS, Intent.INSTALL, WORDS)
    assert script.startswith("#!ipxe\n")
    assert "mac=02:4c:41:42:00:01 token=t for=install {unknown}" in script
    assert "initrd http://there/initrd" in script
    assert "initrd http://there/rescue" in netboot_script(ASSETS, Intent.RESCUE, WORDS)


def test_ipxe_leaves_the_disk_and_the_idle_alone() -> None:
    assert netboot_script(ASSETS, Intent.LOCAL, WORDS).endswith("exit\n")
    assert "poweroff" in netboot_script(ASSETS, Intent.NOTHING, WORDS)
    assert "no boot assets" in netboot_script(None, Intent.INSTALL, WORDS)
