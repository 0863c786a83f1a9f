"""Faults by name: all reachable, none twice, and a wrong name is put right."""

from __future__ import annotations

from pathlib import Path

import pytest

from lab.bmc.faults import Fault as BmcFault
from lab.errors import BadRequest
from lab.faults import CATALOGUE, Carrier, find_fault
from lab.maas.faults import Fault as MaasFault
from lab.nodes.faults import CURED, DEFAULTS, LIMITS, Cure, NodeFault, NodeFaults

NAMED = (
    "bmc-silent bmc-slow bmc-wrong-password no-lease pxe-loop kernel-panic deploy-fails ssh-dead disk-full "
    "service-failed gpu-missing clock-back dies-in-gate maas-503 maas-down power-ignored sol-dead "
    "mount-missing swap-on stuck-processes kernel-tainted dimm-missing ib-port-down docker-dead "
    "docker-no-nvidia xid sxid gpu-lost gpu-ecc gpu-remap-pending gpu-remap-failed gpu-pcie-width "
    "gpu-throttle nvlink-inactive driver-version driver-mismatch fabric-manager-stopped "
    "fabric-manager-version smi-hangs smi-cut"
)


def test_every_fault_that_operators_are_promised_exists() -> None:
    assert set(NAMED.split()) <= set(CATALOGUE)


def test_every_fault_of_every_part_can_be_reached() -> None:
    reached = {
        (fault.carrier in (Carrier.MAAS, Carrier.MACHINE), fault.inner) for fault in CATALOGUE.values()
    }
    assert {(True, str(fault)) for fault in MaasFault} <= reached
    assert {(False, str(fault)) for fault in BmcFault} <= reached
    assert len(CATALOGUE) == len(NodeFault) + len(BmcFault) + len(MaasFault)


def test_the_same_word_of_two_parts_keeps_two_names() -> None:
    assert find_fault("deploy-fails").carrier is Carrier.NODE
    assert find_fault("maas-deploy-fails").carrier is Carrier.MACHINE


def test_a_wrong_name_is_answered_with_the_nearest() -> None:
    with pytest.raises(BadRequest) as caught:
        find_fault("gpu-mising")
    assert caught.value.follow.startswith("did you mean gpu-missing?")


def test_programs_inside_read_the_faults_in_force(tmp_path: Path) -> None:
    heard: list[NodeFault] = []
    faults = NodeFaults(tmp_path / "share" / "faults")
    faults.on_change = heard.append
    faults.set(NodeFault.GPU_MISSING)
    faults.set(NodeFault.CLOCK_BACK, 12)
    assert (tmp_path / "share" / "faults").read_text() == "gpu-missing 1\nclock-back 12\n"
    faults.clear(NodeFault.GPU_MISSING)
    assert faults.all() == {"clock-back": 12.0}
    faults.clear()
    assert (tmp_path / "share" / "faults").read_text() == ""
    assert heard == [
        NodeFault.GPU_MISSING,
        NodeFault.CLOCK_BACK,
        NodeFault.GPU_MISSING,
        NodeFault.CLOCK_BACK,
    ]


def test_what_cures_a_real_part_takes_its_fault_away_and_no_other(tmp_path: Path) -> None:
    faults = NodeFaults(tmp_path / "faults")
    for fault in (NodeFault.GPU_REMAP_PENDING, NodeFault.GPU_LOST, NodeFault.GPU_REMAP_FAILED):
        faults.set(fault)
    faults.cure(Cure.GPU_RESET)
    assert list(faults.all()) == ["gpu-lost", "gpu-remap-failed"]
    faults.cure(Cure.BOOT)
    assert list(faults.all()) == ["gpu-lost", "gpu-remap-failed"]
    faults.cure(Cure.POWER_CUT)
    assert (tmp_path / "faults").read_text() == "gpu-remap-failed 1\n"


def test_what_a_reset_or_a_boot_cures_a_cut_of_power_cures_too() -> None:
    assert CURED[Cure.GPU_RESET] <= CURED[Cure.BOOT] <= CURED[Cure.POWER_CUT]


def test_no_default_is_beyond_its_limit() -> None:
    assert all(value <= LIMITS[fault] for fault, value in DEFAULTS.items())
