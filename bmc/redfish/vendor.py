"""What one maker does differently. Everything that is not said here is done by the standard."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from bmc.capability import Picture
from bmc.redfish.client import Client
from bmc.redfish.resource import Resource


@dataclass(frozen=True, slots=True)
class Layout:
    """Where the node is found in the BMC's tree, as read at login."""

    system: Resource
    chassis: Resource
    manager: Resource


def standard_serial(layout: Layout) -> str | None:
    """Return the chassis' serial number, else the system's."""
    return layout.chassis.text("SerialNumber") or layout.system.text("SerialNumber")


@dataclass(frozen=True, slots=True)
class Vendor:
    """One maker. `words` are looked for in the service root; `logs` are ids in order of worth."""

    name: str
    words: tuple[str, ...]
    serial: Callable[[Layout], str | None] = standard_serial
    logs: tuple[str, ...] = ("SEL", "Sel", "EventLog", "Log1", "IML")
    screenshot: Callable[[Client, Layout], Awaitable[Picture]] | None = None
    ac_cycle: Callable[[Client, Layout], Awaitable[None]] | None = None
    support_dump: Callable[[Client, Layout, float], Awaitable[tuple[str, bytes]]] | None = None
    ready: Callable[[Client, Layout], Awaitable[bool]] | None = None
    jobs: Callable[[Layout], str] | None = None  # where its own queue is; else the task service
    clear_jobs: Callable[[Client, Layout], Awaitable[None]] | None = None

    def made(self, root: Resource) -> bool:
        """Tell whether the BMC behind this service root is of this make."""
        oem = root.at("Oem")
        said = [
            root.text("Vendor"),
            root.text("Product"),
            root.text("Name"),
            *(oem if isinstance(oem, dict) else ()),
        ]
        text = " ".join(word for word in said if word).lower()
        return any(word in text for word in self.words)
