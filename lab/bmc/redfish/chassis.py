"""The chassis: temperatures, fans, power, sensors, and taking the mains away."""

from __future__ import annotations

from lab.bmc.bmc import Bmc
from lab.bmc.redfish.answers import (
    CHASSIS,
    MANAGER,
    ROOT,
    SYSTEM,
    Answer,
    Json,
    choose,
    collection,
    link,
    resource,
)
from lab.bmc.redfish.service import Call, Route, with_members
from lab.bmc.redfish.system import health, power_state, reset
from lab.bmc.sensor_model import Kind, Unit
from lab.bmc.sensors import Reading
from lab.bmc.spec import Privilege

EXTENDED_RESET = f"{CHASSIS}/Actions/Oem/DellOemChassis.ExtendedReset"
CHASSIS_RESET = f"{CHASSIS}/Actions/Chassis.Reset"
_UNITS = {Unit.CELSIUS: "Cel", Unit.VOLT: "V", Unit.AMPERE: "A", Unit.WATT: "W", Unit.RPM: "RPM"}
_TYPES = {
    Kind.TEMPERATURE: "Temperature",
    Kind.VOLTAGE: "Voltage",
    Kind.CURRENT: "Current",
    Kind.FAN: "Rotational",
    Kind.OTHER_UNITS: "Power",
}
_CRITICAL = 0b110110  # lower and upper critical and non-recoverable, in the bits of `crossed`
_CHASSIS_RESETS = ("On", "ForceOff", "PowerCycle")


async def _all_chassis(_call: Call) -> Answer:
    return Answer(collection(f"{ROOT}/Chassis", "ChassisCollection", [link(CHASSIS)]))


async def _chassis(call: Call) -> Answer:
    hardware, chassis = call.bmc.spec.hardware, call.bmc.spec.chassis
    return Answer(
        resource(
            CHASSIS,
            "Chassis.v1_23_0.Chassis",
            "Computer System Chassis",
            ChassisType="RackMount",
            Manufacturer=hardware.manufacturer,
            Model=hardware.product,
            SKU=chassis.serial,
            SerialNumber=f"BRD-{chassis.serial}",
            PartNumber=hardware.part,
            PowerState=power_state(call.bmc),
            Status={"Health": health(call.bmc), "State": "Enabled"},
            Thermal=link(f"{CHASSIS}/Thermal"),
            Power=link(f"{CHASSIS}/Power"),
            Sensors=link(f"{CHASSIS}/Sensors"),
            Links={"ComputerSystems": [link(SYSTEM)], "ManagedBy": [link(MANAGER)]},
            Actions={
                "#Chassis.Reset": {
                    "target": CHASSIS_RESET,
                    "ResetType@Redfish.AllowableValues": list(_CHASSIS_RESETS),
                },
                "Oem": {
                    "#DellOemChassis.ExtendedReset": {
                        "target": EXTENDED_RESET,
                        "ResetType@Redfish.AllowableValues": ["PowerCycle"],
                        "FinalPowerState@Redfish.AllowableValues": ["On", "Off"],
                    }
                },
            },
        )
    )


def _status(reading: Reading) -> Json:
    if reading.value is None:
        return {"Health": None, "State": "UnavailableOffline"}
    critical = bool(reading.crossed & _CRITICAL)
    return {"Health": "Critical" if critical else "Warning" if reading.crossed else "OK", "State": "Enabled"}


def _thresholds(reading: Reading) -> Json:
    limits = reading.model.limits
    return {
        "UpperThresholdCritical": limits.uc,
        "UpperThresholdNonCritical": limits.unc,
        "LowerThresholdCritical": limits.lc,
        "LowerThresholdNonCritical": limits.lnc,
    }


def _of_kind(bmc: Bmc, kind: Kind) -> list[Reading]:
    return [reading for reading in bmc.sensors.all() if reading.model.analog and reading.model.kind == kind]


def _row(path: str, part: str, reading: Reading, reading_name: str) -> Json:
    model = reading.model
    return {
        "@odata.id": f"{path}#/{part}/{model.number}",
        "MemberId": f"iDRAC.Embedded.1#{model.name.replace(' ', '')}",
        "Name": model.name,
        "SensorNumber": model.number,
        reading_name: reading.value,
        "Status": _status(reading),
        **_thresholds(reading),
    }


async def _thermal(call: Call) -> Answer:
    path = f"{CHASSIS}/Thermal"
    fans = [
        {**_row(path, "Fans", reading, "Reading"), "ReadingUnits": "RPM"}
        for reading in _of_kind(call.bmc, Kind.FAN)
    ]
    temperatures = [
        _row(path, "Temperatures", reading, "ReadingCelsius")
        for reading in _of_kind(call.bmc, Kind.TEMPERATURE)
    ]
    return Answer(resource(path, "Thermal.v1_7_1.Thermal", "Thermal", Fans=fans, Temperatures=temperatures))


async def _power(call: Call) -> Answer:
    path = f"{CHASSIS}/Power"
    watts = call.bmc.sensors.read(0x40).value
    control = {
        "@odata.id": f"{path}#/PowerControl/0",
        "MemberId": "PowerControl",
        "Name": "System Power Control",
        "PowerConsumedWatts": watts,
        "PowerCapacityWatts": 11_200,
    }
    supplies = [_supply(call.bmc, path, number) for number in (1, 2)]
    voltages = [
        _row(path, "Voltages", reading, "ReadingVolts") for reading in _of_kind(call.bmc, Kind.VOLTAGE)
    ]
    kind = "Power.v1_7_1.Power"
    return Answer(
        resource(path, kind, "Power", PowerControl=[control], PowerSupplies=supplies, Voltages=voltages)
    )


def _supply(bmc: Bmc, path: str, number: int) -> Json:
    states = bmc.sensors.read(0x52 if number == 1 else 0x56).states or 0
    failed = bool(states & 0x0A)  # failure, or no input
    return {
        "@odata.id": f"{path}#/PowerSupplies/{number - 1}",
        "MemberId": f"PSU.Slot.{number}",
        "Name": f"PS{number} Status",
        "Model": "PWR SPLY,2800W,RDNT",
        "SerialNumber": f"{bmc.spec.chassis.serial}-PSU{number}",
        "FirmwareVersion": "00.1B.53",
        "LineInputVoltage": 0 if failed else bmc.sensors.read(0x50 if number == 1 else 0x54).value,
        "PowerCapacityWatts": 2800,
        "Status": {"Health": "Critical" if failed else "OK", "State": "Enabled"},
    }


def _sensor(reading: Reading) -> Json:
    model, limits = reading.model, reading.model.limits
    thresholds = {
        "UpperCritical": limits.uc,
        "UpperCaution": limits.unc,
        "LowerCritical": limits.lc,
        "LowerCaution": limits.lnc,
    }
    return resource(
        f"{CHASSIS}/Sensors/{_sensor_id(reading)}",
        "Sensor.v1_7_0.Sensor",
        model.name,
        Reading=reading.value,
        ReadingType=_TYPES[model.kind],
        ReadingUnits=_UNITS[model.unit],
        Status=_status(reading),
        Thresholds={name: {"Reading": value} for name, value in thresholds.items() if value is not None},
    )


def _sensor_id(reading: Reading) -> str:
    return reading.model.name.replace(" ", "").replace(".", "_")


async def _sensors(call: Call) -> Answer:
    members = [_sensor(reading) for reading in call.bmc.sensors.all() if reading.model.analog]
    return Answer(collection(f"{CHASSIS}/Sensors", "SensorCollection", members))


async def _chassis_reset(call: Call) -> Answer:
    return reset(call, choose(call.body, "ResetType", _CHASSIS_RESETS))


async def _extended_reset(call: Call) -> Answer:
    """Take the mains away, as pulling both cords does; the BMC restarts with it."""
    choose(call.body, "ResetType", ("PowerCycle",))
    final = choose({"FinalPowerState": "Off", **call.body}, "FinalPowerState", ("On", "Off"))
    call.bmc.power.cut_mains(then_on=final == "On")
    call.service.note("SYS1004", f"A virtual AC cycle was requested by {call.user}.", category="Audit")
    call.bmc.restart_soon()
    return Answer(status=204)


ROUTES = (
    Route("GET", f"{ROOT}/Chassis", _all_chassis),
    Route("GET", CHASSIS, _chassis),
    Route("GET", f"{CHASSIS}/Thermal", _thermal),
    Route("GET", f"{CHASSIS}/Power", _power),
    *with_members(f"{CHASSIS}/Sensors", _sensors),
    Route("POST", CHASSIS_RESET, _chassis_reset, Privilege.OPERATOR),
    Route("POST", EXTENDED_RESET, _extended_reset, Privilege.OPERATOR),
)
