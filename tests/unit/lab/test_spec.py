"""The address plan: site files are written against it, so it may not move."""

from __future__ import annotations

import pytest

from lab.errors import BadRequest
from lab.spec import LabNet, LabPaths, RackKind, node_spec, rack_specs


def test_the_first_nodes_stand_where_the_site_files_say() -> None:
    node = node_spec(LabNet(), RackKind.NAMESPACE, 3)
    assert (node.name, node.serial) == ("lab-n03", "LAB-N03")
    assert (node.bmc_host, node.bmc_port, node.address) == ("127.77.1.3", 623, "10.77.1.3")
    assert node.mac == "52:54:00:77:01:03"
    real = node_spec(LabNet(), RackKind.REAL, 1)
    assert (real.name, real.serial, real.mac) == ("lab-real-n01", "LAB-R01", "52:54:00:77:02:01")
    assert (real.bmc_host, real.address, real.ssh_port) == ("127.77.2.1", "127.77.3.1", 22)
    assert LabNet().maas_url == "http://127.77.0.2:5240/MAAS"


def test_every_address_of_a_big_lab_is_its_own() -> None:
    net = LabNet()
    sizes = {RackKind.NAMESPACE: 1200, RackKind.REAL: 250, RackKind.LIGHT: 4000}
    specs = [spec for rack, count in sizes.items() for spec in rack_specs(net, rack, count)]
    for field in ("name", "serial", "mac", "bmc_host", "address", "link"):
        values = [getattr(spec, field) for spec in specs]
        assert len(set(values)) == len(values), field
    assert all(len(spec.link) <= 15 for spec in specs)


def test_nodes_beyond_the_first_block_continue_in_the_fourth_subnet() -> None:
    assert node_spec(LabNet(), RackKind.NAMESPACE, 251).bmc_host == "127.77.4.1"


def test_a_rack_without_room_says_so() -> None:
    with pytest.raises(BadRequest, match="no room for node number 251"):
        rack_specs(LabNet(), RackKind.REAL, 251)


def test_a_second_lab_shares_no_address_name_or_bridge_with_the_first() -> None:
    one, other = LabNet(77), LabNet.from_environment({"MUSTER_LAB_NET": "127.78"})
    assert (one.bridge, other.bridge) == ("labbr0", "labbr78")
    assert one.cgroup != other.cgroup
    assert one.subnet == "10.77.0.0/16"
    assert other.subnet == "10.78.0.0/16"


@pytest.mark.parametrize("text", ["128.77", "127", "127.0", "127.255", "127.77.1", "127.x"])
def test_a_net_that_is_none_is_refused(text: str) -> None:
    with pytest.raises(BadRequest, match="no net of the form"):
        LabNet.from_environment({"MUSTER_LAB_NET": text})


def test_state_follows_muster_state() -> None:
    assert (
        str(LabPaths.from_environment({"MUSTER_STATE": "/srv/muster"}).socket)
        == "/srv/muster/lab/control.sock"
    )
