"""The inventory as standard Ansible reads it."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from inventory.ansible import group_name, inventory, main
from inventory.model import Pool, Stage
from inventory.records import NodeState
from inventory.site import load
from inventory.store import Store

ROOT = Path(__file__).parents[3]
SCRIPT = ROOT / "inventory" / "ansible.py"
LAB = ROOT / "inventory" / "sites" / "lab"
EXAMPLE = ROOT / "inventory" / "sites" / "example"


def ask(*command: str, **environ: str) -> subprocess.CompletedProcess[str]:
    """Run a command from a foreign folder, with the programs of this environment first."""
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    return subprocess.run(
        command,
        env={**os.environ, "PATH": path, **environ},
        cwd="/",
        capture_output=True,
        text=True,
        check=False,
    )


def test_ansible_itself_reads_it(tmp_path: Path) -> None:
    if not shutil.which("ansible-inventory", path=str(Path(sys.executable).parent)):
        pytest.skip("ansible-core is not in this environment")
    with Store.open(f"sqlite:///{tmp_path}/muster.sqlite") as store:
        store.set_pool("lab-n02", Pool.QUARANTINE, by="ana", why="fan")
    done = ask(
        "ansible-inventory", "-i", str(SCRIPT), "--list", MUSTER_STATE=str(tmp_path), HOME=str(tmp_path)
    )
    assert done.returncode == 0, done.stderr
    assert "WARNING" not in done.stderr
    answer = json.loads(done.stdout)
    assert answer["pool_quarantine"]["hosts"] == ["lab-n02"]
    assert answer["rack_lab"]["hosts"] == [f"lab-n{number:02}" for number in range(1, 9)]
    host = answer["_meta"]["hostvars"]["lab-real-n01"]
    assert (host["ansible_host"], host["ansible_port"], host["ansible_user"]) == ("127.77.3.1", 22, "ubuntu")
    assert host["ansible_ssh_private_key_file"] == f"{tmp_path}/lab/secrets/ssh_key"


@pytest.mark.parametrize("command", [[str(SCRIPT)], [sys.executable, str(SCRIPT)]])
def test_runs_as_a_script_and_makes_no_database(tmp_path: Path, command: list[str]) -> None:
    done = ask(*command, "--host", "lab-n01", MUSTER_STATE=str(tmp_path / "none"))
    assert json.loads(done.stdout)["ansible_host"] == "10.77.1.1"
    assert done.stderr == ""
    assert list(tmp_path.iterdir()) == []


def test_runs_from_its_own_folder_where_its_neighbours_have_names_of_python_s() -> None:
    done = subprocess.run(
        [sys.executable, "ansible.py", "--host", "nobody"],
        cwd=SCRIPT.parent,
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.stdout, done.stderr) == ("{}\n", "")


def test_a_broken_site_is_said_in_three_lines(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "site.yaml").write_text("named: x\n")
    assert main(["--list"], {"MUSTER_SITE": str(tmp_path), "MUSTER_STATE": str(tmp_path)}) == 5
    lines = capsys.readouterr().err.splitlines()
    assert [line.split(":")[0].strip() for line in lines] == ["error", "why", "next"]
    assert f"{tmp_path}/site.yaml:1: " in lines[0]


def test_groups_are_by_rack_profile_role_and_pool(tmp_path: Path) -> None:
    states = {"r1-n01": NodeState("r1-n01", pool=Pool.RELIABLE, stage=Stage.VERIFIED)}
    answer = inventory(load(EXAMPLE), states, state_folder=tmp_path)
    assert answer["pool_reliable"] == {"hosts": ["r1-n01"]}
    assert answer["role_kraken_origin"] == {"hosts": ["infra-n01", "infra-n02"]}
    assert answer["profile_xe9680_h100"] == {"hosts": ["r1-n01", "r1-n02", "r1-n03", "r1-n04"]}
    assert group_name("rack", "lab-real") == "rack_lab_real"


def test_holds_no_credential_and_no_reference_to_one(tmp_path: Path) -> None:
    text = json.dumps(inventory(load(EXAMPLE), {}, state_folder=tmp_path))
    for word in ("idrac", "password", "maas-key", "10.9."):
        assert word not in text


def test_an_address_that_only_maas_knows_is_used(tmp_path: Path) -> None:
    site = load(LAB)
    states = {"lab-n01": NodeState("lab-n01", address="10.99.0.1")}
    hosts = inventory(site, states, state_folder=tmp_path)["_meta"]
    assert isinstance(hosts, dict)
    assert hosts["hostvars"]["lab-n01"]["ansible_host"] == "10.77.1.1"  # the site files come first
