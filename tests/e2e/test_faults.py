"""What goes wrong is named: node, stage, cause, evidence, next command; the others get in."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.e2e.conftest import Rack

pytestmark = [pytest.mark.lab, pytest.mark.timeout(600)]

BEFORE_DEPLOY = {
    "lab-n01": ("bmc-silent", "reachable", {"bmc-unreachable"}),
    "lab-n02": ("bmc-wrong-password", "reachable", {"bmc-auth"}),
    "lab-n03": ("no-lease", "commissioned", {"no-dhcp-lease"}),
    "lab-n04": ("pxe-loop", "commissioned", {"pxe-loop"}),
    "lab-n05": ("kernel-panic", "commissioned", {"kernel-panic"}),
    "lab-n06": ("deploy-fails", "deployed", {"deployed-failed"}),
    "lab-n07": ("ssh-dead", "deployed", {"ssh-dead"}),
    "lab-n08": ("bmc-slow", "reachable", {"bmc-unreachable"}),
}
AT_THE_GATE = {
    "lab-n01": ("disk-full", ("configured", "verified"), {"play-failed", "gate-no"}),
    "lab-n02": ("service-failed", ("verified",), {"gate-no"}),
    "lab-n03": ("gpu-missing", ("verified",), {"gate-no"}),
    "lab-n04": ("clock-back", ("configured", "verified"), {"gate-no"}),
    "lab-n05": ("dies-in-gate", ("verified",), {"gate-lost"}),
}


def failed(rack: Rack, node: str) -> dict[str, object]:
    done = rack.invoke("show", "--nodes", node, "--output", "json")
    state: dict[str, object] = json.loads(done.out)["nodes"][0]["state"]
    return state


def test_each_fault_before_the_system_runs_is_named_and_the_healthy_get_in(untouched: Rack) -> None:
    for node, (fault, _, _) in BEFORE_DEPLOY.items():
        untouched.lab("fault", "--nodes", node, "--fault", fault)
    everyone = "lab-n[01-09]"
    done = untouched.invoke("bringup", "--nodes", everyone, "--yes")
    assert done.status == 2, done.err
    assert "admitted      1   lab-n09" in done.err
    for node, (fault, stage, codes) in BEFORE_DEPLOY.items():
        state = failed(untouched, node)
        told = f"{fault}: {state['failed_stage']} {state['reason_code']}: {state['reason']}"
        assert state["reason_code"] in codes, told
        assert state["failed_stage"] == stage, told
        assert state["pool"] == "quarantine", told
        assert state["next"]
        assert Path(str(state["evidence"])).is_dir()
        assert node in done.err
        assert str(state["next"]).split()[0] in done.err


def test_each_fault_of_a_running_system_is_turned_away_by_the_gate(rack: Rack) -> None:
    assert (
        rack.invoke("quarantine", "--nodes", "lab-n[01-06]", "--reason", "drain for a test", "--yes").status
        == 0
    )
    for node, (fault, _, _) in AT_THE_GATE.items():
        rack.lab("fault", "--nodes", node, "--fault", fault)
    done = rack.invoke("reimage", "--nodes", "lab-n[01-06]", "--reason", "faults", "--yes")
    assert done.status == 2, done.err
    assert "admitted      1   lab-n06" in done.err
    for node, (fault, stages, codes) in AT_THE_GATE.items():
        state = failed(rack, node)
        told = f"{fault}: {state['failed_stage']} {state['reason_code']}: {state['reason']}"
        assert state["reason_code"] in codes, told
        assert state["failed_stage"] in stages, told
        assert state["pool"] == "quarantine", told
