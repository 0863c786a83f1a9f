"""From bare metal to the pool, with the machine pulled away from under it, and with bad input."""

from __future__ import annotations

import json
import os
import signal
import time
from collections import Counter

import pytest

from tests.e2e.conftest import Rack

pytestmark = [pytest.mark.lab, pytest.mark.timeout(600)]


def nodes(rack: Rack, *words: str) -> dict[str, dict[str, object]]:
    done = rack.invoke("nodes", "--rack", "lab", "--output", "json", *words)
    assert done.status == 0, done.err
    return {row["node"]: row for row in json.loads(done.out)["nodes"]}


def events(rack: Rack, node: str) -> list[str]:
    done = rack.invoke("history", "--nodes", node, "--limit", "500", "--output", "json")
    return [row["event"] for row in json.loads(done.out)["events"]]


def test_nodes_come_up_and_a_second_run_finds_nothing_to_do(rack: Rack) -> None:
    done = rack.invoke("bringup", "--nodes", "lab-n[01-02]", "--yes")
    assert done.status == 0, done.err
    assert "admitted      2   lab-n[01-02]" in done.err
    for node in ("lab-n01", "lab-n02"):
        assert nodes(rack)[node]["pool"] == "reliable"

    again = rack.invoke("bringup", "--nodes", "lab-n[01-02]", "--yes")
    assert again.status == 0
    assert "already in the pool: lab-n[01-02]" in again.err

    shown = rack.invoke("console.show", "--nodes", "lab-n01").out
    assert "Linux version" in shown
    assert "login:" in shown
    assert rack.invoke("verify", "--nodes", "lab-n01", "--no-record").status == 0


def test_a_reimage_wipes_the_node_and_takes_it_through_the_gate_again(rack: Rack) -> None:
    assert rack.invoke("bringup", "--nodes", "lab-n06", "--yes").status == 0
    refused = rack.invoke("reimage", "--nodes", "lab-n06", "--yes")
    assert refused.status == 5
    assert "--reason" in refused.err
    before = nodes(rack)["lab-n06"]
    done = rack.invoke("reimage", "--nodes", "lab-n06", "--reason", "rehearsal", "--yes")
    assert done.status == 0, done.err
    assert nodes(rack)["lab-n06"]["pool"] == "reliable"
    assert before["pool"] == "reliable"
    assert any("releasing from Deployed: rehearsal" in event for event in events(rack, "lab-n06"))


def test_a_killed_runner_loses_nothing_and_repeats_no_finished_stage(rack: Rack) -> None:
    command = rack.start("bringup", "--nodes", "lab-n[03-04]", "--yes")
    deadline = time.monotonic() + 120
    while not any("deployed begun" in event for event in events(rack, "lab-n03")):
        assert time.monotonic() < deadline, "the run never came to deploy"
        time.sleep(0.2)
    os.kill(int((rack.state / "runner.lock").read_text().split()[0]), signal.SIGKILL)
    command.kill()
    command.communicate()

    run = json.loads(rack.invoke("runs", "--output", "json").out)["runs"][0]
    assert run["state"] == "running"
    refused = rack.invoke("bringup", "--nodes", "lab-n03", "--yes")
    assert refused.status == 3
    assert run["run"] in refused.err

    done = rack.invoke("bringup", "--resume", run["run"])
    assert done.status == 0, done.err
    for node in ("lab-n03", "lab-n04"):
        reached = Counter(event.split()[0] for event in events(rack, node) if " reached" in event)
        assert reached == dict.fromkeys(
            ("reachable", "enlisted", "commissioned", "deployed", "configured", "verified"), 1
        )
        begun = Counter(event.split()[0] for event in events(rack, node) if event.endswith(" begun"))
        assert sum(begun.values()) <= 7, begun
        assert begun["commissioned"] == 1


def test_a_humans_hold_stays_and_only_a_human_lifts_it(rack: Rack) -> None:
    assert rack.invoke("quarantine", "--nodes", "lab-n10", "--reason", "PSU smell", "--yes").status == 0
    left = rack.invoke("bringup", "--nodes", "lab-n10", "--yes")
    assert left.status == 3
    assert 'by tester today: "PSU smell"' in left.err
    assert nodes(rack)["lab-n10"]["pool"] == "quarantine"
    assert rack.invoke("release", "--nodes", "lab-n10", "--reason", "PSU replaced", "--yes").status == 0
    assert nodes(rack)["lab-n10"]["pool"] is None


def test_a_cancelled_run_stops_and_says_so(rack: Rack) -> None:
    started = rack.invoke("bringup", "--nodes", "lab-n09", "--yes", "--no-wait")
    run = started.out.strip()
    done = rack.invoke("cancel", "--run", run, "--yes", "--reason", "wrong rack")
    assert done.status == 0, done.err
    runs = {row["run"]: row for row in json.loads(rack.invoke("runs", "--output", "json").out)["runs"]}
    assert runs[run]["state"] == "cancelled"
    assert nodes(rack)["lab-n09"]["pool"] is None


@pytest.mark.parametrize(
    ("words", "status", "says"),
    [
        (["bringup", "--yes"], 5, "error: muster: no nodes were selected; all of them is @*"),
        (["bringup", "--rack", "r9", "--yes"], 5, "error: --rack: r9 is not in the inventory"),
        (["bringup", "--nodes", "lab-n99", "--yes"], 5, "error: --nodes: lab-n99 is not in the inventory"),
        (["bringup", "--nodes", "lab-n[01", "--yes"], 5, "cannot be read"),
        (["bringup", "--rack", "lab", "--dry"], 5, "error: --dry: not an option of this command"),
        (["bringup", "--nodes", "lab-n05"], 3, "needs --yes where there is no terminal"),
        (["bringup", "--resume", "b-0000-000000"], 5, "b-0000-000000"),
        (["power.off", "--nodes", "lab-n05", "--override", "identity"], 5, "identity cannot be overridden"),
    ],
)  # fmt: skip
def test_bad_input_is_three_lines_and_the_right_status(
    rack: Rack, words: list[str], status: int, says: str
) -> None:
    done = rack.invoke(*words)
    assert done.status == status, done.err
    lines = done.err.strip().splitlines()[-3:]
    assert lines[0].startswith("error: ")
    assert lines[1].startswith("  why: ")
    assert lines[2].startswith("  next: ")
    assert says in done.err


def test_a_maas_that_is_away_is_said_before_a_run_begins(rack: Rack) -> None:
    rack.lab("fault", "--fault", "maas-down")
    try:
        done = rack.invoke("bringup", "--nodes", "lab-n05", "--yes")
    finally:
        rack.lab("fault", "--fault", "maas-down", "--clear")
    assert done.status == 4
    assert done.err.strip().splitlines()[-3].startswith("error: ")


def test_power_commands_answer_and_what_is_off_answers_nothing(rack: Rack) -> None:
    rack.lab(
        "fault", "--nodes", "lab-n05", "--fault", "no-lease"
    )  # else it enlists itself and is switched off
    assert rack.invoke("power.on", "--nodes", "lab-n05").status == 0
    assert "lab-n05  on" in rack.invoke("power.status", "--nodes", "lab-n05").out
    off = rack.invoke("power.off", "--nodes", "lab-n05", "--reason", "test", "--yes")
    assert off.status == 0, off.err
    assert "on -> off" in off.out
    assert list((rack.state / "captures" / "lab-n05").glob("bmc-*.json"))
