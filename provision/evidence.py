"""What is saved about a node before anything is done to it that would destroy the traces."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path

from bmc.capability import Bmc, BmcTarget
from bmc.drivers import connect
from bmc.errors import BmcError, Unreachable


async def save_bmc(target: BmcTarget, folder: Path) -> Path:
    """Write SEL, sensors, FRU and power state of a BMC into a new file under `folder`.

    What could not be read is written as the reason it could not: a partial capture says so.
    """
    found: dict[str, object] = {"taken_at": datetime.now(UTC).isoformat(), "node": target.name}
    missing: list[str] = []
    try:
        async with connect(target) as bmc:
            for part, read in _parts(bmc):
                try:
                    found[part] = await read()
                except Unreachable:
                    raise
                except BmcError as error:  # a BMC without a SEL still has sensors
                    missing.append(f"{part}: {error}")
    except BmcError as error:
        missing.append(str(error))
    if missing:
        found["incomplete"] = "; ".join(missing)
    path = folder / f"bmc-{datetime.now(UTC):%Y%m%dT%H%M%SZ}.json"
    path.write_text(json.dumps(found, indent=1, sort_keys=True) + "\n", encoding="utf-8")
    return path


def _parts(bmc: Bmc) -> tuple[tuple[str, Callable[[], Awaitable[object]]], ...]:
    async def identity() -> object:
        return asdict(await bmc.identity())

    async def power() -> object:
        return str(await bmc.power_state())

    async def sel() -> object:
        return [
            {
                **asdict(entry),
                "time": entry.time.isoformat() if entry.time else None,
                "raw": entry.raw.hex(),
            }
            for entry in await bmc.sel()
        ]

    async def sensors() -> object:
        return [asdict(reading) for reading in await bmc.sensors()]

    async def fru() -> object:
        return await bmc.fru()

    return (("identity", identity), ("power", power), ("sel", sel), ("sensors", sensors), ("fru", fru))
