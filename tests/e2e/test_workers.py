"""Two workers at one PostgreSQL site: both work, one is killed and adopted, and nothing is done twice."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing
from pathlib import Path

import pytest

from benchmarks.light_site import LightSite
from inventory.store import Store
from provision import engine, workers
from tests.contract.inventory.conftest import fresh_postgresql, server
from tests.real.kill import INVOKE, ROOT, asked, invoke

__all__ = ["fresh_postgresql", "server"]  # fixtures
pytestmark = [pytest.mark.lab, pytest.mark.timeout(300)]

NODES = 8


def wait_for(seen: Callable[[], object], what: str, seconds: float = 90) -> None:
    deadline = time.monotonic() + seconds
    while not seen():
        assert time.monotonic() < deadline, f"never {what}"
        time.sleep(0.1)


@pytest.fixture
def light(tmp_path: Path) -> Iterator[LightSite]:
    if os.geteuid() != 0:
        pytest.skip("BMCs listen on port 623, which needs root")
    with LightSite(NODES, tmp_path / "light", net=96, seconds=6) as site:
        yield site


def start_worker(environment: Mapping[str, str], host: str, folder: Path) -> subprocess.Popen[bytes]:
    state = folder / host
    if not state.exists():
        shutil.copytree(environment["MUSTER_STATE"], state)
    with (folder / f"{host}.log").open("ab") as log:
        return subprocess.Popen(
            [INVOKE, "worker"], cwd=ROOT, stdin=subprocess.DEVNULL, stdout=log, stderr=log,
            env={**environment, "MUSTER_HOST": host, "MUSTER_STATE": str(state)},
        )  # fmt: skip


def test_one_of_two_workers_is_killed_and_adopted(
    light: LightSite, fresh_postgresql: Callable[[], str], tmp_path: Path
) -> None:
    url = fresh_postgresql()
    environment = {**light.environment, "MUSTER_DATABASE_URL": url, "MUSTER_HOST": "desk"}
    engine.migrate(url)
    alpha, beta = (start_worker(environment, host, tmp_path) for host in ("alpha", "beta"))
    try:
        with closing(engine.Client(url)) as client, Store.open(url) as store:
            for host in ("alpha", "beta"):
                wait_for(lambda host=host: workers.alive(url, host), f"{host} alive")
            run = invoke(environment, "bringup", "--nodes", "@*", "--yes", "--no-wait").strip()
            assert not (Path(environment["MUSTER_STATE"]) / "runner.lock").exists()  # nobody else was started
            wait_for(lambda: {"alpha", "beta"} <= set(client.executors()), "both at work")
            os.kill(alpha.pid, signal.SIGKILL)
            alpha.wait()
            wait_for(lambda: not workers.alive(url, "alpha"), "alpha dead")
            assert client.executors()["alpha"] > 0
            told = invoke(environment, "adopt", "--host", "alpha", "--reason", "rehearsal", "--yes")
            assert "parts of alpha go on elsewhere" in told
            assert "alpha" not in client.executors()
            invoke(environment, "adopt", "--host", "alpha", "--yes", ok=(5,))

            invoke(environment, "watch", "--run", run)
            assert set(client.executors()) <= {"beta"}
            pools = {name: str(state.pool) for name, state in store.nodes().items()}
            assert pools == {f"light-n{n:03}": "reliable" for n in range(1, NODES + 1)}
        deploys, power = asked(light)
        assert set(deploys.values()) == {1}, deploys
        assert power == 0
        beta.send_signal(signal.SIGTERM)
        assert beta.wait(30) == 0
    finally:
        for process in (alpha, beta):
            if process.poll() is None:
                process.kill()
                process.wait()


def test_a_worker_that_is_started_again_takes_up_what_it_had(
    light: LightSite, fresh_postgresql: Callable[[], str], tmp_path: Path
) -> None:
    url = fresh_postgresql()
    environment = {**light.environment, "MUSTER_DATABASE_URL": url, "MUSTER_HOST": "desk"}
    engine.migrate(url)
    first = start_worker(environment, "alpha", tmp_path)
    wait_for(lambda: workers.alive(url, "alpha"), "alpha alive")
    with closing(engine.Client(url)) as client:
        run = invoke(environment, "bringup", "--nodes", "light-n[001-002]", "--yes", "--no-wait").strip()
        wait_for(lambda: client.executors().get("alpha", 0) > 2, "at work")
        invoke(environment, "adopt", "--host", "alpha", "--yes", ok=(3,))  # it lives
    os.kill(first.pid, signal.SIGKILL)
    first.wait()
    wait_for(lambda: not workers.alive(url, "alpha"), "alpha dead")
    second = start_worker(environment, "alpha", tmp_path)
    twin = None
    try:
        invoke(environment, "watch", "--run", run)
        shutil.copytree(
            tmp_path / "alpha", tmp_path / "twin" / "alpha", ignore=shutil.ignore_patterns("*.lock")
        )
        twin = start_worker(environment, "alpha", tmp_path / "twin")
        assert twin.wait(60) == 3  # another state folder, the same name
        assert (tmp_path / "twin" / "alpha.log").read_bytes() != b""
    finally:
        for process in (second, twin):
            if process is not None and process.poll() is None:
                process.kill()
                process.wait()
