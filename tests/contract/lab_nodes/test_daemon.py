"""The lab as a whole: started twice, killed, stopped twice, and nothing of it left behind."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from lab.nodes.cgroup import unified_hierarchy
from tests.contract.lab_nodes.bench import LabUnderTest, is_up, until
from tests.nets import own_net

pytestmark = [pytest.mark.lab, pytest.mark.timeout(180)]


@pytest.fixture
def own(tmp_path: Path) -> Iterator[LabUnderTest]:
    """A lab for one test, beside the one that the others share."""
    if os.geteuid() != 0:
        pytest.skip("nodes are namespaces, which only root can make")
    place = LabUnderTest(tmp_path, own_net(151))
    assert place.command("up", "--racks", "lab", "--nodes", "2").returncode == 0
    yield place
    place.command("down", "--wipe")


def traces(lab: LabUnderTest) -> list[str]:
    """What a lab of this net still has on this machine."""
    routes = subprocess.run(["ip", "route"], capture_output=True, text=True, check=True).stdout
    found = [line for line in routes.splitlines() if f"10.{lab.octet}." in line]
    found += [str(path) for path in Path("/sys/class/net").glob(f"*{lab.octet}*")]
    group = unified_hierarchy() / f"muster-lab-{lab.octet}"
    return found + ([str(group)] if group.exists() else [])


def test_asking_for_a_lab_that_is_up_is_quick_and_changes_nothing(lab: LabUnderTest) -> None:
    begin = time.monotonic()
    assert lab.command("up", "--racks", "lab", "--nodes", "3", "--if-down").stderr == ""
    assert time.monotonic() - begin < 2.0  # far below a start, on the busiest machine


def test_a_lab_grows_while_it_runs(own: LabUnderTest) -> None:
    assert own.command("up", "--racks", "lab", "--nodes", "3", "--light", "2").returncode == 0
    assert set(own.status()) == {"lab-n01", "lab-n02", "lab-n03", "lab-light-n001", "lab-light-n002"}
    assert {machine["hostname"] for machine in own.maas("GET", "machines/")} == {
        "lab-light-n001",
        "lab-light-n002",
    }


def test_a_second_daemon_for_the_same_state_is_refused(own: LabUnderTest) -> None:
    done = own.command("serve", "--racks", "lab", "--nodes", "1")
    assert done.returncode == 4
    assert "already runs it" in done.stderr
    assert is_up(own)


def test_stopping_leaves_nothing_and_can_be_said_twice(own: LabUnderTest) -> None:
    own.fresh(1)
    assert traces(own)
    assert own.command("down").returncode == 0
    assert traces(own) == []
    assert own.command("down").returncode == 0


def test_what_a_killed_daemon_left_is_removed(own: LabUnderTest) -> None:
    own.fresh(1)
    os.kill(int((own.state / "lab" / "lab.lock").read_text()), signal.SIGKILL)
    until(lambda: not is_up(own), "the daemon is gone")
    assert traces(own)
    assert own.command("down").returncode == 0
    assert traces(own) == []


def test_a_lab_that_was_killed_comes_back_with_its_systems(own: LabUnderTest) -> None:
    own.fresh(1)
    own.ssh(1, "touch ~/kept")
    own.maas("GET", "machines/")
    os.kill(int((own.state / "lab" / "lab.lock").read_text()), signal.SIGKILL)
    assert own.command("up", "--racks", "lab", "--nodes", "1").returncode == 0
    assert own.status()["lab-n01"]["installed"] == "lab-n01"
    assert set(own.status()) == {"lab-n01", "lab-n02"}
    own.ipmi(1, "chassis", "bootdev", "disk")
    own.ipmi(1, "power", "on")
    until(lambda: own.ssh(1, "ls ~/kept").returncode == 0, "the system that was deployed")


def test_secrets_are_their_owners_alone(lab: LabUnderTest) -> None:
    modes = {path.name: path.stat().st_mode & 0o777 for path in lab.secrets.iterdir()}
    assert modes.pop("ssh_key.pub") in (0o600, 0o644)
    assert set(modes.values()) == {0o600}
    assert set(modes) == {"bmc-password", "maas-key", "ssh_key"}


def test_wiping_removes_disks_and_secrets(own: LabUnderTest) -> None:
    assert own.command("down", "--wipe").returncode == 0
    assert not (own.state / "lab").exists()


@pytest.mark.parametrize("command", [("up", "--racks", "lab", "--nodes", "1"), ("down",), ("down", "--wipe")])
def test_another_lab_on_the_same_net_is_refused_and_harms_nothing(
    lab: LabUnderTest, tmp_path: Path, command: tuple[str, ...]
) -> None:
    lab.fresh(1)
    before = traces(lab)
    stranger = LabUnderTest(tmp_path, lab.net)
    done = stranger.command(*command)
    assert done.returncode == 3, done.stderr
    assert str(lab.state) in done.stderr
    assert traces(lab) == before
    assert lab.answers(1)
