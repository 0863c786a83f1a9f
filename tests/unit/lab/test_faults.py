"""Faults by name: all reachable, none twice, and a wrong name is put right."""

from __future__ import annotations

from pathlib import Path

import pytest

from lab.bmc.faults import Fault as BmcFault
from lab.errors import BadRequest
from lab.faults import CATALOGUE, Carrier, find_fault
from lab.maas.faults import Fault as MaasFault
from lab.nodes.faults import NodeFault, NodeFaults

NAMED = (
    "bmc-silent bmc-slow bmc-wrong-password no-lease pxe-loop kernel-panic deploy-fails ssh-dead disk-full "
    "service-failed gpu-missing clock-back dies-in-gate maas-503 maas-down power-ignored sol-dead"
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
