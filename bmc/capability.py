"""What a BMC can do, one protocol a capability; drivers claim those that they have."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from pathlib import Path
from typing import Protocol, runtime_checkable


class PowerState(StrEnum):
    ON = "on"
    OFF = "off"


class PowerAction(StrEnum):
    ON = "on"
    OFF = "off"  # at once
    SOFT = "soft"  # asks the operating system
    CYCLE = "cycle"
    RESET = "reset"


class BootTarget(StrEnum):
    NONE = "none"
    PXE = "pxe"
    DISK = "disk"
    CD = "cd"
    BIOS = "bios"


@dataclass(frozen=True, slots=True)
class Credential:
    """A login for one BMC. Neither repr nor str shows a secret."""

    username: str
    password: str = field(repr=False)
    kg: str | None = field(default=None, repr=False)


class Privilege(StrEnum):
    """The level that a session asks for."""

    USER = "user"
    OPERATOR = "operator"
    ADMINISTRATOR = "administrator"


@dataclass(frozen=True, slots=True)
class BmcTarget:
    """One BMC to speak to. `protocol` is "auto", "ipmi" or "redfish".

    `fingerprint` is the SHA-256 of the TLS certificate, hex; `suites` are IPMI cipher suites in
    the order to try.
    """

    name: str  # the node it belongs to, for messages
    host: str
    credential: Credential
    protocol: str = "auto"
    port: int = 623
    redfish_port: int = 443
    fingerprint: str | None = None
    suites: tuple[int, ...] = (17, 3)
    privilege: Privilege = Privilege.ADMINISTRATOR


@dataclass(frozen=True, slots=True)
class BmcIdentity:
    """What the BMC says it is. `serial` is the chassis (else product) serial of its FRU."""

    protocol: str
    manufacturer: str
    product: str
    firmware: str
    guid: str
    serial: str | None


@dataclass(frozen=True, slots=True)
class BootSetting:
    target: BootTarget
    uefi: bool
    persistent: bool
    valid: bool


@dataclass(frozen=True, slots=True)
class SelEntry:
    """One event. `time` is None where the BMC's clock was not set; `raw` is the record as it came:
    16 bytes from IPMI, JSON from Redfish."""

    record_id: int
    time: datetime | None
    sensor: str
    event: str
    severity: str  # ok, warning, critical, unknown
    asserted: bool
    raw: bytes


@dataclass(frozen=True, slots=True)
class Reading:
    """One sensor. `value` is None where the sensor gives none; thresholds by their IPMI names."""

    name: str
    kind: str
    value: float | None
    unit: str
    health: str  # ok, warning, critical, failed, unknown
    thresholds: dict[str, float]
    states: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Picture:
    """A screen as the BMC sent it; `media_type` such as "image/png"."""

    data: bytes
    media_type: str


@dataclass(frozen=True, slots=True)
class FirmwareItem:
    """One component that carries firmware."""

    id: str
    name: str
    version: str
    updateable: bool


BiosValue = str | int | bool | None


@dataclass(frozen=True, slots=True)
class BiosChange:
    """One BIOS attribute that is to change at the next boot; `pending` is what already waits."""

    name: str
    now: BiosValue
    wanted: BiosValue
    pending: BiosValue = None


@dataclass(frozen=True, slots=True)
class Metric:
    """One value of a telemetry report. `source` is the resource that it belongs to."""

    report: str
    id: str
    value: str
    source: str
    time: datetime | None


@dataclass(frozen=True, slots=True)
class Job:
    """Something that the BMC does, or will do, in the background."""

    id: str
    name: str
    state: str
    percent: float | None
    message: str


@dataclass(frozen=True, slots=True)
class Certificate:
    """The BMC's own TLS certificate; `fingerprint` is SHA-256, hex."""

    path: str
    pem: str
    fingerprint: str
    ends: datetime


class Power(Protocol):
    async def power_state(self) -> PowerState: ...

    async def set_power(self, action: PowerAction, *, wait_s: float = 60.0) -> PowerState:
        """Act, then wait for the wanted state. Raises `PowerNotReached` after `wait_s`."""
        ...


class Boot(Protocol):
    async def boot_setting(self) -> BootSetting: ...

    async def set_boot(
        self, target: BootTarget, *, uefi: bool = True, persistent: bool = False
    ) -> BootSetting:
        """Set, read back, and return what the BMC now holds."""
        ...


class EventLog(Protocol):
    async def sel(self) -> tuple[SelEntry, ...]: ...

    async def clear_sel(self) -> None: ...


class Sensors(Protocol):
    async def sensors(self) -> tuple[Reading, ...]: ...


class Fru(Protocol):
    async def fru(self) -> dict[str, dict[str, str]]:
        """Return device name -> field -> value; a field that could not be read is left out."""
        ...


class Identify(Protocol):
    async def identify(self, *, on: bool, seconds: int = 60) -> None:
        """Blink the locator for `seconds` (0: until told otherwise), or stop."""
        ...


class Reset(Protocol):
    async def reset_bmc(self) -> None:
        """Cold-reset the BMC; returns when it has taken the command, not when it is back."""
        ...


class Identity(Protocol):
    async def identity(self) -> BmcIdentity: ...


class Bmc(Power, Boot, EventLog, Sensors, Fru, Identify, Reset, Identity, Protocol):
    """What every driver offers; more is asked for by capability."""


@runtime_checkable
class Screen(Protocol):
    async def screenshot(self) -> Picture:
        """Return what the node's screen shows now. Raises Unsupported."""
        ...


@runtime_checkable
class Firmware(Protocol):
    async def firmware(self) -> tuple[FirmwareItem, ...]: ...

    async def update_firmware(self, image: Path | str, *, at_reset: bool = False) -> str:
        """Push a file, or have the BMC fetch a URL; return the id of the finished task.

        With `at_reset` the task waits for the next boot: return its id without waiting for it.
        """
        ...


@runtime_checkable
class Bios(Protocol):
    async def bios(self) -> dict[str, BiosValue]: ...

    async def plan_bios(self, wanted: Mapping[str, BiosValue]) -> tuple[BiosChange, ...]:
        """Return what would change. Raises Unsupported for an attribute that the BIOS lacks."""
        ...

    async def apply_bios(self, changes: Sequence[BiosChange]) -> None:
        """Hand the changes over; they are in force after the next boot."""
        ...


@runtime_checkable
class AcCycle(Protocol):
    async def ac_cycle(self) -> None:
        """Take the mains away and give them back, as pulling the cords does. Raises Unsupported."""
        ...


@runtime_checkable
class SupportDump(Protocol):
    async def support_dump(self, *, deadline_s: float = 1800.0) -> tuple[str, bytes]:
        """Have the BMC collect its evidence; return a file name and the file. Raises Unsupported."""
        ...


@runtime_checkable
class Telemetry(Protocol):
    async def metrics(self) -> tuple[Metric, ...]: ...


@runtime_checkable
class Certificates(Protocol):
    async def certificate(self) -> Certificate: ...

    async def certificate_request(self) -> str:
        """Have the BMC make a key and a signing request; return the request, PEM."""
        ...

    async def replace_certificate(self, pem: str) -> None: ...
