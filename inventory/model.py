"""What a site is made of: nodes, racks, profiles. Frozen values, no I/O."""

from __future__ import annotations

import ipaddress
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path


class Stage(StrEnum):
    """How far a node has come (DESIGN §1), in order."""

    RACKED = "racked"
    REACHABLE = "reachable"
    ENLISTED = "enlisted"
    COMMISSIONED = "commissioned"
    DEPLOYED = "deployed"
    CONFIGURED = "configured"
    VERIFIED = "verified"


class Pool(StrEnum):
    """Where a node stands once it has been judged."""

    RELIABLE = "reliable"
    SPARE = "spare"
    QUARANTINE = "quarantine"
    REPAIR = "repair"
    RETIRED = "retired"


class BmcProtocol(StrEnum):
    """How a BMC is spoken to; AUTO asks the BMC."""

    AUTO = "auto"
    IPMI = "ipmi"
    REDFISH = "redfish"


@dataclass(frozen=True, slots=True)
class BmcAddress:
    """Where a node's BMC answers, and the name of the credential that opens it."""

    host: str
    credential: str
    protocol: BmcProtocol = BmcProtocol.AUTO
    port: int = 623
    redfish_port: int = 443
    fingerprint: str | None = None  # sha256 of the TLS certificate, hex

    @property
    def subnet(self) -> str:
        """The /24 (or /64) that shares a cap; a name that is no address is its own subnet."""
        try:
            address = ipaddress.ip_address(self.host)
        except ValueError:
            return self.host
        bits = 24 if address.version == 4 else 64
        return str(ipaddress.ip_network(f"{address}/{bits}", strict=False))


@dataclass(frozen=True, slots=True)
class Node:
    """One server of a rack as the site files describe it: intent, not state."""

    name: str
    rack: str
    profile: str
    bmc: BmcAddress
    serial: str | None = None  # chassis or product serial in the BMC's FRU
    macs: tuple[str, ...] = ()  # lower case, colon separated; the first one boots
    unit: int | None = None  # rack position, U
    address: str | None = None  # SSH; None: the address MAAS reports
    ssh_port: int = 22
    architecture: str = "amd64/generic"
    roles: tuple[str, ...] = ()  # what it serves to others, for example "kraken_origin"


@dataclass(frozen=True, slots=True)
class Rack:
    """Nodes that share a frame, power and a MAAS rack controller."""

    name: str
    nodes: tuple[Node, ...]
    zone: str = "default"  # MAAS zone
    controller: str = "default"  # MAAS rack controller; its own cap
    pod: str = "default"  # racks between which the fabric is as fast as within one


@dataclass(frozen=True, slots=True)
class Profile:
    """One kind of hardware: what to image it with, how long it takes, what is healthy.

    `deadlines` maps a stage name to seconds. `limits` maps dotted names, for example
    "gpu.count", to the value a check compares with; a missing limit makes the check unknown.
    """

    name: str
    vendor: str = ""
    model: str = ""
    os_image: str = "custom/debian-12"  # MAAS osystem/distro_series
    deadlines: Mapping[str, float] = field(default_factory=dict)
    limits: Mapping[str, object] = field(default_factory=dict)
    checks: tuple[str, ...] = ()  # ids required at the gate; empty: all of the level
    playbook: str = "site.yml"

    def limit(self, name: str) -> object | None:
        """Return the limit called `name`, or None where this profile does not state it."""
        return self.limits.get(name)


@dataclass(frozen=True, slots=True)
class CredentialRef:
    """A user name and references to secrets (`env:NAME`, `file:PATH`), never the secrets."""

    name: str
    username: str
    password: str
    kg: str | None = None


@dataclass(frozen=True, slots=True)
class MaasEndpoint:
    """Where MAAS answers; `key` is a reference to `consumer:token:secret`."""

    url: str
    key: str


@dataclass(frozen=True, slots=True)
class MirrorEndpoint:
    """Where the site's file mirror answers nodes and us; `token` is a reference, None: we only read."""

    url: str
    token: str | None = None


@dataclass(frozen=True, slots=True)
class RegistryEndpoint:
    """Where the site's container image registry answers; `password` is a reference."""

    url: str
    username: str = ""
    password: str | None = None


@dataclass(frozen=True, slots=True)
class SshAccess:
    """How deployed nodes are reached."""

    user: str
    key: str  # reference to a private key file: `file:PATH`
    become: bool = True


@dataclass(frozen=True, slots=True)
class Site:
    """Everything the site files say. `prepare` runs before any command that needs the site,
    for example to open a tunnel; it must be quick when there is nothing to do."""

    name: str
    path: Path
    maas: MaasEndpoint
    ssh: SshAccess
    racks: tuple[Rack, ...]
    profiles: Mapping[str, Profile]
    credentials: Mapping[str, CredentialRef]
    prepare: tuple[str, ...] = ()
    spare_share: float = 0.1
    slurm: bool = False  # whether Slurm knows the nodes, and is asked before one is touched
    mirror: MirrorEndpoint | None = None
    registry: RegistryEndpoint | None = None

    @property
    def nodes(self) -> tuple[Node, ...]:
        """All nodes, in the order of the files."""
        return tuple(node for rack in self.racks for node in rack.nodes)

    def rack_of(self, node: Node) -> Rack:
        """Return the rack that holds `node`. Raises KeyError for a node of another site."""
        for rack in self.racks:
            if rack.name == node.rack:
                return rack
        raise KeyError(node.rack)
