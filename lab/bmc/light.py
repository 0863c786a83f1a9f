"""A light, imaginary machine: power, and canned text on its serial port."""

from __future__ import annotations

from dataclasses import dataclass, field

from lab.chassis import BootOverrideSource, SerialSink

BOOT_TEXT = (
    "\x1b[2J\x1b[HLAB firmware 1.0\r\nMemory: 2048 GiB, 32 of 32 modules trained\r\n"
    "Boot: {device}\r\nStarting kernel\r\n[    0.000000] Linux version 6.1.0-lab\r\n"
    "\r\n{name} ttyS0\r\n{name} login: "
)


@dataclass(slots=True)
class LightChassis:
    """A machine that is only on or off. `boots` lists the override of each boot so far."""

    name: str
    serial: str
    mac: str = "02:4c:41:42:00:01"
    powered: bool = False
    boot_text: str = BOOT_TEXT
    echoes: bool = True
    ignores_soft_off: bool = False
    start_fails: str | None = None  # why the machine will not start
    boots: list[str | None] = field(default_factory=list)
    interrupts: list[str] = field(default_factory=list)
    typed: bytearray = field(default_factory=bytearray)
    _sink: SerialSink | None = None
    _override: BootOverrideSource | None = None

    async def power_on(self, *, boot_device: str | None) -> None:
        if self.start_fails:
            raise RuntimeError(self.start_fails)
        if not self.powered:
            self.powered = True
            self._boot(boot_device)

    async def power_off(self) -> None:
        self.powered = False

    async def soft_off(self) -> None:
        if not self.ignores_soft_off:
            self.powered = False

    async def reset(self, *, boot_device: str | None) -> None:
        if not self.powered:
            raise RuntimeError(f"{self.name} is off and cannot be reset")
        self._boot(boot_device)

    def reboot_from_inside(self) -> None:
        """Reboot as an operating system does, without the BMC."""
        self._boot(self._override() if self._override else None)

    def attach_serial(self, sink: SerialSink) -> None:
        self._sink = sink

    def write_serial(self, data: bytes) -> None:
        if self.powered:
            self.typed += data
            if self.echoes:
                self.print(data)

    def take_boot_override(self, source: BootOverrideSource) -> None:
        self._override = source

    def send_break(self) -> None:
        self.interrupts.append("break")

    def send_nmi(self) -> None:
        self.interrupts.append("nmi")

    def print(self, data: bytes) -> None:
        """Write bytes out of the serial port."""
        if self._sink is not None:
            self._sink(data)

    def _boot(self, device: str | None) -> None:
        self.boots.append(device)
        self.print(self.boot_text.format(device=device or "default order", name=self.name).encode())
