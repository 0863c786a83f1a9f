"""The runner's lock and its handshake with commands: no run is left standing, no looker counts as one."""

from __future__ import annotations

import asyncio
import fcntl
import os
import signal
import threading
import time
from contextlib import closing
from pathlib import Path

import pytest

from provision import engine, runner
from provision.access import Access
from provision.errors import RunnerBusy
from provision.stages.job import Options


def test_the_holder_is_a_runner_only_once_it_takes_up_runs(tmp_path: Path) -> None:
    assert not runner.running(tmp_path)
    with runner.lock(tmp_path) as say:
        assert not runner.running(tmp_path)
        say(True)
        assert runner.running(tmp_path)
        say(False)
        assert not runner.running(tmp_path)
    assert not runner.running(tmp_path)


def test_a_second_runner_is_told_who_is_there(tmp_path: Path) -> None:
    # flock belongs to the open file, so the same process is refused as well.
    with (
        runner.lock(tmp_path),
        pytest.raises(RunnerBusy, match=f"process {os.getpid()}"),
        runner.lock(tmp_path),
    ):
        pass


def test_two_who_look_do_not_take_each_other_for_a_runner(tmp_path: Path) -> None:
    """What a killed runner wrote is still there; a looker's own hold on the file must not make it count."""
    (tmp_path / "runner.lock").write_text("4711 ready")
    with (tmp_path / "runner.lock").open() as other:
        fcntl.flock(other, fcntl.LOCK_SH)
        assert not runner.running(tmp_path)


def test_a_runner_starts_although_somebody_looks_at_that_moment(tmp_path: Path) -> None:
    path = tmp_path / "runner.lock"
    path.touch()
    looking, started = threading.Event(), threading.Event()

    def look() -> None:
        with path.open() as file:
            fcntl.flock(file, fcntl.LOCK_SH)
            looking.set()
            started.wait(0.1)

    thread = threading.Thread(target=look)
    thread.start()
    looking.wait()
    with runner.lock(tmp_path):
        started.set()
    thread.join()


async def test_a_run_enqueued_while_the_runner_is_about_to_end_keeps_it(access: Access) -> None:
    """The command saw "ready" and left it at that: the runner's last look must find its run."""
    engine.migrate(access.settings.engine_database)
    stop = asyncio.Event()
    said: list[bool] = []

    def say(ready: bool) -> None:
        said.append(ready)
        if said == [False]:
            with closing(engine.Client(access.settings.engine_database)) as client:
                client.submit("b-1", ["r1-n01"], Options())
        elif ready:
            stop.set()

    await runner._until_idle(access.settings, say, stop, 0.0)
    assert said == [False, True]


async def test_with_nothing_to_do_the_runner_says_so_before_it_ends(access: Access) -> None:
    engine.migrate(access.settings.engine_database)
    said: list[bool] = []
    await runner._until_idle(access.settings, said.append, asyncio.Event(), 0.0)
    assert said == [False]


# The runner outlives whoever started it, on purpose; Popen warns about that.
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.timeout(60)
def test_a_command_waits_for_the_runner_that_ends_and_starts_its_successor(access: Access) -> None:
    engine.migrate(access.settings.engine_database)
    state = access.settings.state
    ending = threading.Event()

    def end_slowly() -> None:
        with runner.lock(state):
            ending.set()
            time.sleep(1.5)  # the rest of its life; nothing is waited for here

    thread = threading.Thread(target=end_slowly)
    thread.start()
    ending.wait()
    runner.ensure(access.settings, patience_s=15)
    pid = int((state / "runner.lock").read_text().split()[0])
    try:
        assert pid != os.getpid()
        assert runner.running(state)
    finally:
        os.kill(pid, signal.SIGTERM)
        thread.join()
        deadline = time.monotonic() + 10
        while runner.running(state) and time.monotonic() < deadline:
            time.sleep(0.05)
    assert not runner.running(state)


async def test_a_database_that_does_not_answer_is_no_reason_to_end(access: Access) -> None:
    """Client.pending raises where there are no tables, as it does while a server restarts."""
    with closing(engine.Client(f"sqlite:///{access.settings.state}/none.sqlite")) as client:
        stop = asyncio.Event()
        asyncio.get_running_loop().call_later(0.3, stop.set)
        assert not await engine.quiet(client, stop, quiet_s=0.1, look_s=0.1)
