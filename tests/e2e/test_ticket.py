"""Tickets of a rack that behaves: a healthy node, one whose host is off, one whose BMC says nothing."""

from __future__ import annotations

import hashlib
import json
import subprocess
import tarfile
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.conftest import Done, Rack

pytestmark = [pytest.mark.lab, pytest.mark.timeout(600)]

NODE = "lab-n09"
LEAKY = "lab-n10"
SERIAL = "LAB-N09"
HOST_FILES = ("uname.txt", "dmesg.txt", "journal.txt", "nvidia-smi-q.txt", "lspci-vv.txt")


def ready(rack: Rack) -> None:
    """Have the node in the reliable pool and its system up, whatever other tests left of it."""
    shown = json.loads(rack.invoke("nodes", "--nodes", NODE, "--output", "json").out)["nodes"][0]
    if shown["pool"] in ("quarantine", "repair"):
        assert rack.invoke("release", "--nodes", NODE, "--reason", "for a ticket", "--yes").status == 0
    if shown["stage"] in ("deployed", "configured", "verified"):  # a bare node would enlist itself
        assert rack.invoke("power.on", "--nodes", NODE).status == 0
    done = rack.invoke("bringup", "--nodes", NODE, "--yes")
    assert done.status == 0, done.err


def ticket(rack: Rack, out: Path, *words: str) -> tuple[dict[str, Any], dict[str, bytes]]:
    """Make a ticket of the node; return what the command says, and the files, after checking the archive."""
    done = rack.invoke("ticket", "--nodes", NODE, "--out", str(out), "--output", "json", *words)
    assert done.status == 0, done.err
    (told,) = json.loads(done.out)["tickets"]
    path = Path(told["path"])
    assert path.name.startswith(f"ticket-{NODE}-")
    assert hashlib.sha256(path.read_bytes()).hexdigest() == told["sha256"]
    subprocess.run(["sha256sum", "--check", "--status", f"{path.name}.sha256"], cwd=out, check=True)
    inside = out / "unpacked"
    with tarfile.open(path) as tape:
        assert {member.mode for member in tape.getmembers()} == {0o600}
        tape.extractall(inside, filter="data")
    (top,) = inside.iterdir()
    subprocess.run(["sha256sum", "--check", "--status", "MANIFEST.sha256"], cwd=top, check=True)
    files = {str(file.relative_to(top)): file.read_bytes() for file in top.rglob("*") if file.is_file()}
    return told, files


def outcomes(files: dict[str, bytes]) -> dict[str, str]:
    return {row["collector"]: row["outcome"] for row in json.loads(files["collection.json"])["collectors"]}


def secrets(rack: Rack) -> list[str]:
    folder = rack.state / "lab" / "secrets"
    key = [line for line in (folder / "ssh_key").read_text().splitlines() if "-----" not in line]
    return [(folder / "bmc-password").read_text().strip(), (folder / "maas-key").read_text().strip(), *key]


def test_a_ticket_of_a_healthy_node_has_all_of_it_and_names_nobody(rack: Rack, tmp_path: Path) -> None:
    ready(rack)
    told, files = ticket(rack, tmp_path, "--component", "gpu5")
    found = outcomes(files)
    for collector in ("bmc.identity", "bmc.sel", "bmc.sensors", "bmc.fru", "bmc.lan", "console", "health",
                      "host.uname", "host.dmesg", "host.journal", "host.nvidia-smi", "history"):  # fmt: skip
        assert found[collector] == "complete", files["collection.json"].decode()
    for name in HOST_FILES:
        assert files[f"host/{name}"]
    assert b"Linux version" in files["console/boot-0.txt"]
    assert b"host-1 login:" in files["console/last-screen.txt"]
    assert files["console/last-screen.png"].startswith(b"\x89PNG")
    about = json.loads(files["ticket.json"])
    assert about["product"]["serial"] == SERIAL
    assert about["component"]["serial"] == f"{SERIAL}-G5"
    assert about["component"]["lost"] is False
    assert len(told["paste"]) == 5
    everything = b"\n".join(files.values())
    for name in (NODE.encode(), b"lab-n0", f"{rack.environment['MUSTER_LAB_NET']}.".encode()):
        assert name not in everything
    for secret in secrets(rack):
        assert secret.encode() not in everything


def test_a_gpu_that_fell_off_the_bus_is_named_by_what_it_was_when_all_was_well(
    rack: Rack, tmp_path: Path
) -> None:
    ready(rack)
    rack.lab("fault", "--nodes", NODE, "--fault", "gpu-missing")
    told, files = ticket(rack, tmp_path, "--component", "gpu3")
    about = json.loads(files["ticket.json"])["component"]
    assert about["lost"] is True
    assert about["serial"] == f"{SERIAL}-G3"
    assert about["pci"] not in files["host/nvidia-smi-q.txt"].decode().lower()
    assert f"gpu3, no longer on the bus, PCI {about['pci']}, serial {SERIAL}-G3" in told["paste"][1]


def test_a_ticket_of_ourselves_keeps_the_names_and_no_secret(rack: Rack, tmp_path: Path) -> None:
    ready(rack)
    _, files = ticket(rack, tmp_path, "--profile", "internal")
    everything = b"\n".join(files.values())
    assert NODE.encode() in files["host/journal.txt"]
    for secret in secrets(rack):
        assert secret.encode() not in everything


def test_a_node_whose_host_is_off_still_gets_its_ticket(rack: Rack, tmp_path: Path) -> None:
    ready(rack)
    off = rack.invoke("power.off", "--nodes", NODE, "--reason", "for a ticket", "--yes")
    assert off.status == 0, off.err
    told, files = ticket(rack, tmp_path)
    found = outcomes(files)
    assert {found[name] for name in found if name.startswith("host.")} == {"skipped"}
    assert found["bmc.sel"] == found["bmc.fru"] == found["console"] == found["health"] == "complete"
    assert json.loads(files["ticket.json"])["power"] == "off"
    assert found["bmc.earlier"] == "complete"  # what was saved before the power was cut
    assert any(line.startswith("host.* (skipped: ssh: ") for line in told["missing"])
    assert not [name for name in files if name.startswith("host/")]


def test_a_node_whose_bmc_is_silent_gets_a_ticket_of_what_is_known(rack: Rack, tmp_path: Path) -> None:
    ready(rack)
    rack.lab("fault", "--nodes", NODE, "--fault", "bmc-silent")
    told, files = ticket(rack, tmp_path)
    found = outcomes(files)
    assert {found[f"bmc.{name}"] for name in ("identity", "sel", "sensors", "fru", "lan")} == {"error"}
    assert found["bmc.power-events"] == found["console"] == found["host.journal"] == "complete"
    assert any("(error: BMC " in line and "no answer within" in line for line in told["missing"])
    assert f"serial {SERIAL}" in told["paste"][0]
    assert rack.environment["MUSTER_LAB_NET"].encode() not in files["collection.json"]


def test_a_secret_that_somebody_typed_means_no_ticket_and_nothing_left(rack: Rack, tmp_path: Path) -> None:
    password = secrets(rack)[0]
    words = ("--nodes", LEAKY, "--reason", f"BMC takes {password}", "--yes")
    assert rack.invoke("quarantine", *words).status == 0
    out = tmp_path / "out"
    done = rack.invoke("ticket", "--nodes", LEAKY, "--out", str(out))
    assert rack.invoke("release", "--nodes", LEAKY, "--reason", "was a test", "--yes").status == 0
    assert done.status == 5
    assert lines(done)[0].startswith(f"error: {LEAKY}: no ticket was made: ")
    assert "holds file:lab/secrets/bmc-password" in lines(done)[0]
    assert lines(done)[2] == "  next: docs/runbooks/ticket-secret.md"
    assert password not in done.err + done.out
    assert not out.exists()


def lines(done: Done) -> list[str]:
    found = done.err.strip().splitlines()[-3:]
    assert [line[:8].strip().split(":")[0] for line in found] == ["error", "why", "next"]
    return found


@pytest.mark.parametrize(
    ("words", "says"),
    [
        ([], "error: muster: no nodes were selected"),
        (["--nodes", "lab-n99"], "error: --nodes: lab-n99 is not in the inventory"),
        (["--nodes", NODE, "--profile", "public"], "error: --profile: public is no profile"),
        (["--nodes", NODE, "--component", "GPU 5"], "error: --component: GPU 5 is no component"),
        (["--nodes", NODE, "--limit", "many"], "error: --limit: many is no number of megabytes"),
        (["--nodes", NODE, "--limit", "0"], "error: --limit: 0 is no number of megabytes"),
        (["--nodes", NODE, "--output", "yaml"], "error: --output: yaml is no output form here"),
        (["--nodes", NODE, "--out", "/proc/nowhere"], "error: --out: /proc/nowhere"),
    ],
)  # fmt: skip
def test_what_makes_no_sense_is_refused_in_three_lines(rack: Rack, words: list[str], says: str) -> None:
    done = rack.invoke("ticket", *words)
    assert done.status == 5
    assert lines(done)[0].startswith(says)
    assert done.out == ""
