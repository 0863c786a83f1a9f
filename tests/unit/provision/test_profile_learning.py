"""A profile that is learned from good nodes is one that the site's own loader reads, and that they pass."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from benchmarks.recorded_nodes import RecordedNode, load
from health.check import Level
from health.evidence import Evidence
from health.verdict import Answer, verdict
from inventory import site
from inventory.model import Profile
from provision import profile_learning
from provision.cli.commands.profiles import as_yaml

NODES = ("xe9680-h100", "dgx-h100", "hgx-h200")
SITE = """
name: t
maas: {url: "http://127.0.0.1:1/MAAS", key: "file:key"}
ssh: {user: ubuntu, key: "file:ssh"}
credentials: {bmc: {username: admin, password: "file:pw"}}
"""
RACKS = "racks:\n  r1:\n    profile: learned\n    bmc: {credential: bmc}\n    nodes: {}\n"


def evidence(node: RecordedNode, driver: str = "") -> Evidence:
    found = node.evidence()
    if driver:
        items = {
            name: replace(item, text=item.text.replace("570.86.15", driver))
            for name, item in found.items.items()
        }
        found = replace(found, items=items)
    return replace(found, context=replace(found.context, collected_at=node.collected_at))


def loaded(folder: Path, text: str) -> Profile:
    folder.mkdir()
    racks = RACKS.replace(
        "nodes: {}", 'nodes: {r1-n01: {bmc: 10.0.0.1, serial: S1, mac: "52:54:00:00:00:01"}}'
    )
    for name, content in (("site", SITE), ("racks", racks), ("profiles", text)):
        (folder / f"{name}.yaml").write_text(content)
    return site.load(folder).profiles["learned"]


def as_loaded(value: object) -> object:
    return tuple(value) if isinstance(value, list) else value


@pytest.mark.parametrize("name", NODES)
def test_a_learned_profile_goes_through_the_sites_loader_unchanged_and_admits_its_node(
    tmp_path: Path, name: str
) -> None:
    node = load(name)
    found = {"r1-n01": evidence(node), "r1-n02": evidence(node)}
    learned = profile_learning.learn(found, "learned", Profile("bare", vendor=node.profile.vendor))
    assert learned.doubts == ()
    profile = loaded(tmp_path / "site", as_yaml(learned, "r1-n[01-02]"))
    assert profile.limits == {name: as_loaded(value) for name, value in learned.profile.limits.items()}
    assert profile.checks == learned.profile.checks
    judged = verdict(node.evidence(), profile, Level.QUICK, collected_at=node.collected_at)
    assert judged.answer is Answer.YES, judged.summary
    assert {"gpu.count", "gpu.ecc", "gpu.xid", "ib.ports", "host.time"} <= set(profile.checks)
    assert profile.limit("gpu.count") == 8


def test_of_versions_all_are_taken() -> None:
    assert profile_learning._merged("driver.version", (["550.90"], ["570.86"])) == ["550.90", "570.86"]
    assert profile_learning._merged("gpu.vbios", (["a", "b"], ["b"])) == ["a", "b"]


def test_of_least_values_the_least_is_taken() -> None:
    assert profile_learning._merged("host.memory_min_kb", (2048, 1024)) == 1024
    assert profile_learning._merged("nvlink.speed_gbps", (26.5, 26.0)) == 26.0


def test_what_nodes_differ_in_is_left_out_and_named() -> None:
    node = load("xe9680-h100")
    one, two = evidence(node), evidence(node)
    item = two.items["host.swaps"]
    swapped = replace(item, text=item.text + "/dev/sda2 partition 8388604 0 -2\n")
    two = replace(two, items={**two.items, "host.swaps": swapped})
    learned = profile_learning.learn({"r1-n01": one, "r1-n02": two}, "learned", Profile("bare"))
    assert learned.profile.limit("host.swap") is None
    assert learned.left_out["host.swap"] == "the nodes differ: r1-n01 has off; r1-n02 has on"


def test_a_node_with_a_fault_is_doubted() -> None:
    node = load("xe9680-h100")
    found = evidence(node)
    item = found.items["gpu.smi"]
    sick = replace(item, text=item.text.replace(
        "Pending                           : No\n        Remapping",
        "Pending                           : Yes\n        Remapping", 1
    ))  # fmt: skip
    assert sick.text != item.text
    found = replace(found, items={**found.items, "gpu.smi": sick})
    learned = profile_learning.learn({"r1-n01": found}, "learned", Profile("bare"))
    assert any("gpu.remap" in doubt for doubt in learned.doubts)
