"""What is saved about a node before anything is done to it that would destroy the traces."""

from __future__ import annotations

import json
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path

from bmc.capability import BmcTarget
from bmc.drivers import connect
from bmc.errors import BmcError


async def save_bmc(target: BmcTarget, folder: Path) -> Path:
    """Write SEL, sensors, FRU and power state of a BMC into a new file under `folder`.

    What could not be read is written as the reason it could not: a partial capture says so.
    """
    found: dict[str, object] = {"taken_at": datetime.now(UTC).isoformat(), "node": target.name}
    try:
        async with connect(target) as bmc:
            found["identity"] = asdict(await bmc.identity())
            found["power"] = str(await bmc.power_state())
            found["sel"] = [
                {
                    **asdict(entry),
                    "time": entry.time.isoformat() if entry.time else None,
                    "raw": entry.raw.hex(),
                }
                for entry in await bmc.sel()
            ]
            found["sensors"] = [asdict(reading) for reading in await bmc.sensors()]
            found["fru"] = await bmc.fru()
    except BmcError as error:
        found["incomplete"] = str(error)
    path = folder / f"bmc-{datetime.now(UTC):%Y%m%dT%H%M%SZ}.json"
    path.write_text(json.dumps(found, indent=1, sort_keys=True) + "\n", encoding="utf-8")
    return path
