"""What a BMC of the lab is made from."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import IntEnum

from lab.chassis import Chassis


class Privilege(IntEnum):
    """IPMI privilege levels."""

    CALLBACK = 1
    USER = 2
    OPERATOR = 3
    ADMINISTRATOR = 4
    OEM = 5
    NO_ACCESS = 15


@dataclass(frozen=True, slots=True)
class BmcUser:
    """One account; names have at most 16 bytes and passwords at most 20."""

    name: str
    password: str = field(repr=False)
    privilege: Privilege = Privilege.ADMINISTRATOR


@dataclass(frozen=True, slots=True)
class Hardware:
    """What the BMC says it is. `manufacturer_id` is an IANA enterprise number."""

    manufacturer: str = "Dell Inc."
    product: str = "PowerEdge XE9680"
    part: str = "0LAB68A01"
    manufacturer_id: int = 674
    product_id: int = 0x0100
    firmware: tuple[int, int] = (7, 10)


@dataclass(frozen=True, slots=True)
class BmcSpec:
    """One BMC: its machine, address, accounts and manners. Port 0 takes a free one."""

    chassis: Chassis
    host: str
    users: tuple[BmcUser, ...]
    port: int = 623
    suites: tuple[int, ...] = (3, 17)
    session_limit: int = 4
    kg: str | None = field(default=None, repr=False)
    delay_s: float = 0.0  # before each answer
    hardware: Hardware = field(default_factory=Hardware)
    session_timeout_s: float = 60.0
    boot_flag_timeout_s: float = 60.0
    reset_s: float = 5.0  # silence of a cold reset
    power_cycle_s: float = 1.0  # without power in a power cycle
    sel_capacity: int = 16_000
    sel_erase_s: float = 0.0  # how long a clear takes; meanwhile the SEL refuses to be read
    fru_read_limit: int = 255  # bytes that one Read FRU Data gives at most
    ring_bytes: int = 65_536  # serial text kept while nobody is attached
    ring_survives_reset: bool = False
    log_length: int = 256  # commands remembered
    redfish_port: int | None = None  # None: no Redfish service; 0 takes a free port
    redfish_session_limit: int = 8
    job_s: float = 2.0  # how long a Redfish job runs
