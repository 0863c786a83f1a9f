"""Other programs: what they leave, and that none outlives the call that ran it."""

from __future__ import annotations

import asyncio
import os
import signal
from pathlib import Path

import pytest

from provision import processes
from provision.processes import Ended, TooMuchOutput


def sh(script: str) -> list[str]:
    return ["/bin/sh", "-c", script]


async def begun(file: Path) -> int:
    """Return the pid that a program writes into `file` once it runs."""
    while not file.exists() or not file.read_text().endswith("\n"):
        await asyncio.sleep(0.01)
    return int(file.read_text())


def gone(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return True
    return False


async def test_input_both_outputs_and_the_status_are_its_own() -> None:
    ended = await processes.run(sh("cat; echo told >&2; exit 3"), stdin=b"\xffab\n" * 3, timeout_s=10)
    assert ended == Ended(3, b"\xffab\n" * 3, b"told\n")


async def test_without_input_it_reads_an_end() -> None:
    assert await processes.run(["cat"], timeout_s=10) == Ended(0, b"", b"")


async def test_a_signal_that_ended_it_is_no_success() -> None:
    assert (await processes.run(sh("kill -9 $$"), timeout_s=10)).status == -signal.SIGKILL


async def test_its_environment_is_the_one_given() -> None:
    ended = await processes.run(["/usr/bin/env"], env={"A": "b"}, timeout_s=10)
    assert ended.stdout == b"A=b\n"


async def test_a_program_that_is_not_there_is_said() -> None:
    with pytest.raises(FileNotFoundError):
        await processes.run(["/no/such/program"], timeout_s=10)


async def test_more_output_than_allowed_is_a_failure_and_as_much_is_none() -> None:
    told = await processes.run(sh("printf 1234"), timeout_s=10, limit=4)
    assert told.stdout == b"1234"
    with pytest.raises(TooMuchOutput, match="more than 4 bytes"):
        await processes.run(["printf", "12345"], timeout_s=10, limit=4)


async def test_what_takes_too_long_is_stopped(tmp_path: Path) -> None:
    with pytest.raises(TimeoutError):
        await processes.run(sh(f"echo $$ > {tmp_path}/pid; exec sleep 60"), timeout_s=0.5)
    assert gone(await begun(tmp_path / "pid"))


async def test_whoever_is_cancelled_leaves_nothing_running(tmp_path: Path) -> None:
    task = asyncio.create_task(processes.run(sh(f"echo $$ > {tmp_path}/pid; exec sleep 60"), timeout_s=60))
    pid = await begun(tmp_path / "pid")
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert gone(pid)


async def test_others_go_on_while_one_runs() -> None:
    first = asyncio.create_task(processes.run(["sleep", "60"], timeout_s=60))
    assert (await processes.run(["echo", "b"], timeout_s=10)).stdout == b"b\n"
    assert not first.done()
    first.cancel()
