"""BIOS attributes: a registry, what is set, and what waits for the next boot."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from lab.bmc.redfish.answers import (
    SYSTEM,
    Answer,
    Json,
    Rejected,
    bad_value,
    error,
    link,
    missing_property,
    resource,
    unknown_property,
)
from lab.bmc.redfish.jobs import accepted
from lab.bmc.redfish.service import Call, Route
from lab.bmc.spec import Privilege

BIOS = f"{SYSTEM}/Bios"
SETTINGS = f"{BIOS}/Settings"
REGISTRY = f"{BIOS}/BiosRegistry"
_ON_RESET = "OnReset"
_APPLY_TIMES = ("Immediate", _ON_RESET)


@dataclass(frozen=True, slots=True)
class Attribute:
    """One attribute: its values (none: any text), the first is the default."""

    name: str
    values: tuple[str, ...]
    read_only: bool = False


ATTRIBUTES = (
    Attribute("BootMode", ("Uefi", "Bios")),
    Attribute("SysProfile", ("PerfPerWattOptimizedDapc", "PerfOptimized", "Custom")),
    Attribute("LogicalProc", ("Enabled", "Disabled")),
    Attribute("ProcVirtualization", ("Enabled", "Disabled")),
    Attribute("SriovGlobalEnable", ("Disabled", "Enabled")),
    Attribute("IommuSupport", ("Enabled", "Disabled")),
    Attribute("SubNumaCluster", ("Disabled", "2-way", "4-way")),
    Attribute("PxeDev1EnDis", ("Enabled", "Disabled")),
    Attribute("SerialComm", ("OnConRedir", "OnNoConRedir", "Off")),
    Attribute("FailSafeBaud", ("115200", "57600", "9600")),
    Attribute("ConTermType", ("Vt100Vt220", "Ansi")),
    Attribute("ErrPrompt", ("Disabled", "Enabled")),
    Attribute("MemTest", ("Disabled", "Enabled")),
    Attribute("SystemServiceTag", (), read_only=True),
)
_BY_NAME = {attribute.name: attribute for attribute in ATTRIBUTES}


def current(call: Call) -> dict[str, Any]:
    defaults = {attribute.name: attribute.values[0] for attribute in ATTRIBUTES if attribute.values}
    return {**defaults, "SystemServiceTag": call.bmc.spec.chassis.serial, **call.service.attributes}


async def _bios(call: Call) -> Answer:
    return Answer(
        resource(
            BIOS,
            "Bios.v1_2_1.Bios",
            "BIOS Configuration Current Settings",
            Attributes=current(call),
            AttributeRegistry="BiosAttributeRegistry.v1_0_0",
            **{
                "@Redfish.Settings": {
                    "@odata.type": "#Settings.v1_3_5.Settings",
                    "SettingsObject": link(SETTINGS),
                    "SupportedApplyTimes": [_ON_RESET],
                }
            },
        )
    )


async def _settings(call: Call) -> Answer:
    kind, name = "Bios.v1_2_1.Bios", "BIOS Configuration Pending Settings"
    return Answer(resource(SETTINGS, kind, name, Attributes=dict(call.service.pending)))


async def _registry(_call: Call) -> Answer:
    entries = [_entry(attribute) for attribute in ATTRIBUTES]
    kind = "AttributeRegistry.v1_3_6.AttributeRegistry"
    return Answer(
        resource(REGISTRY, kind, "BIOS Attribute Registry", RegistryEntries={"Attributes": entries})
    )


def _entry(attribute: Attribute) -> Json:
    kind = "Enumeration" if attribute.values else "String"
    values = [{"ValueName": value, "ValueDisplayName": value} for value in attribute.values]
    return {
        "AttributeName": attribute.name,
        "Type": kind,
        "ReadOnly": attribute.read_only,
        "Immutable": False,
        "Value": values,
    }


async def _patch(call: Call) -> Answer:
    """Keep attributes for the next boot; with an apply time, make the job that applies them."""
    wanted = call.body.get("Attributes")
    if not isinstance(wanted, dict) or not wanted:
        raise missing_property("Attributes")
    for name, value in wanted.items():
        _check(name, value)
    apply = call.body.get("@Redfish.SettingsApplyTime", {})
    moment = apply.get("ApplyTime", _ON_RESET) if isinstance(apply, dict) else None
    if moment not in _APPLY_TIMES:
        raise bad_value("ApplyTime", moment)
    if any(job.kind == "BIOSConfiguration" and job.percent < 100 for job in call.service.jobs):
        raise Rejected(_job_waits())
    call.service.pending.update(wanted)
    if not apply:
        return Answer(status=200, body={"@Message.ExtendedInfo": []})
    return accepted(_make_job(call), as_task=False)


def _check(name: str, value: object) -> None:
    attribute = _BY_NAME.get(name)
    if attribute is None:
        raise unknown_property(name)
    if attribute.read_only:
        text = f"The property {name} is a read only property and cannot be assigned a value."
        raise Rejected(error(400, "Base.1.12.PropertyNotWritable", text))
    if value not in attribute.values:
        raise bad_value(name, value)


def _job_waits() -> Answer:
    return error(
        400,
        "IDRAC.2.8.RAC015",
        "A configuration job for the BIOS is already scheduled; pending changes cannot be committed.",
        "Wait for the scheduled job to finish, or delete it, and retry the operation.",
    )


def _make_job(call: Call) -> Any:
    service = call.service

    def apply() -> None:
        service.attributes.update(service.pending)
        service.pending.clear()
        service.note("SYS1001", "BIOS attributes were applied.", category="Configuration")

    name = "Configure: BIOS.Setup.1-1"
    return service.jobs.add("BIOSConfiguration", name, call.bmc.spec.job_s, apply, at_boot=True)


async def _make_config_job(call: Call) -> Answer:
    """Make the job for attributes that were set before without an apply time."""
    if not call.service.pending:
        raise Rejected(
            error(400, "IDRAC.2.8.RAC016", "Pending configuration values are not available to be applied.")
        )
    return accepted(_make_job(call), as_task=False)


async def _clear_pending(call: Call) -> Answer:
    call.service.pending.clear()
    return Answer(status=200, body={"@Message.ExtendedInfo": []})


async def _reset_bios(call: Call) -> Answer:
    call.service.pending.update(
        {attribute.name: attribute.values[0] for attribute in ATTRIBUTES if attribute.values}
    )
    _make_job(call)
    return Answer(status=200, body={"@Message.ExtendedInfo": []})


ROUTES = (
    Route("GET", BIOS, _bios),
    Route("GET", SETTINGS, _settings),
    Route("PATCH", SETTINGS, _patch, Privilege.OPERATOR),
    Route("GET", REGISTRY, _registry),
    Route("POST", f"{BIOS}/Actions/Bios.ResetBios", _reset_bios, Privilege.ADMINISTRATOR),
    Route(
        "POST",
        f"{SETTINGS}/Actions/Oem/DellManager.ClearPending",
        _clear_pending,
        Privilege.OPERATOR,
    ),
)
