"""Names and addresses of the virtual racks: the same for every start, so that site files fit.

Everything follows from the lab's net (`MUSTER_LAB_NET`, by default 127.77) and a node's number.
The README lists the plan; `third octets` below are the third number of 127.77.x.y and 10.77.x.y.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from lab.errors import BadRequest

NODES_A_BLOCK = 250
BMC_USER = "admin"
BMC_PORT = 623
REDFISH_PORT = 443
MAAS_PORT = 5240
PROXY_PORT = 3142
CLOCK_PORT = 123


class RackKind(StrEnum):
    """The racks that a lab can hold; the value is the rack's name."""

    NAMESPACE = "lab"
    REAL = "lab-real"
    LIGHT = "lab-light"


@dataclass(frozen=True, slots=True)
class LabNet:
    """The second octet that one lab owns in 127.0.0.0/8 and, behind its bridge, in 10.0.0.0/8."""

    octet: int = 77

    @classmethod
    def from_environment(cls, environ: Mapping[str, str] = os.environ) -> LabNet:
        """Read `MUSTER_LAB_NET`. Raises BadRequest for anything but 127.N with N in 1..254."""
        text = environ.get("MUSTER_LAB_NET") or "127.77"
        match = re.fullmatch(r"127\.(\d{1,3})", text)
        if match is None or not 1 <= int(match[1]) <= 254:
            raise BadRequest(
                "MUSTER_LAB_NET",
                f"{text!r} is no net of the form 127.N with N from 1 to 254",
                follow="unset MUSTER_LAB_NET, or set it to 127.78 for a second lab",
            )
        return cls(int(match[1]))

    def loopback(self, third: int, fourth: int) -> str:
        return f"127.{self.octet}.{third}.{fourth}"

    def inside(self, third: int, fourth: int) -> str:
        return f"10.{self.octet}.{third}.{fourth}"

    @property
    def subnet(self) -> str:
        return f"10.{self.octet}.0.0/16"

    @property
    def gateway(self) -> str:
        """The bridge's own address: the package proxy and the clock answer here."""
        return self.inside(0, 1)

    @property
    def maas_host(self) -> str:
        return self.loopback(0, 2)

    @property
    def maas_url(self) -> str:
        return f"http://{self.maas_host}:{MAAS_PORT}/MAAS"

    @property
    def bridge(self) -> str:
        return "labbr0" if self.octet == 77 else f"labbr{self.octet}"

    @property
    def cgroup(self) -> str:
        return f"muster-lab-{self.octet}"

    def link(self, third: int, fourth: int) -> str:
        """The name of a node's cable at the bridge; Linux allows 15 characters."""
        return f"lab{self.octet}p{third}-{fourth}"


@dataclass(frozen=True, slots=True)
class NodeSpec:
    """One node of a virtual rack: intent, made from its rack and number alone."""

    name: str
    rack: RackKind
    number: int  # from 1
    serial: str
    mac: str
    bmc_host: str
    address: str  # where its sshd answers
    link: str
    bmc_port: int = BMC_PORT
    ssh_port: int = 22


def node_spec(net: LabNet, rack: RackKind, number: int) -> NodeSpec:
    """Return node `number` of `rack`. Raises BadRequest where the plan has no room for it."""
    block, rest = divmod(number - 1, NODES_A_BLOCK)
    third, fourth = _third_octet(rack, block), rest + 1
    prefix, letter, width = _NAMES[rack]
    real = rack is RackKind.REAL
    return NodeSpec(
        name=f"{prefix}{number:0{width}d}",
        rack=rack,
        number=number,
        serial=f"LAB-{letter}{number:0{width}d}",
        mac=f"52:54:00:{net.octet % 100:02d}:{third:02x}:{fourth:02x}",
        bmc_host=net.loopback(third, fourth),
        address=net.loopback(3, fourth) if real else net.inside(third, fourth),
        link=net.link(third, fourth),
    )


def rack_specs(net: LabNet, rack: RackKind, count: int) -> tuple[NodeSpec, ...]:
    """Return the first `count` nodes of `rack`."""
    return tuple(node_spec(net, rack, number) for number in range(1, count + 1))


@dataclass(frozen=True, slots=True)
class LabPaths:
    """Where one lab keeps its state: `$MUSTER_STATE/lab`, by default `var/lab` in the checkout."""

    state: Path

    @classmethod
    def from_environment(cls, environ: Mapping[str, str] = os.environ) -> LabPaths:
        base = environ.get("MUSTER_STATE")
        root = Path(base) if base else Path(__file__).resolve().parent.parent / "var"
        return cls((root / "lab").resolve())

    @property
    def socket(self) -> Path:
        return self.state / "control.sock"

    @property
    def log(self) -> Path:
        return self.state / "lab.log"

    @property
    def lock(self) -> Path:
        return self.state / "lab.lock"

    @property
    def plan(self) -> Path:
        """What the running lab was started with."""
        return self.state / "plan.json"

    @property
    def secrets(self) -> Path:
        return self.state / "secrets"

    @property
    def nodes(self) -> Path:
        """One folder a node: its disk, its serial log, its faults."""
        return self.state / "nodes"


def cache_folder(environ: Mapping[str, str] = os.environ) -> Path:
    """Return the folder that outlives checkouts: root file systems and fetched packages."""
    return Path(environ.get("MUSTER_LAB_CACHE") or "/var/cache/muster-lab")


_NAMES = {
    RackKind.NAMESPACE: ("lab-n", "N", 2),
    RackKind.REAL: ("lab-real-n", "R", 2),
    RackKind.LIGHT: ("lab-light-n", "L", 3),
}


def _third_octet(rack: RackKind, block: int) -> int:
    """Blocks of 250: rack lab has 1, then 4 to 63; lab-real has 2; lab-light has 64 to 127."""
    first, rest, last = {
        RackKind.NAMESPACE: (1, 4, 63),
        RackKind.REAL: (2, 3, 2),
        RackKind.LIGHT: (64, 65, 127),
    }[rack]
    third = first if block == 0 else rest + block - 1
    if block < 0 or third > last:
        raise BadRequest(
            f"rack {rack}",
            f"has no room for node number {block * NODES_A_BLOCK + 1}",
            follow=f"ask for fewer nodes in rack {rack}",
        )
    return third
