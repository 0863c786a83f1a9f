"""A boot says what none of its cohort has said: a card, a human's decision, and the gate's answer to it."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import pytest
import yaml

from benchmarks.gate import INVOKE, ROOT, names_of, quick, write_site
from benchmarks.recorded_nodes import item, load, stream
from inventory.model import Pool, Stage
from inventory.records import AUTOMATION
from provision.access import Access
from provision.settings import Settings

pytestmark = pytest.mark.timeout(300)

NODES = 12
ODD = "acme 0000:07:00.0: calibration of lane 3 took 917 rounds"
LAST = "6,97,40000000,-;nvidia-peermem: module loaded\n"


class Fleet:
    """Emulated nodes whose SSH gives evidence of this moment, and a site of them."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.node = load("xe9680-h100")
        write_site(folder, self.node, NODES, 0)
        self.environment = {
            **os.environ,
            "MUSTER_SITE": str(folder / "site"),
            "MUSTER_STATE": str(folder / "state"),
            "MUSTER_WHO": "marta",
            "PATH": f"{folder / 'bin'}:{os.environ['PATH']}",
        }
        self.access = Access.open(Settings.from_environment(self.environment))

    def invoke(self, *words: str, ok: tuple[int, ...] = (0,)) -> str:
        done = subprocess.run(
            [INVOKE, *words], cwd=ROOT, env=self.environment, stdin=subprocess.DEVNULL,
            capture_output=True, text=True, check=False,
        )  # fmt: skip
        assert done.returncode in ok, done.stdout + done.stderr
        return done.stdout

    def answers(self, nodes: str) -> dict[str, tuple[str, str]]:
        """Return each node's answer, and all its reasons in one text."""
        told = self.invoke("verify", "--nodes", nodes, "--level", "quick", "--output", "json", ok=(0, 2))
        return {
            row["node"]: (row["answer"], json.dumps(row["reasons"])) for row in json.loads(told)["verdicts"]
        }

    def cards(self) -> list[dict[str, object]]:
        cards: list[dict[str, object]] = json.loads(self.invoke("triage.list", "--output", "json"))["cards"]
        return cards

    def says(self, name: str, line: str) -> None:
        """Have the last boot of a node end with one more line."""
        document = quick(self.node)
        ring = item(document, "kernel.kmsg")
        text = ring["stdout"]["text"]
        assert LAST in text
        ring["stdout"] = stream(text.replace(LAST, f"{LAST}6,98,40000001,-;{line}\n"))
        address = self.access.node(name).address
        (self.folder / f"evidence-{address}.json").write_text(json.dumps(document))

    def trust(self, check: str) -> None:
        """Let a new check gate, as a site does in its profile."""
        path = self.folder / "site" / "profiles.yaml"
        told = yaml.safe_load(path.read_text())
        told["profiles"][self.node.profile.name]["limits"]["gate.checks"] = [check]
        path.write_text(yaml.safe_dump(told))


def test_an_odd_boot_becomes_a_card_and_a_denied_one_is_refused(tmp_path: Path) -> None:
    fleet = Fleet(tmp_path)
    names = names_of(NODES)
    one, other = names[:2]
    assert {answer for answer, _ in fleet.answers("@*").values()} == {"yes"}
    for name in names:
        fleet.access.store.reach(name, Stage.VERIFIED, run=None)
        fleet.access.store.set_pool(name, Pool.RELIABLE, by=AUTOMATION, why="verified")
    assert fleet.cards() == []  # and now it is known what is usual
    fleet.trust("kernel.boot_log")

    fleet.says(one, ODD)
    answers = fleet.answers(f"{one},{other}")
    assert answers[other][0] == "yes", answers[other][1]
    assert ODD in answers[one][1]
    (card,) = fleet.cards()
    assert (card["line"], card["decision"]) == (ODD, "open")
    shown = fleet.invoke("triage.show", "--card", str(card["card"]))
    assert f"nodes    {one}" in shown

    fleet.invoke("triage.deny", "--card", str(card["card"]), "--reason", "a bad riser")
    assert fleet.cards() == []
    fleet.says(other, ODD.replace("917", "203"))
    refused = fleet.answers(f"{one},{other}")
    assert {answer for answer, _ in refused.values()} == {"no"}  # it holds for the whole cohort
