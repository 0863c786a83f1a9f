"""What MAAS says, as frozen values. MAAS's own words are kept verbatim beside ours."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import IntEnum, StrEnum


class MachineStatus(IntEnum):
    """MAAS's machine status codes."""

    NEW = 0
    COMMISSIONING = 1
    FAILED_COMMISSIONING = 2
    MISSING = 3
    READY = 4
    RESERVED = 5
    DEPLOYED = 6
    RETIRED = 7
    BROKEN = 8
    DEPLOYING = 9
    ALLOCATED = 10
    FAILED_DEPLOYMENT = 11
    RELEASING = 12
    FAILED_RELEASING = 13
    DISK_ERASING = 14
    FAILED_DISK_ERASING = 15
    RESCUE_MODE = 16
    ENTERING_RESCUE_MODE = 17
    FAILED_ENTERING_RESCUE_MODE = 18
    EXITING_RESCUE_MODE = 19
    FAILED_EXITING_RESCUE_MODE = 20
    TESTING = 21
    FAILED_TESTING = 22


FAILED = frozenset(
    {
        MachineStatus.FAILED_COMMISSIONING,
        MachineStatus.FAILED_DEPLOYMENT,
        MachineStatus.FAILED_RELEASING,
        MachineStatus.FAILED_DISK_ERASING,
        MachineStatus.FAILED_ENTERING_RESCUE_MODE,
        MachineStatus.FAILED_EXITING_RESCUE_MODE,
        MachineStatus.FAILED_TESTING,
    }
)
"""Statuses that MAAS does not leave by itself and that mean something went wrong."""

IN_TRANSITION = frozenset(
    {
        MachineStatus.COMMISSIONING,
        MachineStatus.DEPLOYING,
        MachineStatus.RELEASING,
        MachineStatus.DISK_ERASING,
        MachineStatus.ENTERING_RESCUE_MODE,
        MachineStatus.EXITING_RESCUE_MODE,
        MachineStatus.TESTING,
    }
)
"""Statuses that MAAS is expected to leave by itself."""


class ResultKind(StrEnum):
    """Which scripts' results are asked for."""

    COMMISSIONING = "commissioning"
    INSTALLATION = "installation"
    TESTING = "testing"
    RELEASE = "release"


class LinkMode(StrEnum):
    """How an interface gets its address on a subnet."""

    AUTO = "AUTO"
    DHCP = "DHCP"
    STATIC = "STATIC"
    LINK_UP = "LINK_UP"


class StopMode(StrEnum):
    HARD = "hard"
    SOFT = "soft"


@dataclass(frozen=True, slots=True)
class Machine:
    """One machine as MAAS sees it. `status` stays a bare int where MAAS knows more codes than we.

    `power_state` is what MAAS last saw, in its words; "error" and "unknown" never mean off.
    """

    system_id: str
    hostname: str
    status: MachineStatus | int
    status_name: str
    status_message: str = ""
    error_description: str = ""
    power_state: str = "unknown"
    power_type: str = ""
    pool: str = ""
    zone: str = ""
    tags: tuple[str, ...] = ()
    macs: tuple[str, ...] = ()  # lower case; the boot interface first
    addresses: tuple[str, ...] = ()
    locked: bool = False
    owner: str | None = None
    osystem: str = ""
    distro_series: str = ""
    architecture: str = ""
    fqdn: str = ""
    serial: str | None = None
    netboot: bool = False
    ephemeral: bool = False
    description: str = ""

    @property
    def failed(self) -> bool:
        """True in one of MAAS's "Failed …" statuses."""
        return self.status in FAILED

    @property
    def in_transition(self) -> bool:
        """True while MAAS itself is busy with the machine."""
        return self.status in IN_TRANSITION


@dataclass(frozen=True, slots=True)
class PowerParameters:
    """How MAAS reaches a machine's BMC. The values hold the password, so repr shows the address only."""

    address: str
    values: Mapping[str, str] = field(repr=False)


@dataclass(frozen=True, slots=True)
class NewMachine:
    """A machine to enlist. `power` holds the password, so it is not shown."""

    hostname: str
    macs: tuple[str, ...]
    architecture: str = "amd64/generic"
    power_type: str = "ipmi"
    power: Mapping[str, str] = field(default_factory=dict, repr=False)
    description: str = ""


@dataclass(frozen=True, slots=True)
class Deployment:
    """What to deploy. Empty names mean MAAS's default; `user_data` is plain, base64 is made on sending."""

    osystem: str = ""
    distro_series: str = ""
    hwe_kernel: str = ""
    user_data: bytes | None = field(default=None, repr=False)
    ephemeral: bool = False
    comment: str = ""


@dataclass(frozen=True, slots=True)
class Event:
    """One line of a machine's event log; `at` is UTC."""

    id: int
    at: datetime
    level: str
    type: str
    description: str
    system_id: str
    hostname: str


@dataclass(frozen=True, slots=True)
class ScriptResult:
    """One script's outcome. `output` is decoded; None where it was not asked for."""

    id: int
    name: str
    kind: str  # MAAS's type name: Commissioning, Installation, Testing, Release
    status: int
    status_name: str
    exit_status: int | None
    started: datetime | None
    ended: datetime | None
    set_id: int
    suppressed: bool = False
    device: str | None = None  # what it ran on: a disk or an interface
    output: str | None = None

    @property
    def failed(self) -> bool:
        """True for an outcome that MAAS counts as a failure: failed, timed out, degraded, unapplied."""
        return not self.suppressed and self.status in _FAILED_RESULTS


# Failed, Timed out, Degraded, Failed installing dependencies, Failed to apply network configuration.
_FAILED_RESULTS = frozenset({3, 4, 6, 8, 11})


@dataclass(frozen=True, slots=True)
class Link:
    id: int
    mode: str
    address: str | None
    subnet: str | None  # CIDR


@dataclass(frozen=True, slots=True)
class Interface:
    id: int
    name: str
    mac: str
    kind: str
    enabled: bool
    connected: bool
    speed: int  # Mbit/s
    vlan_id: int | None
    links: tuple[Link, ...]


@dataclass(frozen=True, slots=True)
class BlockDevice:
    id: int
    name: str
    path: str
    size: int  # bytes
    model: str
    serial: str
    kind: str
    used_for: str


@dataclass(frozen=True, slots=True)
class BootResource:
    """An OS image. MAAS gives synced ones as osystem/series and uploaded ones by their bare name."""

    id: int
    name: str
    architecture: str
    kind: str  # Synced, Uploaded, Generated

    @property
    def os_image(self) -> str:
        """The name that a deployment asks for: osystem/series."""
        return self.name if "/" in self.name else f"custom/{self.name}"


@dataclass(frozen=True, slots=True)
class ImageFile:
    """A file of an image. `upload_path`: where its bytes are taken, None where MAAS wants none."""

    complete: bool
    upload_path: str | None


@dataclass(frozen=True, slots=True)
class Subnet:
    id: int
    name: str
    cidr: str
    gateway: str | None
    vlan_id: int
    fabric: str
    managed: bool


@dataclass(frozen=True, slots=True)
class Named:
    """A pool or a zone."""

    id: int
    name: str
    description: str


@dataclass(frozen=True, slots=True)
class Tag:
    name: str
    comment: str
    kernel_opts: str


@dataclass(frozen=True, slots=True)
class RackController:
    system_id: str
    hostname: str
    version: str
    services: Mapping[str, str]  # name -> running, dead, …


@dataclass(frozen=True, slots=True)
class Version:
    version: str
    subversion: str
    capabilities: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class User:
    name: str
    admin: bool
