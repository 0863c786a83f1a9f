"""`--dry-run` changes nothing: not in MAAS, not at a BMC, not in a database, not in the state folder."""

from __future__ import annotations

import hashlib
import json
import os
import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from benchmarks.light_site import LightSite
from tests.real.kill import invoke, kill_runner

pytestmark = [pytest.mark.lab, pytest.mark.timeout(300)]


@pytest.fixture(scope="module")
def light(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LightSite]:
    """Two nodes, of which one is in the pool."""
    if os.geteuid() != 0:
        pytest.skip("BMCs listen on port 623, which needs root")
    with LightSite(2, tmp_path_factory.mktemp("dry") / "light", net=98, seconds=0.5) as site:
        invoke(site.environment, "bringup", "--nodes", "light-n001", "--yes")
        # A runner writes to its own tables as long as it lives.
        kill_runner(Path(site.environment["MUSTER_STATE"]))
        yield site


def everything(site: LightSite) -> dict[str, Any]:
    """Return what a change anywhere would change: calls to MAAS that act, BMC commands, rows, files."""
    report = site.report()
    state = Path(site.environment["MUSTER_STATE"])
    return {
        "maas": {asked: n for asked, n in report["maas"].items() if not asked.startswith("GET ")},
        "machines": report["machines"],
        "bmc": report["bmc"],
        "rows": {name: rows(state / name) for name in ("muster.sqlite", "engine.sqlite")},
        "files": sorted(
            str(path.relative_to(state)) for path in state.rglob("*") if "sqlite" not in path.name
        ),
    }


def rows(database: Path) -> str:
    digest = hashlib.sha256()
    with sqlite3.connect(database) as connection:
        for line in connection.iterdump():
            digest.update(line.encode())
    connection.close()
    return digest.hexdigest()


@pytest.mark.parametrize(
    "words",
    [
        ["bringup", "--nodes", "light-n002"],
        ["bringup", "--nodes", "@*", "--output", "json"],
        ["bringup", "--nodes", "@*", "--until", "commissioned", "--yes"],
        ["reimage", "--nodes", "light-n002", "--reason", "rehearsal"],
    ],
)
def test_a_dry_run_changes_nothing(light: LightSite, words: list[str]) -> None:
    before = everything(light)
    told = invoke(light.environment, *words, "--dry-run")
    assert "nothing was changed" in told or json.loads(told)
    assert everything(light) == before


def test_the_measure_sees_a_change(light: LightSite) -> None:
    before = everything(light)
    invoke(light.environment, "quarantine", "--nodes", "light-n002", "--reason", "test", "--yes")
    after = everything(light)
    assert after["rows"]["muster.sqlite"] != before["rows"]["muster.sqlite"]
    assert after["rows"]["engine.sqlite"] == before["rows"]["engine.sqlite"]
    invoke(light.environment, "power.status", "--nodes", "light-n002")
    assert everything(light)["bmc"] != before["bmc"]
