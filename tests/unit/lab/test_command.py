"""`python -m lab`: refusals in three lines with the right exit code, and nothing changed."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from lab.__main__ import main

ROOT = Path(__file__).parents[3]
Run = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture
def run(tmp_path: Path) -> Run:
    def call(
        *arguments: str, net: str = "127.123", user: int | None = None
    ) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-m", "lab", *arguments],
            cwd=ROOT,
            capture_output=True,
            text=True,
            check=False,
            env={**os.environ, "MUSTER_STATE": str(tmp_path), "MUSTER_LAB_NET": net},
        )

    return call


def refusal(done: subprocess.CompletedProcess[str]) -> tuple[int, list[str]]:
    lines = done.stderr.splitlines()
    assert "Traceback" not in done.stderr
    return done.returncode, [line.split(":", 1)[0].strip() for line in lines]


def test_status_of_a_lab_that_is_down(run: Run) -> None:
    assert refusal(run("status")) == (4, ["error", "why", "next"])


@pytest.mark.parametrize(
    "arguments",
    [
        ("dance",),
        (),
        ("fault", "--nodes", "lab-n01"),
        ("status", "-o", "json"),
        ("up", "--racks", "lab,shelf"),
        ("up", "--nodes", "-1"),
        ("site",),
    ],
)
def test_a_request_that_makes_no_sense(run: Run, arguments: tuple[str, ...]) -> None:
    assert refusal(run(*arguments)) == (5, ["error", "why", "next"])


def test_a_net_that_is_none(run: Run) -> None:
    assert refusal(run("status", net="10.0")) == (5, ["error", "why", "next"])


@pytest.mark.parametrize("command", ["up", "down", "serve"])
def test_whoever_is_not_root_is_told_at_once(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([command], user=1000) == 3
    assert [line.split(":", 1)[0].strip() for line in capsys.readouterr().err.splitlines()] == [
        "error",
        "why",
        "next",
    ]


def test_help_names_every_command(run: Run) -> None:
    done = run("--help")
    assert done.returncode == 0
    for command in ("up", "down", "status", "fault", "site", "serve"):
        assert command in done.stdout


def test_a_site_folder_is_written_without_a_lab(run: Run, tmp_path: Path) -> None:
    assert run("site", "--nodes", "3", "--out", str(tmp_path / "mine")).returncode == 0
    assert "lab-n03" in (tmp_path / "mine" / "racks.yaml").read_text()
