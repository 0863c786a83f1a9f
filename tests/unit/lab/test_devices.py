"""Word from inside a node."""

from __future__ import annotations

import asyncio
from pathlib import Path

from lab.nodes.devices import Devices


async def test_what_the_last_system_said_is_not_taken_for_word_of_the_next(tmp_path: Path) -> None:
    heard: list[str] = []
    told = asyncio.Event()

    def hear(word: str) -> None:
        heard.append(word)
        told.set()

    devices = Devices(tmp_path, hear)
    try:
        asked = tmp_path / "asked"
        asked.write_text("booted\n")
        devices.boot()
        asked.write_text("gpus\n")
        await asyncio.wait_for(told.wait(), 5)
    finally:
        devices.close()
    assert heard == ["gpus"]
