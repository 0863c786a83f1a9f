"""The fix ladder on running nodes: a fault is cured by the fix that its finding names, or left to hands."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.conftest import Rack

pytestmark = [pytest.mark.lab, pytest.mark.timeout(600)]

CURED = {
    "lab-n01": ("fabric-manager-stopped", "restart_service"),
    "lab-n02": ("gpu-remap-pending", "gpu_reset"),
    "lab-n03": ("kernel-tainted", "reboot"),
    "lab-n04": ("gpu-lost", "power_cycle"),
}
BROKEN = "lab-n05"
HELD = "lab-n06"
EVERYONE = "lab-n[01-06]"


def rows(rack: Rack, *words: str) -> dict[str, dict[str, Any]]:
    done = rack.invoke("fix", "--nodes", EVERYONE, "--output", "json", *words)
    document = json.loads(done.out)
    return {row["node"]: row for row in document.get("plan") or document["fixes"]}


def events(rack: Rack) -> int:
    done = rack.invoke("history", "--nodes", EVERYONE, "--output", "json", "--limit", "1000")
    return len(json.loads(done.out)["events"])


def pool(rack: Rack, node: str) -> str | None:
    done = rack.invoke("show", "--nodes", node, "--output", "json")
    found: str | None = json.loads(done.out)["nodes"][0]["state"]["pool"]
    return found


def test_each_fault_is_cured_by_its_fix_and_what_needs_hands_goes_to_repair(untouched: Rack) -> None:
    assert untouched.invoke("bringup", "--nodes", EVERYONE, "--until", "deployed", "--yes").status == 0
    hold = untouched.invoke("quarantine", "--nodes", HELD, "--reason", "smells", "--yes")
    assert hold.status == 0, hold.err
    for node, (fault, _) in CURED.items():
        untouched.lab("fault", "--nodes", node, "--fault", fault)
    untouched.lab("fault", "--nodes", BROKEN, "--fault", "dimm-missing")

    before = events(untouched)
    planned = rows(untouched, "--dry-run")
    assert {node: row["first"].split()[0] for node, row in planned.items() if node in CURED} == {
        node: rung for node, (_, rung) in CURED.items()
    }
    assert planned[BROKEN]["first"] == "a human"
    assert events(untouched) == before

    fixed = rows(untouched, "--yes")
    for node, (fault, rung) in CURED.items():
        told = f"{fault}: {fixed[node]}"
        assert fixed[node]["answer"] == "yes", told
        assert fixed[node]["tried"] == f"{rung} (done)", told
    assert HELD not in fixed
    assert pool(untouched, HELD) == "quarantine"
    assert (fixed[BROKEN]["answer"], fixed[BROKEN]["tried"]) == ("no", "nothing")
    assert fixed[BROKEN]["next"] == f"invoke ticket --nodes {BROKEN}"
    assert pool(untouched, BROKEN) == "repair"
    saved = Path(fixed["lab-n04"]["evidence"])
    assert {path.name for path in saved.glob("gate-*.json")} == {"gate-0.json", "gate-1.json"}
    assert list(saved.glob("bmc-*.json"))


def test_nobody_is_touched_whom_a_human_holds_and_no_profile_comes_from_who_is_not_reliable(
    untouched: Rack, tmp_path: Path
) -> None:
    assert untouched.invoke("bringup", "--nodes", "lab-n01", "--until", "deployed", "--yes").status == 0
    refused = untouched.invoke("profile.learn", "--nodes", "lab-n01", "--name", "mine")
    assert refused.status == 3
    assert "refused by guard not-reliable: it is in no pool" in refused.err
    out = tmp_path / "profile.yaml"
    words = ("--nodes", "lab-n01", "--name", "mine", "--trust", "lab-n01", "--out", str(out))
    done = untouched.invoke("profile.learn", *words)
    assert done.status == 0, done.err
    profiles = Path(untouched.environment["MUSTER_SITE"]) / "profiles.yaml"
    profiles.write_text(profiles.read_text() + "\n".join(out.read_text().splitlines()[2:]) + "\n")
    assert untouched.invoke("inventory.check").status == 0
    racks = profiles.with_name("racks.yaml")
    racks.write_text(racks.read_text().replace("profile: lab\n", "profile: mine\n", 1))
    judged = untouched.invoke("verify", "--nodes", "lab-n01")
    assert judged.status == 0, judged.out

    assert untouched.invoke("quarantine", "--nodes", "lab-n01", "--reason", "smells", "--yes").status == 0
    left = untouched.invoke("fix", "--nodes", "lab-n01", "--yes")
    assert left.status == 3
    assert "left out: lab-n01: quarantine by tester" in left.err
