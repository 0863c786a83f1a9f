"""The sensors that every BMC of the lab has: what they are, not what they read."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum

THRESHOLD = 0x01  # event/reading type of a threshold sensor
SENSOR_SPECIFIC = 0x6F
AVAILABILITY = 0x0B  # generic event type: redundancy


class Kind(IntEnum):
    """Sensor types (table 42-3)."""

    TEMPERATURE = 0x01
    VOLTAGE = 0x02
    CURRENT = 0x03
    FAN = 0x04
    INTRUSION = 0x05
    PROCESSOR = 0x07
    POWER_SUPPLY = 0x08
    OTHER_UNITS = 0x0B
    DRIVE = 0x0D
    EVENT_LOG = 0x10
    CRITICAL_INTERRUPT = 0x13
    ACPI_POWER = 0x22
    WATCHDOG = 0x23


class Unit(IntEnum):
    """Sensor units (table 43-15)."""

    NONE = 0
    CELSIUS = 1
    VOLT = 4
    AMPERE = 5
    WATT = 6
    RPM = 18


class Entity(IntEnum):
    """Entity ids (table 43-13)."""

    PROCESSOR = 0x03
    DISK = 0x04
    SYSTEM_BOARD = 0x07
    POWER_SUPPLY = 0x0A
    ADD_IN_CARD = 0x0B
    CHASSIS = 0x17
    FAN = 0x1D
    INLET = 0x37


@dataclass(frozen=True, slots=True)
class Scale:
    """How a raw byte becomes a value: raw * m * 10^exponent."""

    m: int = 1
    exponent: int = 0

    def raw(self, value: float) -> int:
        return max(0, min(255, round(value / self.m / 10.0**self.exponent)))

    def value(self, raw: int) -> float:
        return round(float(raw * self.m * 10.0**self.exponent), 6)


@dataclass(frozen=True, slots=True)
class Limits:
    """Thresholds, each None where the sensor has it not."""

    unr: float | None = None
    uc: float | None = None
    unc: float | None = None
    lnr: float | None = None
    lc: float | None = None
    lnc: float | None = None


@dataclass(frozen=True, slots=True)
class SensorModel:
    """One sensor. `standby` is what it reads without power; None is no reading."""

    number: int
    name: str
    kind: Kind
    entity: Entity
    instance: int = 1
    reading_type: int = THRESHOLD
    unit: Unit = Unit.NONE
    scale: Scale = Scale()
    limits: Limits = Limits()
    nominal: float = 0.0
    swing: float = 0.0
    standby: float | None = None
    states: int = 0  # discrete: asserted states with power
    standby_states: int | None = None  # None: no reading without power
    possible: int = 0  # discrete: states that it can have

    @property
    def analog(self) -> bool:
        return self.reading_type == THRESHOLD


def _temperature(number: int, name: str, entity: Entity, instance: int, nominal: float) -> SensorModel:
    limits = Limits(uc=nominal + 45, unc=nominal + 40, lc=0, lnc=3)
    return SensorModel(
        number,
        name,
        Kind.TEMPERATURE,
        entity,
        instance,
        unit=Unit.CELSIUS,
        limits=limits,
        nominal=nominal,
        swing=2,
    )


def _voltage(number: int, name: str, volts: float, scale: Scale) -> SensorModel:
    limits = Limits(uc=volts * 1.1, unc=volts * 1.05, lc=volts * 0.9, lnc=volts * 0.95)
    return SensorModel(
        number,
        name,
        Kind.VOLTAGE,
        Entity.SYSTEM_BOARD,
        unit=Unit.VOLT,
        scale=scale,
        limits=limits,
        nominal=volts,
    )


def _supply(number: int, instance: int) -> tuple[SensorModel, ...]:
    entity, name = Entity.POWER_SUPPLY, f"PS{instance}"
    volts = Limits(uc=264.0, unc=255.0, lc=180.0, lnc=190.0)
    return (
        SensorModel(
            number,
            f"{name} Input Volt",
            Kind.VOLTAGE,
            entity,
            instance,
            unit=Unit.VOLT,
            scale=Scale(2),
            limits=volts,
            nominal=230,
            swing=2,
            standby=230,
        ),
        SensorModel(
            number + 1,
            f"{name} Current",
            Kind.CURRENT,
            entity,
            instance,
            unit=Unit.AMPERE,
            scale=Scale(2, -1),
            nominal=8.4,
            swing=0.4,
            standby=0.2,
        ),
        SensorModel(
            number + 2,
            f"{name} Status",
            Kind.POWER_SUPPLY,
            entity,
            instance,
            SENSOR_SPECIFIC,
            states=0x01,
            standby_states=0x01,
            possible=0x0F,
        ),
    )


def _discrete(number: int, name: str, kind: Kind, entity: Entity, states: int, possible: int) -> SensorModel:
    return SensorModel(
        number,
        name,
        kind,
        entity,
        reading_type=SENSOR_SPECIFIC,
        states=states,
        standby_states=states,
        possible=possible,
    )


def _fan(index: int) -> SensorModel:
    return SensorModel(
        0x30 + index,
        f"Fan{index + 1}",
        Kind.FAN,
        Entity.FAN,
        index + 1,
        unit=Unit.RPM,
        scale=Scale(120),
        limits=Limits(lc=600, lnc=840),
        nominal=9600,
        swing=240,
    )


SENSORS: tuple[SensorModel, ...] = (
    SensorModel(
        0x01,
        "Inlet Temp",
        Kind.TEMPERATURE,
        Entity.INLET,
        unit=Unit.CELSIUS,
        limits=Limits(uc=47, unc=43, lc=0, lnc=3),
        nominal=23,
        swing=1,
        standby=21,
    ),
    _temperature(0x02, "Exhaust Temp", Entity.SYSTEM_BOARD, 1, 38),
    _temperature(0x03, "CPU1 Temp", Entity.PROCESSOR, 1, 52),
    _temperature(0x04, "CPU2 Temp", Entity.PROCESSOR, 2, 54),
    *(
        _temperature(0x10 + gpu, f"GPU{gpu} Temp", Entity.ADD_IN_CARD, gpu + 1, 41 + gpu % 3)
        for gpu in range(8)
    ),
    _voltage(0x20, "12V", 12.0, Scale(6, -2)),
    _voltage(0x21, "5V", 5.0, Scale(25, -3)),
    _voltage(0x22, "3.3V", 3.3, Scale(16, -3)),
    *(_fan(index) for index in range(8)),
    SensorModel(
        0x40,
        "Pwr Consumption",
        Kind.OTHER_UNITS,
        Entity.SYSTEM_BOARD,
        unit=Unit.WATT,
        scale=Scale(42),
        limits=Limits(uc=10500, unc=9996),
        nominal=3780,
        swing=84,
        standby=84,
    ),
    *_supply(0x50, 1),
    *_supply(0x54, 2),
    SensorModel(
        0x58,
        "PS Redundancy",
        Kind.POWER_SUPPLY,
        Entity.SYSTEM_BOARD,
        reading_type=AVAILABILITY,
        states=0x01,
        standby_states=0x01,
        possible=0x3F,
    ),
    SensorModel(
        0x60, "CPU1 Status", Kind.PROCESSOR, Entity.PROCESSOR, 1, SENSOR_SPECIFIC, states=0x80, possible=0x787
    ),
    SensorModel(
        0x61, "CPU2 Status", Kind.PROCESSOR, Entity.PROCESSOR, 2, SENSOR_SPECIFIC, states=0x80, possible=0x787
    ),
    _discrete(0x62, "Drive 0", Kind.DRIVE, Entity.DISK, 0x01, 0x07),
    _discrete(0x70, "Intrusion", Kind.INTRUSION, Entity.CHASSIS, 0x00, 0x01),
    _discrete(0x71, "OS Watchdog", Kind.WATCHDOG, Entity.SYSTEM_BOARD, 0x00, 0x10F),
    _discrete(0x72, "SEL", Kind.EVENT_LOG, Entity.SYSTEM_BOARD, 0x00, 0x3C),
    _discrete(0x73, "PCIe Fatal", Kind.CRITICAL_INTERRUPT, Entity.SYSTEM_BOARD, 0x00, 0x7B0),
    SensorModel(
        0x74,
        "ACPI State",
        Kind.ACPI_POWER,
        Entity.SYSTEM_BOARD,
        reading_type=SENSOR_SPECIFIC,
        states=0x01,
        standby_states=0x20,
        possible=0x21,
    ),
)
