"""How MAAS powers a machine: through its BMC, over IPMI, with the real programs."""

from __future__ import annotations

import asyncio
import os
import tempfile
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Protocol

from lab.maas.errors import PowerError

_COMMAND_SECONDS = 20.0
_BOOT_SETTINGS = """\
Section Chassis_Boot_Flags
        Boot_Flags_Persistent                         No
        BIOS_Boot_Type                                PC-COMPATIBLE
        Boot_Device                                   PXE
EndSection
"""
# FreeIPMI's names of cipher suites are the same numbers; an empty setting means its own default.
_PRIVILEGES = frozenset({"USER", "OPERATOR", "ADMIN"})


class PowerState(StrEnum):
    """What a BMC says of its machine, or why it says nothing."""

    ON = "on"
    OFF = "off"
    UNKNOWN = "unknown"
    ERROR = "error"


@dataclass(frozen=True, slots=True)
class PowerTarget:
    """A machine's BMC as its power parameters describe it."""

    system_id: str
    hostname: str
    mac: str | None
    power_type: str
    address: str = ""
    user: str = ""
    password: str = field(default="", repr=False)
    cipher_suite: str = ""
    privilege: str = "OPERATOR"
    k_g: str = field(default="", repr=False)


class PowerDriver(Protocol):
    """Something that can switch machines. Every call may raise PowerError."""

    async def on(self, target: PowerTarget, *, pxe: bool) -> None:
        """Switch the machine on, or cycle it when it is on; from the network when `pxe`."""
        ...

    async def off(self, target: PowerTarget, *, soft: bool = False) -> None:
        """Switch the machine off; `soft` asks its operating system."""
        ...

    async def query(self, target: PowerTarget) -> PowerState:
        """Ask whether the machine is on."""
        ...


@dataclass(slots=True)
class StubPower:
    """A driver without hardware: remembers what it was told and says so."""

    states: dict[str, PowerState] = field(default_factory=dict)
    calls: list[tuple[str, str]] = field(default_factory=list)
    failing: set[str] = field(default_factory=set)

    async def on(self, target: PowerTarget, *, pxe: bool) -> None:
        """Note the machine as on."""
        self._note(target, "on-pxe" if pxe else "on")
        self.states[target.system_id] = PowerState.ON

    async def off(self, target: PowerTarget, *, soft: bool = False) -> None:
        """Note the machine as off."""
        self._note(target, "soft-off" if soft else "off")
        self.states[target.system_id] = PowerState.OFF

    async def query(self, target: PowerTarget) -> PowerState:
        """Return the noted state, off until something was noted."""
        self._note(target, "query")
        return self.states.get(target.system_id, PowerState.OFF)

    def _note(self, target: PowerTarget, action: str) -> None:
        self.calls.append((action, target.hostname))
        if target.hostname in self.failing:
            raise PowerError(target.hostname, action, "the BMC does not answer")


class IpmiPower:
    """Drives BMCs with FreeIPMI, as MAAS's rack controller does.

    The password reaches the programs in a configuration file that only we can read, never in argv.
    """

    def __init__(self, *, seconds: float = _COMMAND_SECONDS) -> None:
        self._seconds = seconds

    async def on(self, target: PowerTarget, *, pxe: bool) -> None:
        """Set network boot when asked, then cycle the machine or switch it on."""
        if pxe:
            await self._boot_from_network(target)
        await self._ipmipower(target, "on", "--cycle", "--on-if-off")

    async def off(self, target: PowerTarget, *, soft: bool = False) -> None:
        """Cut the power, or press the button softly."""
        await self._ipmipower(target, "off", "--soft" if soft else "--off")

    async def query(self, target: PowerTarget) -> PowerState:
        """Ask the BMC for the chassis' power state."""
        said = await self._ipmipower(target, "query", "--stat")
        if said.endswith(": on"):
            return PowerState.ON
        return PowerState.OFF if said.endswith(": off") else PowerState.UNKNOWN

    async def _boot_from_network(self, target: PowerTarget) -> None:
        with tempfile.TemporaryDirectory(prefix="lab-maas-") as place:
            wanted = Path(place, "boot.conf")
            wanted.write_text(_BOOT_SETTINGS, encoding="ascii")
            program = ["ipmi-chassis-config", "--commit", f"--filename={wanted}"]
            await self._run(target, "boot device", [*program, *_settings(target, Path(place))])

    async def _ipmipower(self, target: PowerTarget, action: str, *what: str) -> str:
        with tempfile.TemporaryDirectory(prefix="lab-maas-") as place:
            program = ["ipmipower", *_settings(target, Path(place)), *what]
            said = await self._run(target, action, program)
        if not said.endswith((": ok", ": on", ": off")):
            raise PowerError(target.hostname, action, said or "no answer")
        return said

    async def _run(self, target: PowerTarget, action: str, program: list[str]) -> str:
        try:
            child = await asyncio.create_subprocess_exec(
                *program,
                stdin=asyncio.subprocess.DEVNULL,
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.STDOUT,
            )
        except OSError as exc:
            raise PowerError(target.hostname, action, f"{program[0]} does not start") from exc
        try:
            async with asyncio.timeout(self._seconds):
                told, _ = await child.communicate()
        except TimeoutError as exc:
            raise PowerError(target.hostname, action, f"no answer in {self._seconds:g} s") from exc
        finally:
            if child.returncode is None:
                child.kill()
                await child.wait()
        said = told.decode("utf-8", "replace").strip()
        if child.returncode:
            raise PowerError(target.hostname, action, said or f"{program[0]} exit {child.returncode}")
        return said


def _settings(target: PowerTarget, place: Path) -> list[str]:
    """Write FreeIPMI's configuration file and return the arguments that use it."""
    lines = [f"username {target.user}", f"password {target.password}"]
    if target.k_g:
        lines.append(f"k_g {target.k_g}")
    config = place / "freeipmi.conf"
    descriptor = os.open(config, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "w", encoding="utf-8") as file:
        file.write("\n".join(lines) + "\n")
    found = [
        f"--config-file={config}",
        f"--hostname={target.address}",
        "--driver-type=LAN_2_0",
        "--session-timeout=8000",
    ]
    if target.cipher_suite:
        found.append(f"--cipher-suite-id={target.cipher_suite}")
    if target.privilege in _PRIVILEGES:
        found.append(f"--privilege-level={target.privilege}")
    return found
