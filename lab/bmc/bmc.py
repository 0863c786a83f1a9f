"""One BMC: its state, whatever protocol it is spoken to in."""

from __future__ import annotations

import asyncio
import time
import uuid
from collections.abc import Callable
from enum import Enum

from lab.bmc.boot import BootOptions
from lab.bmc.clock import Clock
from lab.bmc.command_log import CommandLog
from lab.bmc.faults import Fault, Faults, FaultValue
from lab.bmc.fru import FruStore
from lab.bmc.ipmi.handshake import Handshake, check_suites
from lab.bmc.ipmi.session import SessionTable
from lab.bmc.ipmi.sol import SolPort
from lab.bmc.lan import LanConfig
from lab.bmc.power import PowerControl
from lab.bmc.sdr import SdrRepository
from lab.bmc.sel import EventLog
from lab.bmc.sensor_model import Kind
from lab.bmc.sensors import Sensors
from lab.bmc.spec import BmcSpec
from lab.bmc.users import UserTable
from lab.bmc.watchdog import Watchdog

_GUID_SPACE = uuid.UUID("6f9d2a6e-0f0e-4c36-9c0b-5a1d70b3f2c4")
ANSWER_FIRST_S = 0.1
SENSOR_SEL = 0x72
LOG_CLEARED = b"\x02\xff\xff"


class Identify(Enum):
    """What the identify light does."""

    OFF = 0
    TIMED = 1
    ON = 2


class Bmc:
    """The parts of one BMC. `now` is a monotonic clock and `wall` the true time, in seconds."""

    def __init__(
        self,
        spec: BmcSpec,
        *,
        now: Callable[[], float] = time.monotonic,
        wall: Callable[[], float] = time.time,
    ) -> None:
        check_suites(spec.suites)
        self.spec = spec
        self.name = spec.chassis.name
        self.port = spec.port
        self.guid = uuid.uuid5(_GUID_SPACE, spec.chassis.serial)
        self.guid_bytes = self.guid.bytes[::-1]  # IPMI sends the node part first
        self.kg = (spec.kg or "").encode()[:20]
        self.faults = Faults(self.name)
        self.faults.watch(self._fault_changed)
        self.log = CommandLog(spec.log_length)
        self.clock = Clock(wall)
        self.users = UserTable(spec.users)
        self.sessions = SessionTable(spec.session_limit, spec.session_timeout_s, now)
        self.sel = EventLog(self.clock, spec.sel_capacity, spec.sel_erase_s, now)
        self.boot = BootOptions(self.faults, spec.boot_flag_timeout_s, now)
        self.power = PowerControl(spec.chassis, self.boot, self.faults, spec.power_cycle_s)
        self.watchdog = Watchdog(self.power, self.sel, now)
        self.sdr = SdrRepository()
        self.sensors = Sensors(self.name, self.sel, lambda: self.power.on, wall)
        self.fru = FruStore(spec, self.faults)
        self.mac = b"\x02" + self.guid.bytes[:5]
        self.lan = LanConfig(spec.host, spec.port, self.mac, spec.suites)
        self.sol = SolPort(spec.chassis, self.faults, spec.ring_bytes)
        self.sessions.watch_ends(self.sol.session_ended)
        self.handshake = Handshake(
            self.sessions, self.users, spec.suites, lambda: self.kg, self.guid_bytes, self.faults
        )
        self.resets = 0
        self._reset_watchers: list[Callable[[], None]] = []
        self.now = now
        self._started = now()
        self._down_until = 0.0
        self._identify_until = 0.0
        self.sel.add(Kind.EVENT_LOG, SENSOR_SEL, LOG_CLEARED)

    @property
    def down(self) -> bool:
        """Whether the BMC answers nothing: told to be silent, or restarting after a reset."""
        if self._down_until and self.now() >= self._down_until:
            self._down_until = 0.0
            self.sol.wake()
        return bool(self._down_until) or self.faults.active(Fault.SILENT)

    @property
    def identify(self) -> Identify:
        if self._identify_until == float("inf"):
            return Identify.ON
        return Identify.TIMED if self.now() < self._identify_until else Identify.OFF

    @property
    def uptime_s(self) -> float:
        return self.now() - self._started

    def set_fault(self, name: str, value: FaultValue = True) -> None:
        """Set a fault by name (`Fault`). Raises BadRequest for an unknown one."""
        self.faults.set(name, value)

    def clear_faults(self) -> None:
        self.faults.clear()

    def light_up(self, seconds: float) -> None:
        """Turn the identify light on for a time; 0 is off and infinity until told otherwise."""
        self._identify_until = self.now() + seconds if seconds else 0.0

    def watch_resets(self, watcher: Callable[[], None]) -> None:
        """Have `watcher` called whenever the BMC restarts."""
        self._reset_watchers.append(watcher)

    def restart_soon(self) -> None:
        """Restart once the answer to the request for it is out."""
        asyncio.get_running_loop().call_later(ANSWER_FIRST_S, self.cold_reset)

    def cold_reset(self) -> None:
        """Restart: sessions end without a word and nothing is answered for `reset_s`."""
        self.resets += 1
        self._down_until = self.now() + self.spec.reset_s
        self.watchdog.stop()
        self.sol.reset(keep=self.spec.ring_survives_reset)
        self.sessions.clear()
        for watcher in self._reset_watchers:
            watcher()
        if self.faults.active(Fault.CLOCK_1970):
            self.clock.set(0)

    def clear_sel(self) -> None:
        self.sel.clear()
        self.sel.add(Kind.EVENT_LOG, SENSOR_SEL, LOG_CLEARED)

    async def close(self) -> None:
        self.watchdog.stop()
        await self.power.close()
        self.sol.reset(keep=True)

    def _fault_changed(self, fault: Fault, value: float) -> None:
        if fault is Fault.CLOCK_1970:
            if value:
                self.clock.set(0)
            else:
                self.clock.correct()
