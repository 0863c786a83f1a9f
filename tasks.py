"""Invoke's entry point in a checkout: the product's commands, and those that only a checkout has."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from invoke.collection import Collection

from provision.cli.command import Ended, command
from provision.cli.namespace import collection

_HERE = Path(__file__).resolve().parent


def _run(*words: str) -> None:
    """Run a program of the environment in the checkout and end with its status."""
    sys.stdout.flush()
    raise Ended(subprocess.run(words, cwd=_HERE, check=False).returncode)


def _lab(*words: str) -> None:
    _run(sys.executable, "-m", "lab", *[word for word in words if word])


@command(
    {
        "racks": "which racks: lab, lab-real",
        "nodes": "how many nodes in rack lab",
        "real": "how many QEMU nodes in rack lab-real",
        "light": "how many nodes with a BMC and a MAAS machine only",
    }
)
def up(racks: str = "", nodes: str = "", real: str = "", light: str = "") -> None:
    """Start the emulated lab."""
    options = {"--racks": racks, "--nodes": nodes, "--real": real, "--light": light}
    _lab("up", *[word for name, value in options.items() if value for word in (name, value)])


@command({"wipe": "forget the nodes' disks and MAAS's memory too"})
def down(wipe: bool = False) -> None:
    """Stop the emulated lab."""
    _lab("down", "--wipe" if wipe else "")


@command({"output": "table or json"})
def status(output: str = "table") -> None:
    """Say what the emulated lab runs."""
    _lab("status", "--output", output)


@command(
    {
        "nodes": "node set of the lab",
        "fault": "name of the fault",
        "value": "its value, where it has one",
        "clear": "take faults away",
    }
)
def fault(nodes: str = "", fault: str = "", value: str = "", clear: bool = False) -> None:
    """Inject a named fault into the emulated lab, or take it away."""
    options = {"--nodes": nodes, "--fault": fault, "--value": value}
    _lab(
        "fault",
        *[word for name, given in options.items() if given for word in (name, given)],
        "--clear" if clear else "",
    )


@command(
    {
        "fast": "leave out what needs the lab",
        "all_of_it": "add what takes long: whole sites configured in the lab",
        "only": "a path or pytest expression to run",
    }
)
def test(fast: bool = False, all_of_it: bool = False, only: str = "") -> None:
    """Run everything that must hold: linters, types, imports, tests."""
    words = ["--fast"] if fast else ["--all"] if all_of_it else []
    os.environ.setdefault("PYTHONDONTWRITEBYTECODE", "1")
    _run("sh", str(_HERE / "tests" / "run.sh"), *words, *([only] if only else []))


namespace = collection()
namespace.add_task(test)
_branch = Collection("lab")
for _task in (up, down, status, fault):
    _branch.add_task(_task)
namespace.add_collection(_branch)
