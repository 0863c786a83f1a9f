"""The image's dmidecode and docker: read by the product's own readers, under the faults in force."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from health.readers.containers import read_docker

IMAGE = Path(__file__).parents[3] / "lab" / "nodes" / "image" / "usr"


def run(share: Path, program: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-B", str(IMAGE / program), *arguments],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "LAB_SHARE": str(share)},
    )


@pytest.mark.skipif(os.geteuid() != 0, reason="dmidecode needs root")
@pytest.mark.parametrize("gone", [0, 1, 32])
def test_as_many_slots_are_empty_as_dimms_are_missing(tmp_path: Path, gone: int) -> None:
    (tmp_path / "faults").write_text(f"dimm-missing {gone}\n" if gone else "")
    text = run(tmp_path, "sbin/dmidecode", "--type", "17").stdout
    assert text.count("Memory Device\n") == 32
    assert text.count("Size: No Module Installed\n") == gone
    assert text.count("Size: 64 GB\n") == 32 - gone


def test_a_daemon_that_answers_lists_its_runtimes(tmp_path: Path) -> None:
    (tmp_path / "faults").write_text("")
    for form in ((), ("--format", "{{json .}}")):
        found = read_docker(run(tmp_path, "bin/docker", "info", *form).stdout)
        assert (found.version, found.errors) == ("25.0.3", ())
        assert "nvidia" in (found.runtimes or ())


def test_a_missing_runtime_is_missing_in_both_forms(tmp_path: Path) -> None:
    (tmp_path / "faults").write_text("docker-no-nvidia 1\n")
    for form in ((), ("--format", "{{json .}}")):
        assert "nvidia" not in (read_docker(run(tmp_path, "bin/docker", "info", *form).stdout).runtimes or ())


def test_a_dead_daemon_is_an_error_in_both_forms(tmp_path: Path) -> None:
    (tmp_path / "faults").write_text("docker-dead 1\n")
    plain, formatted = (
        run(tmp_path, "bin/docker", "info"),
        run(tmp_path, "bin/docker", "info", "--format", "{{json .}}"),
    )
    assert (plain.returncode, formatted.returncode) == (1, 0)
    for done in (plain, formatted):
        assert "Cannot connect to the Docker daemon" in read_docker(done.stdout).errors[0]
