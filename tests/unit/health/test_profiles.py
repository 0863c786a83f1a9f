"""Profiles: learned from a good node, doubtful of a bad one, and of no use for another machine."""

from __future__ import annotations

from dataclasses import replace

import pytest

from benchmarks.mutation import all_faults
from benchmarks.recorded_nodes import load, names
from health.check import Level
from health.evidence import Context
from health.profiles.hardware import product_of
from health.profiles.learn import learn_profile
from health.verdict import Answer, verdict
from inventory.model import Profile

WHOLE = [name for name in names() if name != "lab"]


@pytest.mark.parametrize("name", WHOLE)
def test_a_profile_learned_from_a_good_node_lets_that_node_through(name: str) -> None:
    node = load(name)
    learned = learn_profile(node.evidence(), "learned", like=node.profile)
    assert learned.doubts == ()
    assert learned.left_out == ()
    found = verdict(node.evidence(), learned.profile, Level.BURNIN, collected_at=node.collected_at)
    assert found.answer is Answer.YES, found.summary


@pytest.mark.parametrize("name", WHOLE)
def test_what_is_learned_is_what_is_written_in_the_profile(name: str) -> None:
    node = load(name)
    learned = learn_profile(node.evidence(), "learned").profile
    for limit in (
        "gpu.count", "gpu.model", "gpu.vbios", "gpu.clock_sm_mhz", "driver.version", "nvswitch.count",
        "nvlink.links", "gdr.path", "pcie.acs", "ib.hcas", "ib.rate_gbps", "ib.firmware", "ib.pkey",
        "net.interfaces", "net.bond_members", "host.cpus", "host.numa_nodes", "host.dimms", "host.dimm_gib",
        "host.swap", "host.iommu", "os.releases", "kernel.versions", "kernel.cmdline", "disk.drives",
        "disk.arrays", "disk.mounts",
    ):  # fmt: skip
        assert learned.limit(limit) == node.profile.limit(limit), limit


def test_a_learned_profile_lets_no_fault_through_that_its_teacher_would_not_have() -> None:
    node = load("xe9680-h100")
    taught = replace(node, profile=learn_profile(node.evidence(), "learned", like=node.profile).profile)
    faults = [fault for fault in all_faults(node) if fault.kind in ("part", "xid")][::12]
    answers = {
        fault.name: verdict(
            taught.evidence(fault.change), taught.profile, Level.BURNIN, collected_at=node.collected_at
        ).answer
        for fault in faults
    }
    assert [name for name, answer in answers.items() if answer is Answer.YES] == []


def test_a_profile_learned_without_a_site_says_what_it_left_out() -> None:
    node = load("xe9680-h100")
    learned = learn_profile(node.evidence(), "learned")
    assert {"site.registry", "site.mirror", "gpu.diag"} == {name for name, _ in learned.left_out}
    assert "site.registry" not in learned.profile.checks
    assert "kernel.boot_log" in learned.profile.checks
    found = verdict(node.evidence(), learned.profile, Level.BURNIN, collected_at=node.collected_at)
    assert found.answer is Answer.YES, found.summary


@pytest.mark.parametrize("name", WHOLE)
def test_a_node_that_is_not_well_is_doubted(name: str) -> None:
    node = load(name)
    fault = next(fault for fault in all_faults(node) if fault.name == "row remap pending")
    learned = learn_profile(node.evidence(fault.change), "learned", like=node.profile)
    assert [doubt.check for doubt in learned.doubts] == ["gpu.remap"]


@pytest.mark.parametrize("name", names())
def test_hardware_that_no_profile_knows_is_unknown_and_not_bad(name: str) -> None:
    node = load(name)
    bare = verdict(node.evidence(), Profile("bare"), Level.QUICK, collected_at=node.collected_at)
    assert bare.answer is Answer.UNKNOWN


@pytest.mark.parametrize("name", WHOLE)
def test_a_node_judged_by_the_profile_of_another_machine_is_unknown(name: str) -> None:
    node = load(name)
    assert node.verdict().answer is Answer.YES
    other = replace(node.profile, limits={**node.profile.limits, "host.product": ["Acme Rocket*"]})
    found = verdict(node.evidence(), other, Level.QUICK, context=Context(collected_at=node.collected_at))
    assert found.answer is Answer.UNKNOWN
    assert product_of(node.evidence()) in found.summary
    same = replace(
        node.profile, limits={**node.profile.limits, "host.product": [product_of(node.evidence())]}
    )
    assert verdict(node.evidence(), same, Level.QUICK, collected_at=node.collected_at).answer is Answer.YES
