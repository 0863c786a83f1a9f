"""bmc.*: event log, sensors, FRU, identify LED and BMC reset over node sets."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from bmc.capability import Bmc, BmcTarget, FirmwareItem, Reading, SelEntry
from bmc.drivers import connect_redfish
from inventory.nodeset import fold
from provision import guards
from provision.cli import fleet, render
from provision.cli.command import command
from provision.cli.confirm import asking
from provision.cli.selection import NODES, OUTPUT, POOL, RACK, open_site, select
from provision.errors import BadRequest

_SELECT = {"nodes": NODES, "rack": RACK, "pool": POOL}


@command({**_SELECT, "raw": "show the 16 bytes of each record too", "output": OUTPUT}, lists=("rack",))
def sel(
    nodes: str = "", rack: Sequence[str] = (), pool: str = "", raw: bool = False, output: str = "table"
) -> None:
    """Read the event logs (SEL), oldest first."""
    access = open_site(prepare=True)

    async def read(bmc: Bmc) -> tuple[SelEntry, ...]:
        return await bmc.sel()

    results = fleet.ask(access, select(access, nodes, rack, pool), read)
    rows = [
        {
            "node": name,
            "id": entry.record_id,
            "time": entry.time or "clock not set",
            "severity": entry.severity,
            "sensor": entry.sensor,
            "event": entry.event if entry.asserted else f"{entry.event} (deasserted)",
            "raw": entry.raw.hex(),
        }
        for name, result in results.items()
        if not isinstance(result, Exception)
        for entry in result
    ]
    columns = ("node", "id", "time", "severity", "sensor", "event", *(("raw",) if raw else ()))
    render.answer("sel", rows, columns, output)
    fleet.failures(results)


@command({**_SELECT, "output": OUTPUT}, lists=("rack",))
def sensors(nodes: str = "", rack: Sequence[str] = (), pool: str = "", output: str = "table") -> None:
    """Read the sensors."""
    access = open_site(prepare=True)

    async def read(bmc: Bmc) -> tuple[Reading, ...]:
        return await bmc.sensors()

    results = fleet.ask(access, select(access, nodes, rack, pool), read)
    rows = [
        {
            "node": name,
            "sensor": reading.name,
            "value": None if reading.value is None else round(reading.value, 3),
            "unit": reading.unit,
            "health": reading.health,
            "states": ", ".join(reading.states),
            "thresholds": ", ".join(f"{key} {value:g}" for key, value in reading.thresholds.items()),
        }
        for name, result in results.items()
        if not isinstance(result, Exception)
        for reading in result
    ]
    render.answer("sensors", rows, ("node", "sensor", "value", "unit", "health", "states"), output)
    fleet.failures(results)


@command({**_SELECT, "output": OUTPUT}, lists=("rack",))
def fru(nodes: str = "", rack: Sequence[str] = (), pool: str = "", output: str = "table") -> None:
    """Read the FRU inventories: serials, part numbers, makers."""
    access = open_site(prepare=True)

    async def read(bmc: Bmc) -> dict[str, dict[str, str]]:
        return await bmc.fru()

    results = fleet.ask(access, select(access, nodes, rack, pool), read)
    rows = [
        {"node": name, "device": device, "field": field, "value": value}
        for name, result in results.items()
        if not isinstance(result, Exception)
        for device, fields in result.items()
        for field, value in fields.items()
    ]
    render.answer("fru", rows, ("node", "device", "field", "value"), output)
    fleet.failures(results)


@command({**_SELECT, "output": OUTPUT}, lists=("rack",))
def firmware(nodes: str = "", rack: Sequence[str] = (), pool: str = "", output: str = "table") -> None:
    """List firmware versions, over Redfish."""
    access = open_site(prepare=True)

    async def read(target: BmcTarget) -> tuple[FirmwareItem, ...]:
        async with connect_redfish(target) as bmc:
            return await bmc.firmware()

    results = fleet.run(access, select(access, nodes, rack, pool), read)
    rows = [
        {"node": name, "id": item.id, "component": item.name, "version": item.version}
        for name, result in results.items()
        if not isinstance(result, Exception)
        for item in result
    ]
    render.answer("firmware", rows, ("node", "id", "component", "version"), output)
    fleet.failures(results)


@command(
    {
        **_SELECT,
        "on": "light it until told otherwise",
        "off": "switch it off",
        "seconds": "light it this long (default 60)",
    },
    lists=("rack",),
)
def identify(
    nodes: str = "",
    rack: Sequence[str] = (),
    pool: str = "",
    on: bool = False,
    off: bool = False,
    seconds: str = "60",
) -> None:
    """Light the identify LED, so that the node can be found in the room."""
    if on and off:
        raise BadRequest("--on", "--on and --off together make no sense", "give one of them")
    if not seconds.isdigit() or not 0 < int(seconds) <= 255:
        raise BadRequest(
            "--seconds", f"{seconds} is not between 1 and 255", "use --on to light it until told otherwise"
        )
    access = open_site(prepare=True)
    length = 0 if on else int(seconds)

    async def light(bmc: Bmc) -> str:
        await bmc.identify(on=not off, seconds=length)
        return "identify off" if off else "identify on" + ("" if on else f" for {seconds} s")

    results = fleet.ask(access, select(access, nodes, rack, pool), light)
    sys.stdout.write(fleet.folded({n: r for n, r in results.items() if isinstance(r, str)}) + "\n")
    fleet.failures(results)


@command({**_SELECT, "reason": "why, for the record", "yes": "do not ask"}, lists=("rack",))
def reset(
    nodes: str = "", rack: Sequence[str] = (), pool: str = "", reason: str = "", yes: bool = False
) -> None:
    """Cold-reset BMCs. The nodes keep running; their consoles and sessions break off."""
    access = open_site(prepare=True)
    chosen = select(access, nodes, rack, pool)
    plan = f"this resets the BMCs of {fold(node.name for node in chosen)}."
    consent = guards.ask(access, chosen, action="bmc reset", plan=plan, asking=asking(yes=yes, reason=reason))

    async def cold(bmc: Bmc) -> str:
        await bmc.reset_bmc()
        return "BMC resetting"

    results = fleet.ask(access, chosen, cold)
    for name in consent.nodes:
        access.store.event(
            name, "bmc-reset", actor=consent.who, message=f"BMC reset: {reason or 'no reason given'}"
        )
    sys.stdout.write(fleet.folded({n: r for n, r in results.items() if isinstance(r, str)}) + "\n")
    fleet.failures(results)
