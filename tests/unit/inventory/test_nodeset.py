"""Node sets: what a selection means, and that a mistake never means nobody or everybody."""

from __future__ import annotations

from pathlib import Path

import pytest

from inventory.errors import EmptySelection, NodeSetSyntax, UnknownGroup, UnknownNode, UnknownRack
from inventory.model import BmcAddress, MaasEndpoint, Node, Profile, Rack, Site, SshAccess
from inventory.nodeset import NodeSets, expand, fold, nearest

POOLS: dict[str, str | None] = {
    "r1-n01": "quarantine",
    "r2-n03": "quarantine",
    "r1-n02": "reliable",
    "r1-n03": None,
}


def rack(name: str, count: int, profile: str) -> Rack:
    """A rack with nodes NAME-n01 upwards."""
    nodes = [f"{name}-n{number:02}" for number in range(1, count + 1)]
    return Rack(name, tuple(Node(node, name, profile, BmcAddress(node, "bmc")) for node in nodes))


@pytest.fixture
def sets() -> NodeSets:
    """Racks r1, r2 (4 nodes each, profile big) and infra (2, small)."""
    racks = (rack("r1", 4, "big"), rack("r2", 4, "big"), rack("infra", 2, "small"))
    profiles = {name: Profile(name) for name in ("big", "small", "unused")}
    maas, ssh = MaasEndpoint("http://maas", "env:K"), SshAccess("ops", "file:k")
    site = Site("hall", Path(), maas, ssh, racks, profiles, {})
    return NodeSets(site, lambda: POOLS)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("r1-n01", "r1-n01"),
        ("r1-n[01-02,04]", "r1-n[01-02,04]"),
        ("@*", "infra-n[01-02],r[1-2]-n[01-04]"),
        ("@r1", "r1-n[01-04]"),
        ("@r[1-2]", "r[1-2]-n[01-04]"),
        ("@rack:r1", "r1-n[01-04]"),
        ("@pool:quarantine", "r1-n01,r2-n03"),
        ("@profile:small", "infra-n[01-02]"),
        ("@r1!r1-n01", "r1-n[02-04]"),
        ("@r1&@pool:quarantine", "r1-n01"),
        ("@r1,@infra", "infra-n[01-02],r1-n[01-04]"),
        ("@* ! @pool:quarantine & @r1", "r1-n[02-04]"),
        ("r1-*", "r1-n[01-04]"),
        ("@*!@pool:spare", "infra-n[01-02],r[1-2]-n[01-04]"),
    ],
)
def test_selects(sets: NodeSets, text: str, expected: str) -> None:
    assert fold(node.name for node in sets.select(text, [], None)) == expected


def test_selectors_intersect(sets: NodeSets) -> None:
    picked = sets.select("r[1-2]-n[01-03]", ["r2", "infra"], "quarantine")
    assert [node.name for node in picked] == ["r2-n03"]


def test_nodes_come_in_the_order_of_the_site_files(sets: NodeSets) -> None:
    assert [node.name for node in sets.select("infra-n01,r1-n02,r1-n01", [], None)] == [
        "r1-n01",
        "r1-n02",
        "infra-n01",
    ]


@pytest.mark.parametrize(
    ("text", "name", "nearest_name"),
    [
        ("r1-n05", "r1-n05", "r1-n04"),
        ("r1-n1", "r1-n1", "r1-n01"),
        ("r1-n[03-06]", "r1-n[05-06]", "r1-n04"),
        ("@r1!r1-n99", "r1-n99", "r1-n04"),
        ("@r1&r1-n99", "r1-n99", "r1-n04"),
        ("r7-*", "r7-*", None),
        ("%", "%", None),
    ],
)
def test_an_unknown_node_is_an_error_even_where_it_would_change_nothing(
    sets: NodeSets, text: str, name: str, nearest_name: str | None
) -> None:
    with pytest.raises(UnknownNode) as caught:
        sets.select(text, [], None)
    assert (caught.value.name, caught.value.nearest) == (name, nearest_name)


@pytest.mark.parametrize(
    ("text", "name", "nearest_name"),
    [
        ("@r9x", "@r9x", None),
        ("@r9", "@r9", "@r2"),
        ("@r[1-3]", "@r3", "@r2"),
        ("@*!@inra", "@inra", "@infra"),
        ("@pool:quarantin", "@pool:quarantin", "@pool:quarantine"),
        ("@pol:quarantine", "@pol:", "@pool:"),
    ],
)
def test_an_unknown_group_is_an_error(sets: NodeSets, text: str, name: str, nearest_name: str | None) -> None:
    with pytest.raises(UnknownGroup) as caught:
        sets.select(text, [], None)
    assert (caught.value.name, caught.value.nearest) == (name, nearest_name)


def test_an_unknown_rack_and_pool_are_errors(sets: NodeSets) -> None:
    with pytest.raises(UnknownRack, match=r"did you mean infra\?"):
        sets.select(None, ["infa"], None)
    with pytest.raises(UnknownGroup, match=r"did you mean reliable\?"):
        sets.select(None, [], "relaible")


@pytest.mark.parametrize(
    "text", ["", " ", "r1-n[01", "r1-n01,", "!@r1", "r1-n01]", "@@rack", "r1-n[0x1]", "r1-n[5-1]"]
)
def test_a_set_that_cannot_be_read_is_an_error(sets: NodeSets, text: str) -> None:
    with pytest.raises(NodeSetSyntax):
        sets.select(text, [], None)


@pytest.mark.parametrize("text", ["r1-n[1-99999999999]", "r[1-9999]-n[1-9999]", "r1-n[1-" + "9" * 400 + "]"])
def test_a_range_that_would_eat_the_memory_is_refused(sets: NodeSets, text: str) -> None:
    with pytest.raises(NodeSetSyntax, match="more than"):
        sets.select(text, [], None)


def test_selecting_nothing_is_an_error(sets: NodeSets) -> None:
    with pytest.raises(EmptySelection, match=r"all of them is @\*"):
        sets.select(None, [], None)
    with pytest.raises(EmptySelection, match="--nodes r1-n01 and --rack r2"):
        sets.select("r1-n01", ["r2"], None)
    with pytest.raises(EmptySelection):
        sets.select("@pool:retired", [], None)


def test_a_pool_is_asked_at_the_moment_of_selecting(sets: NodeSets) -> None:
    assert len(sets.select("@pool:reliable", [], None)) == 1
    POOLS["r2-n04"] = "reliable"
    try:
        assert len(sets.select("@pool:reliable", [], None)) == 2
    finally:
        del POOLS["r2-n04"]


def test_a_pool_s_nodes_that_the_files_no_longer_describe_are_not_selected(sets: NodeSets) -> None:
    POOLS["gone-n01"] = "quarantine"
    POOLS["gone-n02"] = "retired"
    try:
        assert len(sets.select("@pool:quarantine", [], None)) == 2
        assert len(sets.select(None, [], "quarantine")) == 2
        for nodes, pool in (("@pool:retired", None), (None, "retired")):
            with pytest.raises(EmptySelection):
                sets.select(nodes, [], pool)
    finally:
        del POOLS["gone-n01"], POOLS["gone-n02"]


def test_folds_and_expands() -> None:
    assert fold(["n3", "n1", "n2", "n1"]) == "n[1-3]"
    assert fold([]) == ""
    assert fold(["r1-n01", "r1-n02", "login"]) == "login,r1-n[01-02]"
    assert expand("n[08-10]") == ("n08", "n09", "n10")
    with pytest.raises(NodeSetSyntax):
        expand("n[1-")


def test_nearest_is_silent_where_nothing_is_near() -> None:
    assert nearest("deployedd", ["deployed", "reachable"]) == "deployed"
    assert nearest("zzz", ["deployed"]) is None
