"""Takes what differs from boot to boot and from node to node out of a line, and keeps it by type."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache

# First match wins, so the narrow come before the wide. Each name is the type that the value is kept as.
_TYPES = (
    ("model", r"(?<=Direct-Access ).*?(?= PQ:)|(?<=idVendor=)\w+, idProduct=\w+"),
    ("port", r"(?<=\busb )\d+-\d+(?:\.\d+)*(?=:)"),
    ("uuid", r"\b[0-9a-fA-F]{8}-(?:[0-9a-fA-F]{4}-){3}[0-9a-fA-F]{12}\b"),
    ("mac", r"\b(?:[0-9a-fA-F]{2}:){5}[0-9a-fA-F]{2}\b"),
    ("guid", r"\b[0-9a-fA-F]{4}(?::[0-9a-fA-F]{4}){3}\b"),
    (
        "pci",
        r"\b(?:[0-9a-fA-F]{4,8}:)?[0-9a-fA-F]{2}:[0-9a-fA-F]{2}\.[0-7]\b"
        r"|\b[0-9a-f]{4}:[0-9a-f]{2}:[0-9a-f]{2}\b",
    ),
    ("bus", r"\b[0-9a-f]{4}:[0-9a-f]{2}\b|\[bus [0-9a-f]{2}(?:-[0-9a-f]{2})?\]"),
    ("ip", r"\b\d{1,3}(?:\.\d{1,3}){3}(?:/\d+)?\b"),
    ("id", r"\[[0-9a-f]{4}:[0-9a-f]{4}\]"),
    ("date", r"\b\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(?:[.,]\d+)?|\b\d\d/\d\d/\d{4}\b|\b\d\d:\d\d:\d\d\b"),
    ("hex", r"\b0x[0-9a-fA-F]+(?:-0x[0-9a-fA-F]+)?\b|\b(?=[0-9a-f]*\d)(?=[0-9a-f]*[a-f])[0-9a-f]{6,}\b"),
    (
        "device",
        r"\b(?:nvme\d+(?:c\d+)?(?:n\d+)?(?:p\d+)?|mlx\d_\d+|sd[a-z]{1,2}\d*|md\d+|eth\d+|en[opsx]\w*\d\w*|ib\d+"
        r"|usb\d+|ata\d+(?:\.\d+)?|hwmon\d+|input\d+|event\d+|tty[A-Z]*\d+|dm-\d+|loop\d+|mc\d+|nvidia\d+"
        r"|nvidia-nvswitch\d+|bond\d+|veth\w+|rtc\d+|hub\d+|host\d+|scsi\d+|ipmi\d+|i2c-\d+|PRT\d+|PNP\w+)\b",
    ),
    ("cpu", r"(?<=\bCPU)#?\d+|(?<=\bcpu)\d+|(?<=\bCPU )\d+|(?<=CPUs )\d+(?:-\d+)?"),
    ("speed", r"\b\d+(?:\.\d+)? ?(?:GT/s|[KMG]b/s|[KMG]bps|[KMG]B/s|[KMG]Hz|RPM)(?! PCIe\w)"),
    (
        "size",
        r"\b\d+(?:\.\d+)?(?:K|M|G|T)?/\d+(?:\.\d+)?[KMGT]\b"
        r"|\b\d+(?:\.\d+)? ?(?:[KMGT]i?B|kB|bytes|[KMGT]\b)",
    ),
    ("time", r"\b\d+(?:\.\d+)? ?(?:ns|us|ms|usecs?|msecs?|secs?|seconds|s)\b"),
    ("number", r"\d+(?:\.\d+)*"),
)  # fmt: skip
_ANY = re.compile("|".join(f"(?P<{name}>{pattern})" for name, pattern in _TYPES))
_SUBSYSTEM = re.compile(r"^(?:\[[^\]]*\] )?(?P<name>[A-Za-z][\w.-]*)")
# Modules of one driver, which load one after the other.
_FAMILIES = {
    "nvrm": "nvidia",
    "nvidia-modeset": "nvidia",
    "nvidia-nvlink": "nvidia",
    "nvidia-uvm": "nvidia",
    "nvidia-drm": "nvidia",
    "xhci_hcd": "usb",
    "ehci_hcd": "usb",
    "ehci-pci": "usb",
    "hub": "usb",
    "usbcore": "usb",
    "systemd-journald": "systemd",
    "systemd-modules-load": "systemd",
}
# A bus is one part: what hangs on it has names of its own only later.
_ONE_PART = frozenset({"usb"})
# Types of which one value for all boots is a property of the hardware, and another is worth a look.
STEADY = frozenset({"speed", "size", "number"})


@dataclass(frozen=True, slots=True)
class Masked:
    """One line with typed places. `values` are what stood there, in order, each with its type."""

    template: str
    subsystem: str
    values: tuple[tuple[str, str], ...]

    @property
    def device(self) -> str:
        """Return the first part that the line names by address or name, or "" where it names none."""
        named = ("port",) if self.subsystem in _ONE_PART else ("pci", "device", "mac", "guid")
        return next((value for kind, value in self.values if kind in named), "")


@lru_cache(maxsize=65536)
def mask(text: str) -> Masked:
    """Return a line's template and what was taken out of it."""
    values: list[tuple[str, str]] = []

    def place(found: re.Match[str]) -> str:
        kind = found.lastgroup or "number"
        values.append((kind, found[0]))
        return f"<{kind}>"

    template = " ".join(_ANY.sub(place, text).split())
    return Masked(template, _subsystem(template, values), tuple(values))


def _subsystem(template: str, values: list[tuple[str, str]]) -> str:
    """Return the name of what speaks: its first word, or what the device it begins with is one of."""
    if template.startswith("<device>"):
        name = re.sub(r"\d.*", "", values[0][1])
    else:
        found = _SUBSYSTEM.match(template)
        name = found["name"].lower() if found else ""
    return _FAMILIES.get(name, name)
