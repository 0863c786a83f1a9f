"""A few kills of the runner in a bring-up of light nodes; `tests/real/kill.py` does fifty."""

from __future__ import annotations

import os
import random
from pathlib import Path

import pytest

from benchmarks.light_site import LightSite
from tests.real.kill import asked, judge, kill_runner, one_pass

pytestmark = [pytest.mark.lab, pytest.mark.timeout(300)]


def test_a_runner_killed_at_random_moments_loses_nothing_and_does_nothing_twice(tmp_path: Path) -> None:
    if os.geteuid() != 0:
        pytest.skip("BMCs listen on port 623, which needs root")
    with LightSite(4, tmp_path / "light", net=97, seconds=2) as site:
        try:
            start = ["bringup", "--nodes", "@*"]
            done = judge(site.environment, one_pass(site.environment, random.Random(11), 3.0, start, 3))
            assert not done.wrong
            assert done.kills  # how many of the three depends on how long this machine takes for the run
            deploys, power = asked(site)
            assert set(deploys.values()) == {1}, deploys
            assert power == 0
        finally:
            kill_runner(Path(site.environment["MUSTER_STATE"]))
