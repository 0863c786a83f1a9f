"""NVIDIA HGX and DGX management controllers: many chassis, the event log of the baseboard."""

from __future__ import annotations

from bmc.errors import BadAnswer, Unsupported
from bmc.redfish.client import Client
from bmc.redfish.tasks import finished
from bmc.redfish.vendor import Layout, Vendor


def _serial(layout: Layout) -> str | None:
    return layout.chassis.text("SerialNumber") or layout.system.text("SerialNumber")


async def _ac_cycle(client: Client, layout: Layout) -> None:
    """Cut the tray's standby power, where the chassis offers it."""
    target = layout.chassis.text(
        "Actions", "Oem", "#NvidiaChassis.AuxPowerReset", "target"
    ) or layout.chassis.action("#Chassis.AuxPowerReset")
    if target is None:
        raise Unsupported(client.node, client.host, "an AC cycle")
    await client.post(target, {"ResetType": "AuxPowerCycle"})


async def _support_dump(client: Client, layout: Layout, deadline_s: float) -> tuple[str, bytes]:
    """Collect diagnostic data of the BMC into its dump log and fetch it."""
    log = f"{layout.manager.path}/LogServices/Dump"
    target = (await client.get(log)).action("#LogService.CollectDiagnosticData")
    if target is None:
        raise Unsupported(client.node, client.host, "diagnostic data")
    await finished(client, await client.post(target, {"DiagnosticDataType": "Manager"}), deadline_s)
    entries = await client.members(f"{log}/Entries")
    where = entries[-1].text("AdditionalDataURI") if entries else None
    if where is None:
        raise BadAnswer(client.node, client.host, "the dump has no place")
    return "nvidia-dump.tar.xz", (await client.ask("GET", where)).body


NVIDIA = Vendor(
    name="nvidia",
    words=("nvidia", "hgx", "dgx"),
    serial=_serial,
    logs=("EventLog", "SEL"),
    ac_cycle=_ac_cycle,
    support_dump=_support_dump,
)
