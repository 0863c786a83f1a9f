"""The line between command and daemon."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from lab.control import Answer, RemoteError, Request, ask
from lab.errors import BadRequest, NoService
from lab.listening import listen


async def serve(request: Request) -> Answer:
    if request["op"] == "fail":
        raise BadRequest("lab-n99", "no node", follow="look again") from ValueError("unknown")
    return {"echo": request["op"]}


async def test_an_answer_comes_back(tmp_path: Path) -> None:
    async with await listen(tmp_path / "s", serve):
        assert await asyncio.to_thread(ask, tmp_path / "s", {"op": "status"}) == {"echo": "status"}


async def test_an_error_keeps_place_cause_and_next_step(tmp_path: Path) -> None:
    async with await listen(tmp_path / "s", serve):
        with pytest.raises(RemoteError) as caught:
            await asyncio.to_thread(ask, tmp_path / "s", {"op": "fail"})
    error = caught.value
    assert (error.where, str(error), error.why, error.follow) == (
        "lab-n99",
        "no node",
        "unknown",
        "look again",
    )
    assert error.code == BadRequest.code


async def test_a_folder_with_a_long_name_is_no_obstacle(tmp_path: Path) -> None:
    folder = tmp_path / ("x" * 100) / ("y" * 100)
    folder.mkdir(parents=True)
    async with await listen(folder / "control.sock", serve):
        assert await asyncio.to_thread(ask, folder / "control.sock", {"op": "a"}) == {"echo": "a"}


def test_a_lab_that_is_down_is_named_as_such(tmp_path: Path) -> None:
    with pytest.raises(NoService) as caught:
        ask(tmp_path / "control.sock", {"op": "status"})
    assert caught.value.follow == "invoke lab.up"


async def test_only_root_reaches_the_socket(tmp_path: Path) -> None:
    async with await listen(tmp_path / "s", serve):
        assert (tmp_path / "s").stat().st_mode & 0o777 == 0o600
