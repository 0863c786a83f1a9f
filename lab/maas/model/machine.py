"""A machine as MAAS remembers it: its parts, its owner, what it is doing."""

from __future__ import annotations

from dataclasses import dataclass, field

from lab.maas.model.status import Status


@dataclass(slots=True)
class Link:
    """How an interface is joined to a subnet: dhcp, auto, static or link_up."""

    id: int
    mode: str
    subnet_id: int | None = None
    ip: str | None = None


@dataclass(slots=True)
class Interface:
    """One network port of a machine; speed in Mbit/s."""

    id: int
    name: str
    mac: str
    vlan_id: int | None = None
    links: list[Link] = field(default_factory=list)
    link_speed: int = 0
    vendor: str | None = None
    product: str | None = None
    firmware: str | None = None
    discovered: str | None = None


@dataclass(slots=True)
class Filesystem:
    """What lies on a partition or volume."""

    fstype: str
    uuid: str
    label: str | None = None
    mount_point: str | None = None


@dataclass(slots=True)
class Partition:
    """The one partition that a storage layout makes on the boot disk; size in bytes."""

    id: int
    uuid: str
    size: int
    filesystem: Filesystem | None
    used_for: str


@dataclass(slots=True)
class Disk:
    """A physical disk or a logical volume; size in bytes."""

    id: int
    name: str
    size: int
    virtual: bool = False
    model: str = ""
    serial: str = ""
    block_size: int = 512
    uuid: str | None = None
    tags: list[str] = field(default_factory=list)
    partition: Partition | None = None
    filesystem: Filesystem | None = None


@dataclass(slots=True)
class Facts:
    """What commissioning found out about the hardware; memory in MiB."""

    cores: int = 0
    memory: int = 0
    cpu_speed: int = 0
    uuid: str | None = None
    info: dict[str, str] = field(default_factory=dict)


@dataclass(slots=True)
class Boot:
    """The machine's current boot: a token that dies with the next one, and what it was told.

    `system_token` is the token of the boot that installed what is on the disk: the installed
    system's own, good for saying that it is up until it is replaced.
    """

    token: str = ""
    system_token: str = ""
    intent: str = ""
    asked: int = 0
    testing_reported: bool = False


@dataclass(slots=True)
class Order:
    """What the last deploy or commission asked for."""

    osystem: str = ""
    distro_series: str = ""
    kernel: str | None = None
    user_data: str | None = None
    ephemeral: bool = False
    enable_ssh: bool = False


@dataclass(slots=True)
class Machine:
    """One machine object of the API."""

    system_id: str
    hostname: str
    created: float
    architecture: str = "amd64/generic"
    description: str = ""
    status: Status = Status.NEW
    previous: Status = Status.NEW
    owner: str | None = None
    acquired: bool = False
    locked: bool = False
    zone: str = "default"
    pool: str = "default"
    agent_name: str = ""
    tags: list[str] = field(default_factory=list)
    annotations: dict[str, str] = field(default_factory=dict)
    power_type: str = ""
    power_parameters: dict[str, str] = field(default_factory=dict, repr=False)
    power_state: str = "unknown"
    netboot: bool = True
    error_description: str = ""
    status_action: str | None = None
    status_message: str | None = None
    interfaces: list[Interface] = field(default_factory=list)
    disks: list[Disk] = field(default_factory=list)
    volume_group: int | None = None
    facts: Facts = field(default_factory=Facts)
    order: Order = field(default_factory=Order)
    boot: Boot = field(default_factory=Boot)
    commissioning_set: int | None = None
    installation_set: int | None = None
    testing_set: int | None = None
    # Every new undertaking raises it, so that timers of the one before know that they are late.
    turn: int = 0
    deadline: float = 0.0

    @property
    def fqdn(self) -> str:
        """The name in MAAS's own domain."""
        return f"{self.hostname}.maas"

    @property
    def boot_interface(self) -> Interface | None:
        """The port that the machine boots from."""
        return self.interfaces[0] if self.interfaces else None

    @property
    def boot_disk(self) -> Disk | None:
        """The disk that storage layouts install to."""
        return next((disk for disk in self.disks if not disk.virtual), None)

    def has_mac(self, mac: str) -> bool:
        """Say whether one of the machine's ports has this address."""
        return any(port.mac == mac for port in self.interfaces)
