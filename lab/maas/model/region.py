"""Everything that the region controller keeps, and the numbers it gives out."""

from __future__ import annotations

import hashlib
import random
import uuid
from collections import defaultdict, deque
from dataclasses import dataclass, field
from typing import Protocol

from lab.maas.config import MaasConfig, User
from lab.maas.model.catalogue import Script, built_in_scripts
from lab.maas.model.machine import Machine
from lab.maas.model.results import ScriptSet

# Letters and digits that MAAS's system ids are made of: none that look alike.
_ID_LETTERS = "34678abcdefghkmnpqrstwxy"
_EVENTS_KEPT = 100_000
_EVENTS_OF_MACHINE = 2_000


@dataclass(slots=True)
class Zone:
    """A zone or a resource pool."""

    id: int
    name: str
    description: str = ""


@dataclass(slots=True)
class Tag:
    """A tag; which machines bear it is written on the machines."""

    name: str
    comment: str = ""
    definition: str = ""
    kernel_opts: str = ""


@dataclass(slots=True)
class Vlan:
    """The untagged VLAN of a fabric."""

    id: int
    fabric_id: int
    vid: int = 0
    name: str = "untagged"
    mtu: int = 1500
    dhcp_on: bool = False


@dataclass(slots=True)
class Subnet:
    """An IP network on a VLAN."""

    id: int
    name: str
    cidr: str
    vlan_id: int
    gateway_ip: str | None = None
    description: str = ""


class Digest(Protocol):
    """A checksum that grows with what arrives."""

    def update(self, data: bytes, /) -> None:
        """Take more bytes."""
        ...

    def hexdigest(self) -> str:
        """Return the checksum so far."""
        ...


@dataclass(slots=True)
class ImageFile:
    """What was announced of an upload, and what has arrived of it."""

    id: int
    name: str
    sha256: str
    size: int
    received: int = 0
    digest: str = ""
    content: Digest = field(default_factory=hashlib.sha256, repr=False, metadata={"kept": False})

    @property
    def complete(self) -> bool:
        """Say whether all bytes have arrived with the right checksum."""
        return self.received == self.size and self.digest == self.sha256


@dataclass(slots=True)
class BootResource:
    """An OS image, synced or uploaded."""

    id: int
    name: str
    architecture: str
    uploaded: bool = False
    title: str = ""
    base: str = ""
    version: str = ""
    subarches: str = "generic"
    last_deployed: str | None = None
    file: ImageFile | None = None


@dataclass(frozen=True, slots=True)
class Event:
    """One line of the event log."""

    id: int
    system_id: str
    hostname: str
    username: str
    level: int
    type: str
    description: str
    created: float


@dataclass(slots=True)
class SshKey:
    """A public key in a user's preferences."""

    id: int
    key: str
    user: str


@dataclass(slots=True)
class Region:
    """The region's memory."""

    users: dict[str, User]
    machines: dict[str, Machine] = field(default_factory=dict)
    zones: dict[str, Zone] = field(default_factory=dict)
    pools: dict[str, Zone] = field(default_factory=dict)
    tags: dict[str, Tag] = field(default_factory=dict)
    vlans: dict[int, Vlan] = field(default_factory=dict)
    subnets: dict[int, Subnet] = field(default_factory=dict)
    scripts: dict[str, Script] = field(default_factory=dict)
    script_sets: dict[int, ScriptSet] = field(default_factory=dict)
    images: dict[int, BootResource] = field(default_factory=dict)
    image_sizes: dict[str, int] = field(default_factory=dict)
    ssh_keys: dict[int, SshKey] = field(default_factory=dict)
    settings: dict[str, object] = field(default_factory=dict)
    racks: dict[str, str] = field(default_factory=dict)
    events: deque[Event] = field(default_factory=lambda: deque(maxlen=_EVENTS_KEPT))
    machine_events: defaultdict[str, deque[Event]] = field(
        default_factory=lambda: defaultdict(lambda: deque(maxlen=_EVENTS_OF_MACHINE))
    )
    counters: defaultdict[str, int] = field(default_factory=lambda: defaultdict(int))
    dice: random.Random = field(default_factory=random.Random)

    def number(self, kind: str) -> int:
        """Return the next number of that kind, from 1."""
        self.counters[kind] += 1
        return self.counters[kind]

    def fresh_system_id(self) -> str:
        """Return a system id that no machine has."""
        while True:
            found = "".join(self.dice.choices(_ID_LETTERS, k=6))
            if found not in self.machines and found not in self.racks:
                return found

    def fresh_uuid(self) -> str:
        """Return a random UUID."""
        return str(uuid.UUID(int=self.dice.getrandbits(128), version=4))

    def by_hostname(self, hostname: str) -> Machine | None:
        """Find a machine by its host name or FQDN."""
        return next((one for one in self.machines.values() if hostname in {one.hostname, one.fqdn}), None)

    def by_mac(self, mac: str) -> Machine | None:
        """Find a machine by one of its MAC addresses."""
        return next((one for one in self.machines.values() if one.has_mac(mac.lower())), None)

    def new_fabric_vlan(self) -> Vlan:
        """Add a fabric with its untagged VLAN."""
        fabric = self.counters["fabric"]
        self.counters["fabric"] += 1
        vlan = Vlan(id=5000 + self.number("vlan"), fabric_id=fabric)
        self.vlans[vlan.id] = vlan
        return vlan

    def subnet_of_vlan(self, vlan_id: int | None) -> Subnet | None:
        """Return the first subnet on a VLAN."""
        return next((one for one in self.subnets.values() if one.vlan_id == vlan_id), None)

    def script_set(self, number: int | None) -> ScriptSet | None:
        """Return a script set by its number."""
        return None if number is None else self.script_sets.get(number)


def new_region(config: MaasConfig, now: float) -> Region:
    """Make the region that a fresh installation has."""
    region = Region(users={user.name: user for user in config.users})
    region.zones["default"] = Zone(region.number("zone"), "default")
    region.pools["default"] = Zone(0, "default", "Default pool")
    region.settings = {"default_distro_series": "noble", "default_osystem": "ubuntu", "maas_name": "lab"}
    for script in built_in_scripts(now):
        region.scripts[script.name] = script
        region.counters["script"] = script.id
    for image in config.images:
        series, number = image.name, region.number("image")
        region.images[number] = BootResource(
            number, series, f"{image.architecture}/{image.kernel}", image.uploaded, image.title, image.base
        )
    for spec in config.subnets:
        vlan = region.new_fabric_vlan()
        number = region.number("subnet")
        region.subnets[number] = Subnet(number, spec.name or spec.cidr, spec.cidr, vlan.id, spec.gateway_ip)
    for name in config.rack_controllers:
        region.racks[region.fresh_system_id()] = name
    if config.users:
        for key in config.ssh_keys:
            number = region.number("sshkey")
            region.ssh_keys[number] = SshKey(number, key, config.users[0].name)
    return region
