"""The system: power, boot override, what it is made of."""

from __future__ import annotations

from lab.bmc.bmc import Bmc, Identify
from lab.bmc.power import NEEDS_POWER, Action
from lab.bmc.redfish.answers import (
    CHASSIS,
    MANAGER,
    ROOT,
    SYSTEM,
    Answer,
    Json,
    Rejected,
    bad_value,
    choose,
    collection,
    error,
    link,
    resource,
    success,
    unknown_property,
)
from lab.bmc.redfish.service import Call, Route, with_members
from lab.bmc.spec import Privilege

OVERRIDES = {"None": None, "Pxe": "pxe", "UefiHttp": "pxe", "Hdd": "disk", "Cd": "cd", "BiosSetup": "bios"}
_TARGETS = {None: "None", "pxe": "Pxe", "disk": "Hdd", "cd": "Cd", "bios": "BiosSetup"}
_ENABLED = ("Disabled", "Once", "Continuous")
_MODES = ("UEFI", "Legacy")
_RESETS: dict[str, tuple[Action, ...]] = {
    "On": (Action.ON,),
    "ForceOff": (Action.OFF,),
    "ForceRestart": (Action.RESET,),
    "GracefulShutdown": (Action.SOFT,),
    "PushPowerButton": (Action.SOFT,),
    "Nmi": (Action.DIAGNOSE,),
    "PowerCycle": (Action.CYCLE,),
    "GracefulRestart": (Action.SOFT, Action.ON),
}
RESET_ACTION = f"{SYSTEM}/Actions/ComputerSystem.Reset"
_CPUS = 2
_GPUS = 8


async def _systems(_call: Call) -> Answer:
    return Answer(collection(f"{ROOT}/Systems", "ComputerSystemCollection", [link(SYSTEM)]))


async def _system(call: Call) -> Answer:
    bmc = call.bmc
    hardware, chassis = bmc.spec.hardware, bmc.spec.chassis
    return Answer(
        resource(
            SYSTEM,
            "ComputerSystem.v1_20_1.ComputerSystem",
            "System",
            Manufacturer=hardware.manufacturer,
            Model=hardware.product,
            SKU=chassis.serial,
            SerialNumber=chassis.serial,
            PartNumber=hardware.part,
            UUID=str(bmc.guid),
            HostName=chassis.name,
            SystemType="Physical",
            PowerState=power_state(bmc),
            IndicatorLED="Blinking" if bmc.identify is not Identify.OFF else "Off",
            LocationIndicatorActive=bmc.identify is not Identify.OFF,
            BiosVersion=call.service.firmware.get("BIOS.Setup.1-1", "2.3.5"),
            Boot=_boot(bmc),
            Status={"Health": health(bmc), "HealthRollup": health(bmc), "State": "Enabled"},
            ProcessorSummary={"Count": 2, "LogicalProcessorCount": 224, "Model": "Lab Processor 8480"},
            MemorySummary={"TotalSystemMemoryGiB": 2048, "Status": {"Health": "OK", "State": "Enabled"}},
            Processors=link(f"{SYSTEM}/Processors"),
            EthernetInterfaces=link(f"{SYSTEM}/EthernetInterfaces"),
            Bios=link(f"{SYSTEM}/Bios"),
            LogServices=link(f"{MANAGER}/LogServices"),
            Links={"Chassis": [link(CHASSIS)], "ManagedBy": [link(MANAGER)]},
            Oem={"Dell": {"DellSystem": {"SystemGeneration": "16G Monolithic", "NodeID": chassis.serial}}},
            Actions={
                "#ComputerSystem.Reset": {
                    "target": RESET_ACTION,
                    "ResetType@Redfish.AllowableValues": list(_RESETS),
                }
            },
        )
    )


def power_state(bmc: Bmc) -> str:
    return "On" if bmc.power.on else "Off"


def health(bmc: Bmc) -> str:
    """Return the worst state that a forced sensor shows."""
    crossed = [reading for reading in bmc.sensors.all() if reading.crossed]
    if any(reading.crossed & 0b110110 for reading in crossed):
        return "Critical"
    return "Warning" if crossed else "OK"


def _boot(bmc: Bmc) -> Json:
    override = bmc.boot.override
    device = override.device if override.valid else None
    enabled = "Disabled" if device is None else "Continuous" if override.persistent else "Once"
    return {
        "BootOrder": ["Boot0003", "Boot0004"],
        "BootOptions": link(f"{SYSTEM}/BootOptions"),
        "BootSourceOverrideEnabled": enabled,
        "BootSourceOverrideEnabled@Redfish.AllowableValues": list(_ENABLED),
        "BootSourceOverrideMode": "UEFI" if override.uefi or device is None else "Legacy",
        "BootSourceOverrideTarget": _TARGETS[device],
        "BootSourceOverrideTarget@Redfish.AllowableValues": list(OVERRIDES),
    }


async def _patch_system(call: Call) -> Answer:
    for name in call.body:
        if name not in ("Boot", "IndicatorLED", "LocationIndicatorActive"):
            raise unknown_property(name)
    if "LocationIndicatorActive" in call.body:
        call.bmc.light_up(float("inf") if call.body["LocationIndicatorActive"] else 0)
    if "IndicatorLED" in call.body:
        lit = choose(call.body, "IndicatorLED", ("Off", "Blinking", "Lit")) != "Off"
        call.bmc.light_up(float("inf") if lit else 0)
    if "Boot" in call.body:
        _set_boot(call.bmc, call.body["Boot"])
        call.service.note("BOOT0001", "The boot source override was set.", category="Configuration")
    return success()


def _set_boot(bmc: Bmc, wanted: object) -> None:
    if not isinstance(wanted, dict):
        raise bad_value("Boot", wanted)
    current = bmc.boot.override
    names = {f"BootSourceOverride{part}" for part in ("Enabled", "Target", "Mode")}
    for name in wanted:
        if name not in names:
            raise unknown_property(name)
    now_set = _TARGETS[current.device if current.valid else None]
    target = wanted.get("BootSourceOverrideTarget", now_set)
    if target not in tuple(OVERRIDES):
        raise bad_value("BootSourceOverrideTarget", target)
    enabled = wanted.get("BootSourceOverrideEnabled", "Continuous" if current.persistent else "Once")
    if enabled not in _ENABLED:
        raise bad_value("BootSourceOverrideEnabled", enabled)
    mode = wanted.get("BootSourceOverrideMode", "UEFI")
    if mode not in _MODES:
        raise bad_value("BootSourceOverrideMode", mode)
    device = None if enabled == "Disabled" else OVERRIDES[target]
    bmc.boot.override_with(device, uefi=mode == "UEFI", persistent=enabled == "Continuous")


async def _reset(call: Call) -> Answer:
    return reset(call, choose(call.body, "ResetType", tuple(_RESETS)))


def reset(call: Call, kind: str) -> Answer:
    """Do a reset of the standard kinds, or refuse one that the power state makes senseless."""
    actions = _RESETS[kind]
    on = call.bmc.power.on
    if kind == "PushPowerButton" and not on:
        actions = (Action.ON,)
    elif on == (kind == "On") and kind in ("On", "ForceOff", "GracefulShutdown"):
        raise Rejected(_already(on))
    elif not on and (actions[0] in NEEDS_POWER or kind == "GracefulRestart"):
        raise Rejected(_already(False))
    for action in actions:
        call.bmc.power.request(action)
    call.service.note("SYS1003", f"System reset {kind} was requested by {call.user}.", category="Audit")
    return Answer(status=204)


def _already(on: bool) -> Answer:
    state = "ON" if on else "OFF"
    return error(
        409,
        "IDRAC.2.8.PSU501",
        f"Unable to complete the operation because the server is already powered {state}.",
        "Verify the current power state of the server before retrying the operation.",
    )


async def _boot_options(_call: Call) -> Answer:
    path = f"{SYSTEM}/BootOptions"
    members = [
        resource(
            f"{path}/Boot0003", "BootOption.v1_0_4.BootOption", "PXE", DisplayName="PXE Device 1: NIC 1"
        ),
        resource(f"{path}/Boot0004", "BootOption.v1_0_4.BootOption", "Disk", DisplayName="Disk 0"),
    ]
    return Answer(collection(path, "BootOptionCollection", members))


async def _processors(call: Call) -> Answer:
    path = f"{SYSTEM}/Processors"
    members = [
        resource(
            f"{path}/CPU.Socket.{index}",
            "Processor.v1_18_0.Processor",
            f"CPU {index}",
            ProcessorType="CPU",
            Model="Lab Processor 8480",
            TotalCores=56,
            Status={"Health": "OK", "State": "Enabled"},
        )
        for index in range(1, _CPUS + 1)
    ]
    members += [
        resource(
            f"{path}/Video.Slot.{index}-1",
            "Processor.v1_18_0.Processor",
            f"GPU {index}",
            ProcessorType="GPU",
            Manufacturer="NVIDIA Corporation",
            Model="H100 80GB HBM3",
            SerialNumber=f"{call.bmc.spec.chassis.serial}-GPU{index}",
            Status={"Health": "OK", "State": "Enabled"},
        )
        for index in range(1, _GPUS + 1)
    ]
    return Answer(collection(path, "ProcessorCollection", members))


async def _interfaces(call: Call) -> Answer:
    path = f"{SYSTEM}/EthernetInterfaces"
    member = resource(
        f"{path}/NIC.Integrated.1-1-1",
        "EthernetInterface.v1_9_0.EthernetInterface",
        "System Ethernet Interface",
        MACAddress=call.bmc.spec.chassis.mac,
        PermanentMACAddress=call.bmc.spec.chassis.mac,
        LinkStatus="LinkUp" if call.bmc.power.on else "NoLink",
        SpeedMbps=25_000,
    )
    return Answer(collection(path, "EthernetInterfaceCollection", [member]))


ROUTES = (
    Route("GET", f"{ROOT}/Systems", _systems),
    Route("GET", SYSTEM, _system),
    Route("PATCH", SYSTEM, _patch_system, Privilege.OPERATOR),
    Route("PATCH", f"{SYSTEM}/Settings", _patch_system, Privilege.OPERATOR),
    Route("POST", RESET_ACTION, _reset, Privilege.OPERATOR),
    *with_members(f"{SYSTEM}/BootOptions", _boot_options),
    *with_members(f"{SYSTEM}/Processors", _processors),
    *with_members(f"{SYSTEM}/EthernetInterfaces", _interfaces),
)
