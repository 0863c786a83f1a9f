"""Supermicro X11 to X14 and H11 to H14: event log, AC cycle by its own actions.

Screens: X9 and X10 boards have a preview behind their web pages only, with a token that later
firmware changed; there is none over Redfish, so the rendered console stands in.
"""

from __future__ import annotations

from bmc.errors import Unsupported
from bmc.redfish.client import Client
from bmc.redfish.resource import Resource
from bmc.redfish.tasks import finished
from bmc.redfish.vendor import Layout, Vendor


def _serial(layout: Layout) -> str | None:
    """Return the chassis' serial; boards say "To be filled by O.E.M." where nobody filled it."""
    for found in (layout.chassis, layout.system):
        serial = found.text("SerialNumber")
        if serial and "filled" not in serial.lower() and serial.strip("0"):
            return serial
    return None


async def _ac_cycle(client: Client, layout: Layout) -> None:
    """Reset the board's standby power where the firmware offers it."""
    for found, action in (
        (layout.system, "#SmcSystemReset.ACCycle"),
        (layout.chassis, "#SmcChassis.ACCycle"),
        (layout.chassis, "#Chassis.Reset"),
    ):
        target = found.action(action)
        kinds = found.texts("Actions", action, "ResetType@Redfish.AllowableValues")
        if target is not None and (action != "#Chassis.Reset" or "FullPowerCycle" in kinds):
            await client.post(target, {"ResetType": "FullPowerCycle"} if kinds else {})
            return
    raise Unsupported(client.node, client.host, "an AC cycle")


async def _support_dump(client: Client, layout: Layout, deadline_s: float) -> tuple[str, bytes]:
    """Have the BMC collect its crash dump and fetch it."""
    path = layout.manager.link("Oem", "Supermicro", "SmcDumpService") or ""
    service = await client.get(path) if path else Resource("", {})
    collect = service.action("#SmcDumpService.Collect") or service.action("#SmcDumpService.CreateDump")
    fetch = service.action("#SmcDumpService.Download")
    if collect is None or fetch is None:
        raise Unsupported(client.node, client.host, "a support dump")
    await finished(client, await client.post(collect, {}), deadline_s)
    return "smc-dump.bin", (await client.post(fetch, {})).body


SUPERMICRO = Vendor(
    name="supermicro",
    words=("supermicro", "super micro", "smc"),
    serial=_serial,
    logs=("Log1", "SEL", "EventLog"),
    ac_cycle=_ac_cycle,
    support_dump=_support_dump,
)
