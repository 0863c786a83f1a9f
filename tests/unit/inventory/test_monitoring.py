"""What Prometheus and launchers read."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from inventory.model import BmcAddress, MaasEndpoint, Node, Pool, Profile, Rack, Site, SshAccess, Stage
from inventory.monitoring import file_sd, hostfile, in_pool, targets, write_atomically
from inventory.records import NodeState


def node(name: str, address: str | None) -> Node:
    """A node of rack r1."""
    return Node(name, "r1", "big", BmcAddress(name, "bmc"), address=address)


@pytest.fixture
def site() -> Site:
    """Five nodes: two plain, one on IPv6, one retired, one without an address."""
    nodes = (
        node("n2", "10.0.0.2"),
        node("n1", "10.0.0.1"),
        node("n3", "fd00::3"),
        node("n4", "10.0.0.4"),
        node("n5", None),
    )
    racks = (Rack("r1", nodes),)
    return Site("s", Path(), MaasEndpoint("", ""), SshAccess("", ""), racks, {"big": Profile("big")}, {})


STATES = {
    "n1": NodeState("n1", stage=Stage.VERIFIED, pool=Pool.RELIABLE),
    "n2": NodeState("n2", stage=Stage.VERIFIED, pool=Pool.RELIABLE),
    "n4": NodeState("n4", pool=Pool.RETIRED),
}


def test_targets_are_all_that_have_an_address_and_are_not_retired(site: Site) -> None:
    found = targets(site, STATES)
    assert [group.targets for group in found] == [("10.0.0.2:9100",), ("10.0.0.1:9100",), ("[fd00::3]:9100",)]
    assert found[1].labels == {
        "node": "n1",
        "rack": "r1",
        "profile": "big",
        "stage": "verified",
        "pool": "reliable",
    }
    assert found[2].labels["pool"] == "none"


def test_an_address_that_maas_gave_is_used_where_the_files_have_none(site: Site) -> None:
    found = targets(site, {"n5": NodeState("n5", address="10.0.0.5")}, port=9400)
    assert found[-1].targets == ("10.0.0.5:9400",)


def test_the_list_is_what_file_sd_wants(site: Site) -> None:
    text = file_sd(targets(site, STATES))
    assert json.loads(text)[0] == {
        "targets": ["10.0.0.2:9100"],
        "labels": {"node": "n2", "rack": "r1", "profile": "big", "stage": "verified", "pool": "reliable"},
    }
    assert file_sd([]) == "[]\n"


def test_a_hostfile_is_one_node_a_line_in_the_order_given(site: Site) -> None:
    nodes = in_pool(site, STATES, Pool.RELIABLE)
    assert hostfile(nodes) == "n2\nn1\n"
    assert hostfile(nodes, slots=8) == "n2 slots=8\nn1 slots=8\n"


def test_a_file_is_replaced_whole_or_not_at_all(tmp_path: Path) -> None:
    path = tmp_path / "new" / "targets.json"
    write_atomically(path, "one")
    assert path.stat().st_mode & 0o777 == 0o644
    with pytest.raises(UnicodeEncodeError):
        write_atomically(path, "two \udcff")
    assert path.read_text() == "one"
    assert [found.name for found in path.parent.iterdir()] == ["targets.json"]
