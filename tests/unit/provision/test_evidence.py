"""What is saved of a BMC before power is cut: all that it gives, and the reason for what it does not."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from types import SimpleNamespace

import pytest

from bmc.capability import BmcIdentity, BmcTarget, Credential, PowerState
from bmc.errors import Unreachable, Unsupported
from provision import evidence

TARGET = BmcTarget("r1-n01", "192.0.2.1", Credential("u", "p"))


def connected(monkeypatch: pytest.MonkeyPatch, sel: Exception, asked: list[str]) -> None:
    async def identity() -> BmcIdentity:
        return BmcIdentity("ipmi", "Acme", "X", "1", "g-1", "S1")

    async def power_state() -> PowerState:
        return PowerState.ON

    async def no_sel() -> list[object]:
        raise sel

    async def sensors() -> list[object]:
        asked.append("sensors")
        return []

    async def fru() -> dict[str, str]:
        asked.append("fru")
        return {"Product Serial": "S1"}

    @asynccontextmanager
    async def connect(_target: BmcTarget) -> AsyncIterator[SimpleNamespace]:
        yield SimpleNamespace(
            identity=identity, power_state=power_state, sel=no_sel, sensors=sensors, fru=fru
        )

    monkeypatch.setattr(evidence, "connect", connect)


async def test_a_bmc_without_an_event_log_still_gives_sensors_and_fru(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    connected(monkeypatch, Unsupported("r1-n01", "192.0.2.1", "SEL"), [])
    saved = json.loads((await evidence.save_bmc(TARGET, tmp_path)).read_text())
    assert saved["fru"] == {"Product Serial": "S1"}
    assert saved["sensors"] == []
    assert "sel" not in saved
    assert saved["incomplete"] == "sel: r1-n01: BMC 192.0.2.1: does not support SEL"


async def test_a_bmc_that_fell_silent_is_not_waited_for_part_by_part(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    asked: list[str] = []
    connected(monkeypatch, Unreachable("r1-n01", "192.0.2.1", 4.5), asked)
    saved = json.loads((await evidence.save_bmc(TARGET, tmp_path)).read_text())
    assert asked == []
    assert saved["power"] == "on"
    assert "no answer within 4.5 s" in saved["incomplete"]
