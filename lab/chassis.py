"""The seam between a lab BMC and the machine it sits in.

A BMC emulator owns no machine: it is handed a Chassis. Namespace nodes, QEMU nodes and light
(imaginary) nodes each implement it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol, runtime_checkable

SerialSink = Callable[[bytes], None]
BootOverrideSource = Callable[[], str | None]


class Chassis(Protocol):
    """One machine as its BMC sees it. All methods run on the lab's event loop."""

    name: str
    serial: str  # begins LAB-
    mac: str

    @property
    def powered(self) -> bool: ...

    async def power_on(self, *, boot_device: str | None) -> None:
        """Start the machine. `boot_device` is the override in force: pxe, disk, bios, cd or None."""
        ...

    async def power_off(self) -> None:
        """Cut the power at once."""
        ...

    async def soft_off(self) -> None:
        """Ask the operating system to shut down; may do nothing when none runs."""
        ...

    async def reset(self, *, boot_device: str | None) -> None:
        """Hard reset without losing power. Raises RuntimeError when off."""
        ...

    def attach_serial(self, sink: SerialSink) -> None:
        """Set who receives the bytes that the machine writes to its first serial port."""
        ...

    def write_serial(self, data: bytes) -> None:
        """Type bytes on the machine's first serial port."""
        ...

    def take_boot_override(self, source: BootOverrideSource) -> None:
        """Keep `source`, which the BMC registers once, for a machine that reboots by itself.

        The machine calls it at every boot that the BMC did not start; the call returns the override
        in force (as in `power_on`) and uses it up unless it is persistent.
        """
        ...


@runtime_checkable
class Screen(Protocol):
    """What a Chassis with a display adapter has; without it a BMC shows the serial text."""

    async def screenshot(self) -> bytes:
        """Return what the display shows, as PNG."""
        ...


@runtime_checkable
class Interruptible(Protocol):
    """What a Chassis may also have; a BMC that finds it passes a serial break and an NMI on."""

    def send_break(self) -> None:
        """Hold the first serial port's line in the break condition for a moment."""
        ...

    def send_nmi(self) -> None:
        """Raise the diagnostic interrupt."""
        ...
