"""The emulated lab for end-to-end tests: on a net and in a state folder of its own, so that it runs
beside whatever else this machine runs. Everything is driven by the commands that an operator types."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
NETS = tuple(f"127.{number}" for number in range(99, 111))


@dataclass(frozen=True)
class Done:
    """How a command ended."""

    status: int
    out: str
    err: str


@dataclass(frozen=True)
class Rack:
    """The lab and the product, both reached through their command lines only."""

    environment: Mapping[str, str]
    state: Path

    def lab(self, *words: str) -> str:
        """Run one of the lab's own commands; it must succeed."""
        done = self.try_lab(*words)
        assert done.status == 0, done.err
        return done.out

    def try_lab(self, *words: str) -> Done:
        """Run one of the lab's own commands."""
        return self._run([sys.executable, "-m", "lab", *words])

    def invoke(self, *words: str, timeout: float = 300) -> Done:
        """Run one of the product's commands."""
        return self._run([str(Path(sys.executable).parent / "invoke"), *words], timeout)

    def start(self, *words: str) -> subprocess.Popen[str]:
        """Start one of the product's commands and return while it runs."""
        return subprocess.Popen(
            [str(Path(sys.executable).parent / "invoke"), *words],
            cwd=ROOT, env=dict(self.environment), stdin=subprocess.DEVNULL, text=True,
            stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        )  # fmt: skip

    def _run(self, words: list[str], timeout: float = 300) -> Done:
        done = subprocess.run(
            words, cwd=ROOT, env=dict(self.environment), stdin=subprocess.DEVNULL,
            capture_output=True, text=True, timeout=timeout, check=False,
        )  # fmt: skip
        return Done(done.returncode, done.stdout, done.stderr)


@pytest.fixture(scope="module")
def lab_state(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Rack]:
    """Bring a lab up for the tests of one file, with ten nodes, powered off."""
    if os.geteuid() != 0:
        pytest.skip("the lab needs root")
    rack = _first_free(tmp_path_factory)
    try:
        yield rack
    finally:
        rack.lab("down", "--wipe")


def _first_free(tmp_path_factory: pytest.TempPathFactory) -> Rack:
    """Start the lab on the first net that no other lab owns."""
    refused = ""
    for net in NETS:
        home = tmp_path_factory.mktemp("lab")
        state, site = home / "state", home / "site"
        state.mkdir(mode=0o700)
        ours = {"MUSTER_LAB_NET": net, "MUSTER_STATE": str(state), "MUSTER_SITE": str(site)}
        rack = Rack({**os.environ, **ours, "MUSTER_WHO": "tester"}, state)
        rack.lab("site", "--nodes", "10", "--out", str(site))
        done = rack.try_lab("up", "--nodes", "10", "--racks", "lab")
        if done.status == 0:
            return rack
        refused = done.err
    raise AssertionError(refused)


@pytest.fixture
def untouched(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Rack]:
    """A lab whose nodes have never run: no old system on a disk that a failed network boot falls back to."""
    if os.geteuid() != 0:
        pytest.skip("the lab needs root")
    rack = _first_free(tmp_path_factory)
    try:
        yield rack
    finally:
        rack.lab("down", "--wipe")


@pytest.fixture
def rack(lab_state: Rack) -> Iterator[Rack]:
    """The lab without faults, before and after a test."""
    lab_state.lab("fault", "--nodes", "lab-n[01-10]", "--clear")
    yield lab_state
    lab_state.lab("fault", "--nodes", "lab-n[01-10]", "--clear")
