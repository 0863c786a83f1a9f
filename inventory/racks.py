"""Reads racks and their nodes, one by one or many by a pattern."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Callable, Collection
from dataclasses import dataclass, field
from typing import TypeVar

from inventory.errors import NodeSetSyntax
from inventory.marked import Fields, Value
from inventory.model import BmcAddress, BmcProtocol, Node, Rack
from inventory.nodeset import expand, nearest

_T = TypeVar("_T")

_RACK = {"zone", "controller", "pod", "profile", "bmc", "nodes"}
_NODE = {
    "profile", "bmc", "serial", "mac", "macs", "unit", "address", "ssh_port", "architecture", "roles",
}  # fmt: skip
_BMC_SHARED = {"credential", "protocol", "port", "redfish_port"}
_BMC = _BMC_SHARED | {"host", "fingerprint"}
_NAME = re.compile(r"[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?")
_MAC = re.compile(r"[0-9a-f]{2}(:[0-9a-f]{2}){5}")
_FINGERPRINT = re.compile(r"[0-9a-f]{64}")
_HOST = re.compile(r"(?=.{1,253}$)[A-Za-z0-9]([A-Za-z0-9-]{0,62})(\.[A-Za-z0-9][A-Za-z0-9-]{0,62})*")
# {n}, {n:02}, {n:02x}, {n+100}: the number in the node's name, moved and printed
_NUMBER = re.compile(r"\{n([+-][0-9]{1,6})?(?::([0-9]{0,3}[dxX]?))?\}")
_PATTERN = re.compile(r"([^\[\]]*)\[([^\[\]]*)\]([^\[\]]*)")


@dataclass(frozen=True, slots=True)
class Names:
    """What a rack may refer to."""

    profiles: frozenset[str]
    credentials: frozenset[str]


@dataclass(slots=True)
class Described:
    """What has been said so far, and where: nothing may be said of two nodes."""

    nodes: dict[str, str] = field(default_factory=dict)
    said: dict[tuple[str, str], tuple[str, str]] = field(default_factory=dict)

    def describe(self, node: str, key: Value) -> None:
        """Remember where a node is described. Raises SiteFileError if it is a second time."""
        if node in self.nodes:
            raise key.wrong(f"node {node} is described twice, first in {self.nodes[node]}")
        self.nodes[node] = f"{key.path.name}:{key.line}"

    def once(self, what: str, text: str, node: str, value: Value) -> None:
        """Remember that `text` is the node's `what`. Raises SiteFileError if it is another's already."""
        other = self.said.setdefault((what, text), (node, f"{value.path.name}:{value.line}"))
        if other[0] != node:
            raise value.wrong(f"{what} {text} of {node} is also {other[0]}'s ({other[1]})")


@dataclass(frozen=True, slots=True)
class _Shared:
    """What a rack says once for all its nodes."""

    rack: str
    profile: str | None
    bmc: Fields | None
    names: Names


@dataclass(frozen=True, slots=True)
class _Reader:
    """Reads the values of one node: puts its number where the pattern says {n}."""

    node: str
    number: int | None

    def text(self, value: Value) -> str:
        return _NUMBER.sub(lambda match: self._digits(match, value), value.text())

    def texts(self, value: Value) -> tuple[str, ...]:
        return tuple(self.text(item) for item in value.items())

    def integer(self, value: Value, low: int, high: int) -> int:
        text = self.text(value)
        if text == value.text() or not re.fullmatch("[0-9]{1,9}", text):
            return value.integer(low, high)
        if not low <= int(text) <= high:
            raise value.wrong(f"{value.name} of {self.node} is {text}, outside {low} to {high}")
        return int(text)

    def _digits(self, match: re.Match[str], value: Value) -> str:
        if self.number is None:
            raise value.wrong(
                f"{match.group()} has no meaning here: {self.node} is not described by a pattern"
            )
        number = self.number + int(match.group(1) or 0)
        if number < 0:
            raise value.wrong(f"{match.group()} of {self.node} is {number}")
        return format(number, match.group(2) or "")


def read_rack(name: str, value: Value, names: Names, described: Described) -> Rack:
    """Read one rack. Raises SiteFileError."""
    _check_name(name, value, "rack")
    fields = value.fields(_RACK, required=("nodes",))
    profile = known_name(fields["profile"], names.profiles, "profile") if "profile" in fields else None
    bmc = fields["bmc"].fields(_BMC_SHARED) if "bmc" in fields else None
    shared = _Shared(name, profile, bmc, names)
    nodes: list[Node] = []
    for key, entry in fields["nodes"].entries():
        for reader in _readers(key):
            described.describe(reader.node, key)
            nodes.append(_node(reader, entry, shared, described))
    zone = fields.text("zone", "default")
    return Rack(name, tuple(nodes), zone, fields.text("controller", "default"), fields.text("pod", zone))


def _readers(key: Value) -> list[_Reader]:
    """One reader a node that the key names: itself, or every one of a pattern with one range."""
    text = key.text()
    if "[" not in text and "]" not in text:
        _check_name(text, key, "node")
        return [_Reader(text, None)]
    match = _PATTERN.fullmatch(text)
    if match is None:
        raise key.wrong(f"{text} must have one range, for example r1-n[01-32]")
    prefix, _, suffix = match.groups()
    if prefix[-1:].isdigit() or suffix[:1].isdigit():
        raise key.wrong(f"{text} has digits beside its range; write them into the range")
    try:
        found = expand(text)
    except NodeSetSyntax as exc:
        raise key.wrong(f"{text} is not a pattern: {exc.what}") from exc
    for name in found:
        _check_name(name, key, "node")
    return [_Reader(name, int(name.removeprefix(prefix).removesuffix(suffix))) for name in found]


def _node(reader: _Reader, value: Value, shared: _Shared, described: Described) -> Node:
    fields = value.fields(_NODE, required=("bmc",))
    name = reader.node
    node = Node(
        name=name,
        rack=shared.rack,
        profile=_profile(fields, value, shared),
        bmc=_bmc(reader, fields["bmc"], shared),
        serial=reader.text(fields["serial"]) if "serial" in fields else None,
        macs=_macs(reader, fields, described),
        unit=reader.integer(fields["unit"], 1, 100) if "unit" in fields else None,
        address=_host(reader, fields["address"], "address") if "address" in fields else None,
        ssh_port=fields.integer("ssh_port", 22, low=1, high=65535),
        architecture=fields.text("architecture", "amd64/generic"),
        roles=fields.texts("roles"),
    )
    # One host may serve several BMCs only on ports of their own, both of them.
    ports = {node.bmc.port, node.bmc.redfish_port} - {623, 443}
    place = ":".join([node.bmc.host, *(str(port) for port in sorted(ports))])
    described.once("the BMC address", place, name, fields["bmc"])
    if node.serial is not None:
        described.once("the serial", node.serial, name, fields["serial"])
    if node.address is not None:
        described.once("the address", f"{node.address}:{node.ssh_port}", name, fields["address"])
    if node.unit is not None:
        described.once(f"the unit in {shared.rack},", str(node.unit), name, fields["unit"])
    return node


def _profile(fields: Fields, value: Value, shared: _Shared) -> str:
    if "profile" in fields:
        return known_name(fields["profile"], shared.names.profiles, "profile")
    if shared.profile is None:
        raise value.wrong(f"{value.name} needs a key profile, or its rack one for all nodes")
    return shared.profile


def _bmc(reader: _Reader, value: Value, shared: _Shared) -> BmcAddress:
    own = value.fields(_BMC, required=("host",)) if value.is_mapping() else None
    host = _host(reader, value if own is None else own["host"], "BMC address")

    def said(key: str) -> Value | None:
        for fields in (own, shared.bmc):
            if fields is not None and key in fields:
                return fields[key]
        return None

    credential = said("credential")
    if credential is None:
        raise value.wrong(f"{value.name} names no credential, nor does its rack")
    fingerprint = own["fingerprint"] if own is not None and "fingerprint" in own else None
    return BmcAddress(
        host=host,
        credential=known_name(credential, shared.names.credentials, "credential"),
        protocol=_read(said("protocol"), _protocol, BmcProtocol.AUTO),
        port=_read(said("port"), _port, 623),
        redfish_port=_read(said("redfish_port"), _port, 443),
        fingerprint=_read(fingerprint, _fingerprint, None),
    )


def _read(value: Value | None, read: Callable[[Value], _T], default: _T) -> _T:
    return default if value is None else read(value)


def _port(value: Value) -> int:
    return value.integer(1, 65535)


def _protocol(value: Value) -> BmcProtocol:
    return BmcProtocol(known_name(value, [str(protocol) for protocol in BmcProtocol], "protocol"))


def _fingerprint(value: Value) -> str | None:
    text = value.text().lower().replace(":", "")
    if not _FINGERPRINT.fullmatch(text):
        raise value.wrong(f"{value.name} must be a sha256 of 64 hexadecimal digits")
    return text


def _macs(reader: _Reader, fields: Fields, described: Described) -> tuple[str, ...]:
    if "mac" in fields and "macs" in fields:
        raise fields["macs"].wrong(f"{reader.node} has both mac and macs; the first of macs boots")
    values = [fields["mac"]] if "mac" in fields else fields["macs"].items() if "macs" in fields else []
    macs = []
    for value in values:
        mac = reader.text(value).lower().replace("-", ":")
        if not _MAC.fullmatch(mac):
            raise value.wrong(f"{value.name} of {reader.node} is no MAC address: {mac}")
        if int(mac[:2], 16) & 1:
            raise value.wrong(f"{value.name} of {reader.node} is a group address, not one of a port: {mac}")
        described.once("the MAC", mac, reader.node, value)
        macs.append(mac)
    return tuple(macs)


def _host(reader: _Reader, value: Value, what: str) -> str:
    text = reader.text(value)
    try:
        return str(ipaddress.ip_address(text))
    except ValueError:
        # All digits and dots is an address with a slip in it, never a name.
        if _HOST.fullmatch(text) and not re.fullmatch(r"[0-9.]+", text):
            return text.lower()
    raise value.wrong(f"{what} of {reader.node} is neither an address nor a host name: {text}")


def _check_name(name: str, value: Value, what: str) -> None:
    if not _NAME.fullmatch(name):
        raise value.wrong(f"{what} name {name!r} must be lower-case letters, digits and dashes, at most 63")


def known_name(value: Value, known: Collection[str], what: str) -> str:
    """Return the text of `value` if it is one of `known`. Raises SiteFileError with the nearest one."""
    text = value.text()
    if text not in known:
        close = nearest(text, known)
        hint = f"; did you mean {close}?" if close else f"; there is {', '.join(sorted(known)) or 'none'}"
        raise value.wrong(f"{what} {text} is not described{hint}")
    return text
