"""Everything that `capability.Bmc` promises, over Redfish; makers differ by their `Vendor`."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from pathlib import Path
from typing import TypeVar

from bmc.capability import (
    BiosChange,
    BiosValue,
    BmcIdentity,
    BootSetting,
    BootTarget,
    Certificate,
    FirmwareItem,
    Job,
    Metric,
    Picture,
    PowerAction,
    PowerState,
    Reading,
    SelEntry,
)
from bmc.errors import BadAnswer, CommandRefused, Unreachable, Unsupported
from bmc.power import Switch
from bmc.redfish import bios, log, readings, service, tasks
from bmc.redfish.client import ROOT, Client
from bmc.redfish.resource import Resource
from bmc.redfish.vendor import Layout, Vendor

T = TypeVar("T")

_RESETS = {
    PowerAction.ON: ("On", "ForceOn"),
    PowerAction.OFF: ("ForceOff",),
    PowerAction.SOFT: ("GracefulShutdown",),
    PowerAction.RESET: ("ForceRestart",),
}
_TARGETS = {
    BootTarget.NONE: ("None",),
    BootTarget.PXE: ("Pxe",),
    BootTarget.DISK: ("Hdd",),
    BootTarget.CD: ("Cd",),
    BootTarget.BIOS: ("BiosSetup",),
}
_TARGET_OF = {words[0]: target for target, words in _TARGETS.items()} | {"UefiHttp": BootTarget.PXE}
_ENABLED = "BootSourceOverrideEnabled"


class Redfish:
    """A BMC spoken to over Redfish; `client` must be open and stays the caller's to close."""

    def __init__(self, client: Client, vendor: Vendor) -> None:
        self.client = client
        self.vendor = vendor
        self.node, self.host = client.node, client.host
        self._layout: Layout | None = None
        self._switch = Switch(self.node, self.host, self.power_state, self._reset)

    async def layout(self) -> Layout:
        """Find the node in the BMC's tree: the system that can be reset, its chassis, its manager."""
        if self._layout is None:
            system = await self._system()
            chassis = await self._first(system, ("Links", "Chassis"), "Chassis")
            manager = await self._first(system, ("Links", "ManagedBy"), "Managers")
            self._layout = Layout(system, chassis, manager)
        return self._layout

    async def _system(self) -> Resource:
        path = self.client.root.link("Systems") or f"{ROOT}/Systems"
        members = (await self.client.get(path)).links("Members")
        for member in members:  # a GPU baseboard is a system of its own, without power control
            system = await self.client.get(member)
            if system.action("#ComputerSystem.Reset") and system.text("PowerState"):
                return system
        raise BadAnswer(self.node, self.host, f"{path} holds no system with power")

    async def _first(self, system: Resource, keys: tuple[str, str], collection: str) -> Resource:
        linked = system.links(*keys)
        if not linked:
            path = self.client.root.link(collection) or f"{ROOT}/{collection}"
            linked = (await self.client.get(path)).links("Members")
        if not linked:
            raise BadAnswer(self.node, self.host, f"there is nothing under {collection}")
        return await self.client.get(linked[0])

    async def _system_now(self) -> Resource:
        return await self.client.get((await self.layout()).system.path)

    # --- identity

    async def identity(self) -> BmcIdentity:
        layout = await self.layout()
        system = layout.system
        return BmcIdentity(
            protocol="redfish",
            manufacturer=system.text("Manufacturer") or self.client.root.text("Vendor") or self.vendor.name,
            product=system.text("Model") or "",
            firmware=layout.manager.text("FirmwareVersion") or "",
            guid=(system.text("UUID") or "").lower(),
            serial=self.vendor.serial(layout),
        )

    # --- power

    async def power_state(self) -> PowerState:
        word = (await self._system_now()).text("PowerState")
        if word is None:
            raise BadAnswer(self.node, self.host, "the system has no PowerState")
        # A node on its way up draws power; one on its way down has not let go of it yet.
        return PowerState.OFF if word == "Off" else PowerState.ON

    async def set_power(self, action: PowerAction, *, wait_s: float = 60.0) -> PowerState:
        """Act, then wait for the wanted state. Raises PowerNotReached after `wait_s`."""
        return await self._switch.set(action, wait_s)

    async def _reset(self, action: PowerAction) -> None:
        system = (await self.layout()).system
        name = "#ComputerSystem.Reset"
        target = system.action(name)
        if target is None:
            raise Unsupported(self.node, self.host, "power control")
        offered = system.texts("Actions", name, "ResetType@Redfish.AllowableValues")
        kind = next((kind for kind in _RESETS[action] if kind in offered), _RESETS[action][0])
        await self.client.post(target, {"ResetType": kind})

    async def ac_cycle(self) -> None:
        await self._own(self.vendor.ac_cycle, "an AC cycle")(self.client, await self.layout())

    # --- boot device

    async def boot_setting(self) -> BootSetting:
        boot = await self._system_now()
        word = boot.text("Boot", "BootSourceOverrideTarget") or "None"
        target = _TARGET_OF.get(word)
        if target is None:
            raise BadAnswer(self.node, self.host, f"unknown boot device {word!r}")
        enabled = boot.text("Boot", _ENABLED)
        return BootSetting(
            target=target,
            uefi=boot.text("Boot", "BootSourceOverrideMode") != "Legacy",
            persistent=enabled == "Continuous",
            valid=enabled in ("Once", "Continuous"),
        )

    async def set_boot(
        self, target: BootTarget, *, uefi: bool = True, persistent: bool = False
    ) -> BootSetting:
        """Set, read back, and return what the BMC now holds."""
        system = await self._system_now()
        once = "Continuous" if persistent else "Once"
        boot: dict[str, object] = {
            "BootSourceOverrideTarget": _TARGETS[target][0],
            _ENABLED: "Disabled" if target is BootTarget.NONE else once,
        }
        if system.text("Boot", "BootSourceOverrideMode") is not None:  # BMCs that have no mode refuse it
            boot["BootSourceOverrideMode"] = "UEFI" if uefi else "Legacy"
        settings = system.link("@Redfish.Settings", "SettingsObject")
        try:
            await self.client.patch(system.path, {"Boot": boot})
        except (CommandRefused, Unsupported):
            if settings is None:
                raise
            await self.client.patch(settings, {"Boot": boot})
        return await self.boot_setting()

    # --- event log

    async def logs(self) -> dict[str, str]:
        """Return the id of every log that the BMC keeps, and where it is."""
        layout = await self.layout()
        found: dict[str, str] = {}
        for owner in (layout.system, layout.manager, layout.chassis):
            path = owner.link("LogServices")
            for member in (await self.client.get(path)).links("Members") if path else ():
                found.setdefault(member.rsplit("/", 1)[-1], member)
        return found

    async def _event_log(self) -> Resource:
        found = {name.lower(): path for name, path in (await self.logs()).items()}
        for name in self.vendor.logs:
            if name.lower() in found:
                return await self.client.get(found[name.lower()])
        raise Unsupported(self.node, self.host, "an event log")

    async def sel(self) -> tuple[SelEntry, ...]:
        """Return the event log, oldest first."""
        return await self._entries(await self._event_log())

    async def log(self, name: str) -> tuple[SelEntry, ...]:
        """Return one of `logs`, oldest first: for example a lifecycle log. Raises Unsupported."""
        path = (await self.logs()).get(name)
        if path is None:
            raise Unsupported(self.node, self.host, f"a log called {name}")
        return await self._entries(await self.client.get(path))

    async def _entries(self, found: Resource) -> tuple[SelEntry, ...]:
        path = found.link("Entries") or f"{found.path}/Entries"
        members = await self.client.members(path)
        entries = [log.entry(member, index) for index, member in enumerate(members, 1)]
        return tuple(sorted(entries, key=lambda entry: entry.record_id))

    async def clear_sel(self) -> None:
        target = (await self._event_log()).action("#LogService.ClearLog")
        if target is None:
            raise Unsupported(self.node, self.host, "clearing the event log")
        await self.client.post(target, {})

    # --- sensors and inventory

    async def sensors(self) -> tuple[Reading, ...]:
        """Read every chassis' sensors: a GPU baseboard has a chassis of its own for each GPU."""
        await self.layout()
        path = self.client.root.link("Chassis") or f"{ROOT}/Chassis"
        found: list[Reading] = []
        for chassis in await self.client.members(path):
            found += await self._chassis_sensors(chassis)
        return tuple(found)

    async def _chassis_sensors(self, chassis: Resource) -> list[Reading]:
        modern = chassis.link("Sensors")
        if modern is not None:
            members = await self._parts(modern)
            if members:
                return [reading for member in members if (reading := readings.sensor(member))]
        old: list[Reading] = []
        for name, read in (("Thermal", readings.thermal), ("Power", readings.power)):
            link = chassis.link(name)
            if link is not None:
                old += read(await self.client.get(link))
        return old

    async def fru(self) -> dict[str, dict[str, str]]:
        """Return device name -> field -> value for system, chassis, processors and memory."""
        layout = await self.layout()
        found = {"system": _fields(layout.system), "chassis": _fields(layout.chassis)}
        for part in ("Processors", "Memory"):
            for member in await self._parts(layout.system.link(part)):
                name = member.text("Name") or member.text("Id") or member.path
                found[name if name not in found else member.path] = _fields(member)
        return {name: fields for name, fields in found.items() if fields}

    async def _parts(self, path: str | None) -> tuple[Resource, ...]:
        """Return a collection's members: none where its link leads nowhere."""
        try:
            return await self.client.members(path) if path else ()
        except Unsupported:
            return ()

    # --- the controller

    async def identify(self, *, on: bool, seconds: int = 60) -> None:  # noqa: ARG002  it knows no time
        """Blink the locator until it is told to stop."""
        system = await self._system_now()
        if system.flag("LocationIndicatorActive") is not None or system.text("IndicatorLED") is None:
            await self.client.patch(system.path, {"LocationIndicatorActive": on})
        else:
            await self.client.patch(system.path, {"IndicatorLED": "Blinking" if on else "Off"})

    async def reset_bmc(self) -> None:
        manager = (await self.layout()).manager
        target = manager.action("#Manager.Reset")
        if target is None:
            raise Unsupported(self.node, self.host, "a reset of the BMC")
        offered = manager.texts("Actions", "#Manager.Reset", "ResetType@Redfish.AllowableValues")
        kind = "ForceRestart" if "GracefulRestart" not in offered and offered else "GracefulRestart"
        try:
            await self.client.post(target, {"ResetType": kind})
        except (Unreachable, BadAnswer):
            return  # some restart before they answer

    async def ready(self) -> bool:
        """Tell whether the BMC takes work; some need minutes after a reset."""
        if self.vendor.ready is not None:
            return await self.vendor.ready(self.client, await self.layout())
        return (await self.layout()).manager.health() != "critical"

    # --- what only some have

    async def screenshot(self) -> Picture:
        return await self._own(self.vendor.screenshot, "a screenshot")(self.client, await self.layout())

    async def support_dump(self, *, deadline_s: float = 1800.0) -> tuple[str, bytes]:
        make = self._own(self.vendor.support_dump, "a support dump")
        return await make(self.client, await self.layout(), deadline_s)

    async def jobs(self) -> tuple[Job, ...]:
        """Return what the BMC does in the background, done or not."""
        own = self.vendor.jobs
        if own is not None:
            return await tasks.queue(self.client, own(await self.layout()))
        return await tasks.queue(
            self.client, f"{self.client.root.link('Tasks') or ROOT + '/TaskService'}/Tasks"
        )

    async def clear_jobs(self) -> None:
        await self._own(self.vendor.clear_jobs, "emptying its job queue")(self.client, await self.layout())

    async def tree(self, *, most: int = 500) -> dict[str, bytes]:
        """Return the JSON of up to `most` resources under systems, chassis and managers, by path."""
        return await service.tree(self.client, most)

    async def firmware(self) -> tuple[FirmwareItem, ...]:
        return await service.firmware(self.client)

    async def update_firmware(self, image: Path | str, *, at_reset: bool = False) -> str:
        return await service.update_firmware(self.client, image, at_reset=at_reset)

    async def bios(self) -> dict[str, BiosValue]:
        return await bios.attributes(self.client, (await self.layout()).system)

    async def plan_bios(self, wanted: Mapping[str, BiosValue]) -> tuple[BiosChange, ...]:
        return await bios.plan(self.client, (await self.layout()).system, wanted)

    async def apply_bios(self, changes: Sequence[BiosChange]) -> None:
        await bios.apply(self.client, (await self.layout()).system, changes)

    async def metrics(self) -> tuple[Metric, ...]:
        return await service.metrics(self.client)

    async def certificate(self) -> Certificate:
        return await service.certificate(self.client, (await self.layout()).manager)

    async def certificate_request(self) -> str:
        return await service.certificate_request(self.client, (await self.layout()).manager)

    async def replace_certificate(self, pem: str) -> None:
        await service.replace_certificate(self.client, (await self.layout()).manager, pem)

    def _own(self, function: Callable[..., Awaitable[T]] | None, feature: str) -> Callable[..., Awaitable[T]]:
        if function is None:
            raise Unsupported(self.node, self.host, feature)
        return function


_FIELDS = {
    "Manufacturer": "manufacturer",
    "Model": "model",
    "SerialNumber": "serial",
    "PartNumber": "part number",
    "SKU": "sku",
    "AssetTag": "asset tag",
    "MemoryDeviceType": "type",
    "DeviceLocator": "slot",
    "ProcessorType": "type",
}


def _fields(found: Resource) -> dict[str, str]:
    if found.text("Status", "State") == "Absent":
        return {}
    return {name: text for key, name in _FIELDS.items() if (text := found.text(key))}
