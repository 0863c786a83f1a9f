"""Reads PCI devices: sysfs files, `lspci -vv`."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from health.errors import Unreadable

_HEAD = re.compile(
    r"^(?P<address>(?:[0-9a-f]{4,5}:)?[0-9a-f]{2}:[0-9a-f]{2}\.\d) (?P<kind>[^:]+?)"
    r"(?: \[(?P<class>[0-9a-f]{4})\])?: (?P<name>.*)$"
)
_CAP = re.compile(r"LnkCap:.*?Speed (?P<speed>[\d.]+)GT/s, Width x(?P<width>\d+)")
_STA = re.compile(r"LnkSta:\s*Speed (?P<speed>[\d.]+)GT/s[^,]*, Width x(?P<width>\d+)")
_SYSFS = re.compile(r"/sys/bus/pci/devices/(?P<address>[0-9a-f:.]+)/(?P<what>\w+)$")


@dataclass(frozen=True, slots=True)
class PciDevice:
    """One device. Speeds in GT/s; None where it has no link of its own to tell of."""

    address: str
    kind: str  # lspci's words, or the class code in hex
    vendor: str  # hex, or a name
    device: str
    speed: float | None
    width: int | None
    speed_max: float | None
    width_max: int | None
    driver: str = ""

    @property
    def is_bridge(self) -> bool:
        """Say whether it only leads to others."""
        return "bridge" in self.kind.lower() or self.kind.startswith("0604")


def read_lspci(text: str) -> tuple[PciDevice, ...]:
    """Read `lspci -vv`. Raises Unreadable."""
    devices = []
    head: re.Match[str] | None = None
    body: list[str] = []
    for line in [*text.splitlines(), "ff:1f.7 end: "]:
        found = _HEAD.match(line)
        if not found:
            body.append(line)
            continue
        if head:
            devices.append(_lspci_device(head, "\n".join(body)))
        head, body = found, []
    if not devices or len({one.address for one in devices}) != len(devices):
        raise Unreadable("lspci", "it names no device, or one twice")
    return tuple(devices)


def _lspci_device(head: re.Match[str], body: str) -> PciDevice:
    cap, sta = _CAP.search(body), _STA.search(body)
    driver = re.search(r"Kernel driver in use: (\S+)", body)
    address = head["address"] if head["address"].count(":") == 2 else f"0000:{head['address']}"
    return PciDevice(
        address,
        head["kind"],
        head["name"].split(" ")[0],
        head["name"],
        float(sta["speed"]) if sta else None,
        int(sta["width"]) if sta else None,
        float(cap["speed"]) if cap else None,
        int(cap["width"]) if cap else None,
        driver[1] if driver else "",
    )


def read_pci(files: Mapping[str, str]) -> tuple[PciDevice, ...]:
    """Read files under /sys/bus/pci/devices by their paths. Raises Unreadable."""
    raw: dict[str, dict[str, str]] = {}
    for path, content in files.items():
        if found := _SYSFS.search(path):
            raw.setdefault(found["address"], {})[found["what"]] = content.strip()
    if not raw:
        raise Unreadable("/sys/bus/pci/devices", "it shows no device")
    return tuple(_sysfs_device(address, fields) for address, fields in sorted(raw.items()))


def _sysfs_device(address: str, fields: Mapping[str, str]) -> PciDevice:
    event = dict(line.split("=", 1) for line in fields.get("uevent", "").splitlines() if "=" in line)
    kind, both = event.get("PCI_CLASS", ""), event.get("PCI_ID", "")
    if not re.fullmatch(r"[0-9A-Fa-f]{5,6}", kind) or not re.fullmatch(r"[0-9A-Fa-f]+:[0-9A-Fa-f]+", both):
        raise Unreadable(f"/sys/bus/pci/devices/{address}", "it does not say what the device is")
    vendor, _, device = both.lower().partition(":")
    return PciDevice(
        address,
        kind.lower().rjust(6, "0"),
        vendor.rjust(4, "0"),
        device.rjust(4, "0"),
        _speed(fields.get("current_link_speed")),
        _width(fields.get("current_link_width")),
        _speed(fields.get("max_link_speed")),
        _width(fields.get("max_link_width")),
        event.get("DRIVER", ""),
    )


def _speed(text: str | None) -> float | None:
    if text is None or text in ("Unknown", "Unknown speed"):
        return None
    found = re.fullmatch(r"(\d+(?:\.\d+)?) GT/s(?: PCIe)?", text)
    if not found:
        raise Unreadable("PCI link speed", f"it says {text[:40]!r}")
    return float(found[1])


def _width(text: str | None) -> int | None:
    if text is None:
        return None
    if not text.isdecimal():
        raise Unreadable("PCI link width", f"it says {text[:40]!r}")
    return int(text) if 0 < int(text) < 64 else None  # 0 and 255 stand for no link
