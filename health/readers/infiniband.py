"""Reads a node's InfiniBand and RoCE ports: sysfs, ibstat, ibstatus, ibv_devinfo, rdma link."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace

from health.errors import Unreadable

_CA = re.compile(r"^CA '(?P<device>[^']+)'\s*$", re.MULTILINE)
_PORT = re.compile(r"^\s*Port (?P<port>\d+):\s*$", re.MULTILINE)
_STATUS = re.compile(r"^Infiniband device '(?P<device>[^']+)' port (?P<port>\d+) status:\s*$", re.MULTILINE)
_RDMA = re.compile(
    r"^(?:\d+: )?link (?P<device>[^/\s]+)/(?P<port>\d+) .*?state (?P<state>\w+)"
    r"(?: physical_state (?P<physical>\w+))?"
    r"(?:.*? netdev (?P<netdev>\S+))?",
    re.MULTILINE,
)
_BOUND = re.compile(
    r"^(?P<device>\S+) port (?P<port>\d+) ==> (?P<netdev>\S+) \((?P<state>Up|Down)\)", re.MULTILINE
)
_SYSFS = re.compile(
    r"(?:/sys/bus/pci/devices/(?P<pci>[0-9a-f:.]+)/infiniband|/sys/class/infiniband)/(?P<device>[^/]+)/"
    r"(?:ports/(?P<port>\d+)/)?(?P<what>[\w/]+)$"
)
# ibstat gives the number alone; ibstatus and the kernel give "400 Gb/sec (4X NDR)".
_RATE = re.compile(r"(\d+(?:\.\d+)?)(?: Gb/sec(?: \(\d+X ?\w*\))?)?")
_NETDEV = re.compile(r"/sys/bus/pci/devices/(?P<pci>[0-9a-f:.]+)/net/(?P<netdev>[^/]+)/(?P<what>\w+)$")


@dataclass(frozen=True, slots=True)
class Port:
    """One port. `rate` is in Gb/s; a fact that the source does not tell is None or ""."""

    device: str  # mlx5_4: tells nothing about where it sits
    number: int
    state: str  # Active, Initializing, Armed, Down
    physical: str  # LinkUp, Polling, Disabled, ...
    rate: float | None
    layer: str  # InfiniBand, Ethernet
    model: str = ""
    firmware: str = ""
    guid: str = ""
    lid: int | None = None
    sm_lid: int | None = None
    pci: str = ""
    netdev: str = ""
    netdev_state: str = ""
    netdev_speed: float | None = None  # Gb/s

    @property
    def up(self) -> bool:
        """Say whether it carries traffic."""
        return self.state == "Active" and self.physical in ("LinkUp", "")

    @property
    def identity(self) -> str:
        """Name the port by what stays: its PCI address, else its GUID."""
        # A port that is off, or speaks Ethernet, may show a GUID of nothing but noughts.
        where = self.pci or (self.guid if self.guid.strip("0x:") else "")
        return f"{where} ({self.device} port {self.number})" if where else f"{self.device} port {self.number}"


def read_ports(text: str) -> tuple[Port, ...]:
    """Read any of the tools' forms. Raises Unreadable."""
    for pattern, read in (
        (_CA, read_ibstat),
        (_STATUS, read_ibstatus),
        (re.compile(r"^hca_id:", re.MULTILINE), read_devinfo),
        (_RDMA, _read_rdma),
        (_BOUND, _read_bound),
    ):
        if pattern.search(text):
            return read(text)
    raise Unreadable("InfiniBand ports", f"it begins {text.strip()[:60]!r}")


def read_ibstat(text: str) -> tuple[Port, ...]:
    """Read `ibstat`. Raises Unreadable unless each adapter tells of as many ports as it counts."""
    ports: list[Port] = []
    parts = _CA.split(text)
    for device, block in zip(parts[1::2], parts[2::2], strict=True):
        pieces = _PORT.split(block)
        head = _fields(pieces[0])
        own = [
            _port(device, int(number), _fields(body), head)
            for number, body in zip(pieces[1::2], pieces[2::2], strict=True)
        ]
        if str(len(own)) != head.get("number of ports"):
            raise Unreadable("ibstat", f"it does not describe all ports of {device}")
        ports += own
    if not ports:
        raise Unreadable("ibstat", "it names no adapter")
    return tuple(ports)


def read_ibstatus(text: str) -> tuple[Port, ...]:
    """Read `ibstatus`. Raises Unreadable."""
    parts = _STATUS.split(text)
    return tuple(
        _port(device, int(number), _fields(body), {})
        for device, number, body in zip(parts[1::3], parts[2::3], parts[3::3], strict=True)
    )


def read_devinfo(text: str) -> tuple[Port, ...]:
    """Read `ibv_devinfo`. Raises Unreadable."""
    ports = []
    for block in re.split(r"^hca_id:", text, flags=re.MULTILINE)[1:]:
        device = block.split("\n", 1)[0].strip()
        pieces = re.split(r"^\s*port:\s+(\d+)\s*$", block, flags=re.MULTILINE)
        head = _fields(pieces[0])
        for number, body in zip(pieces[1::2], pieces[2::2], strict=True):
            fields = _fields(body)
            state = re.match(r"PORT_(\w+)", fields.get("state", ""))
            if not state:
                raise Unreadable("ibv_devinfo", f"port {number} of {device} has no state")
            ports.append(
                Port(
                    device,
                    int(number),
                    _state(state[1]),
                    "",
                    None,
                    fields.get("link_layer", ""),
                    firmware=head.get("fw_ver", ""),
                    guid=head.get("node_guid", ""),
                )
            )
    if not ports:
        raise Unreadable("ibv_devinfo", "it names no port")
    return tuple(ports)


def read_sysfs(files: Mapping[str, str]) -> tuple[Port, ...]:
    """Read files under /sys by their paths. Raises Unreadable where a port lacks state or rate."""
    raw: dict[tuple[str, int], dict[str, str]] = {}
    common: dict[str, dict[str, str]] = {}
    where: dict[str, str] = {}
    for path, content in files.items():
        if not (found := _SYSFS.search(path)):
            continue
        if found["pci"]:
            where[found["device"]] = found["pci"]
        if found["port"]:
            raw.setdefault((found["device"], int(found["port"])), {})[found["what"]] = content.strip()
        else:
            common.setdefault(found["device"], {})[found["what"]] = content.strip()
    if not raw:
        raise Unreadable("/sys/class/infiniband", "it shows no port")
    ports = []
    for (device, number), fields in raw.items():
        shared = common.get(device, {})
        renamed = {name.replace("_", " "): value for name, value in fields.items()}
        if not fields.get("rate", "").endswith(")"):
            raise Unreadable("InfiniBand port", f"the rate of {device} port {number} is cut")
        head = {
            "ca type": shared.get("hca_type", ""),
            "firmware version": shared.get("fw_ver", ""),
            "node guid": shared.get("node_guid", ""),
        }
        ports.append(replace(_port(device, number, renamed, head), pci=where.get(device, "")))
    return _with_netdevs(tuple(ports), files)


def _with_netdevs(ports: tuple[Port, ...], files: Mapping[str, str]) -> tuple[Port, ...]:
    netdevs: dict[str, dict[str, str]] = {}
    for path, content in files.items():
        if found := _NETDEV.search(path):
            entry = netdevs.setdefault(found["pci"], {"name": found["netdev"]})
            entry[found["what"]] = content.strip()
    joined = []
    for port in ports:
        entry = netdevs.get(port.pci, {})
        speed = entry.get("speed", "")
        joined.append(
            replace(
                port,
                netdev=entry.get("name", ""),
                netdev_state=entry.get("operstate", ""),
                netdev_speed=int(speed) / 1000 if speed.isdecimal() else None,
            )
        )
    return tuple(joined)


def _port(device: str, number: int, fields: Mapping[str, str], head: Mapping[str, str]) -> Port:
    state = _state(re.sub(r"^\d+: ", "", fields.get("state", "")))
    physical = re.sub(r"^\d+: ", "", fields.get("physical state") or fields.get("phys state") or "")
    rate = _RATE.fullmatch(fields.get("rate", ""))
    layer = fields.get("link layer") or fields.get("link_layer") or ""
    if not state or not physical or not rate:
        raise Unreadable("InfiniBand port", f"{device} port {number} has no state or rate")
    return Port(
        device,
        number,
        state,
        physical,
        float(rate[1]),
        layer,
        model=head.get("ca type", ""),
        firmware=head.get("firmware version", ""),
        guid=fields.get("port guid") or head.get("node guid", ""),
        lid=_integer(fields.get("base lid") or fields.get("lid")),
        sm_lid=_integer(fields.get("sm lid")),
    )


def _read_rdma(text: str) -> tuple[Port, ...]:
    return tuple(
        Port(
            found["device"],
            int(found["port"]),
            _state(found["state"]),
            (found["physical"] or "").replace("LINK_UP", "LinkUp").title().replace("Linkup", "LinkUp"),
            None,
            "",
            netdev=found["netdev"] or "",
        )
        for found in _RDMA.finditer(text)
    )


def _read_bound(text: str) -> tuple[Port, ...]:
    return tuple(
        Port(
            found["device"],
            int(found["port"]),
            "Active" if found["state"] == "Up" else "Down",
            "",
            None,
            "",
            netdev=found["netdev"],
            netdev_state=found["state"].lower(),
        )
        for found in _BOUND.finditer(text)
    )


def _state(word: str) -> str:
    return {"INIT": "Initializing"}.get(word, word.capitalize())


def _integer(text: str | None) -> int | None:
    try:
        return int(text or "", 0)
    except ValueError:
        return None


def _fields(text: str) -> dict[str, str]:
    pairs = (line.partition(":") for line in text.splitlines())
    return {label.strip().lower(): value.strip() for label, sign, value in pairs if sign}
