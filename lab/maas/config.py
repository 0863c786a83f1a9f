"""What a lab MAAS is told when it starts."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from lab.maas.boot.ipxe import BootAssets


@dataclass(frozen=True, slots=True)
class User:
    """One MAAS account and its API key, `consumer:token:secret`."""

    name: str = "admin"
    email: str = "admin@lab.invalid"
    superuser: bool = True
    api_key: str = field(
        default="labconsumer00000:labtoken0000000000:labsecret00000000000000000000000", repr=False
    )
    password: str = field(default="lab-admin", repr=False)


@dataclass(frozen=True, slots=True)
class Delays:
    """Seconds that MAAS's own work takes; a node's share comes from the node itself."""

    power: float = 0.2
    commission: float = 1.0
    testing: float = 1.0
    deploy: float = 1.5
    boot: float = 0.5
    release: float = 0.5
    erase: float = 1.0
    rescue: float = 0.5
    abort: float = 0.2


@dataclass(frozen=True, slots=True)
class SubnetSpec:
    """A subnet that exists from the start; machines' boot interfaces are linked to the first one."""

    cidr: str
    name: str = ""
    gateway_ip: str | None = None


@dataclass(frozen=True, slots=True)
class DiskSpec:
    """One disk of an imaginary machine; size in bytes."""

    name: str
    size: int
    model: str = ""
    serial: str = ""


@dataclass(frozen=True, slots=True)
class Hardware:
    """What commissioning finds when the node itself reports no inventory; memory in MiB."""

    cores: int = 64
    memory: int = 524288
    disks: tuple[DiskSpec, ...] = (
        DiskSpec("nvme0n1", 3840755982336),
        DiskSpec("nvme1n1", 3840755982336),
    )
    vendor: str = "Muster Lab"
    product: str = "Virtual GPU node"


@dataclass(frozen=True, slots=True)
class Image:
    """An OS image that the lab's MAAS can deploy."""

    name: str
    kernel: str = "generic"
    architecture: str = "amd64"
    uploaded: bool = False
    title: str = ""
    base: str = ""


LAB_IMAGES = (
    Image("ubuntu/noble", "ga-24.04"),
    Image("ubuntu/jammy", "ga-22.04"),
    Image("custom/debian-12", "generic", uploaded=True, title="Debian 12", base="debian/bookworm"),
)


@dataclass(frozen=True, slots=True)
class MaasConfig:
    """All of a lab MAAS's settings; port 0 asks for a free one.

    `node_timeout` is the number of seconds that a machine may stay in a passing state without
    reporting. `power_slots` bounds the power commands that one rack controller runs at once.
    """

    host: str = "127.0.0.1"
    port: int = 0
    users: tuple[User, ...] = (User(),)
    ssh_keys: tuple[str, ...] = ()
    images: tuple[Image, ...] = LAB_IMAGES
    subnets: tuple[SubnetSpec, ...] = (SubnetSpec("10.77.0.0/16", "lab", "10.77.0.1"),)
    hardware: Hardware = Hardware()
    delays: Delays = Delays()
    node_timeout: float = 60.0
    simulate: bool = False
    rack_controllers: tuple[str, ...] = ("lab-rack",)
    power_slots: int = 16
    state_file: Path | None = None
    boot_assets: BootAssets | None = None
    boot_url: str | None = None
    version: str = "3.7.2"
