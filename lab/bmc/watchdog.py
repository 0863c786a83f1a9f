"""The watchdog timer (IPMI 2.0 §27)."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from enum import IntEnum

from lab.bmc.power import Action, Cause, PowerControl
from lab.bmc.sel import EventLog
from lab.bmc.sensor_model import Kind

NOT_INITIALISED = 0x80
SENSOR_WATCHDOG = 0x71
TICK_S = 0.1
_DONT_STOP, _DONT_LOG = 0x40, 0x80


class Timeout(IntEnum):
    """What an expired timer does; each is an offset of the watchdog sensor's event too."""

    NOTHING = 0
    RESET = 1
    POWER_DOWN = 2
    CYCLE = 3


_ACTIONS = {Timeout.RESET: Action.RESET, Timeout.POWER_DOWN: Action.OFF, Timeout.CYCLE: Action.CYCLE}


class Watchdog:
    """One countdown. `now` is a monotonic clock in seconds."""

    def __init__(self, power: PowerControl, sel: EventLog, now: Callable[[], float]) -> None:
        self._power = power
        self._sel = sel
        self._now = now
        self._timer: asyncio.TimerHandle | None = None
        self._deadline = 0.0
        self.settings: bytes | None = None  # the six bytes of Set Watchdog Timer
        self.expired = 0

    @property
    def running(self) -> bool:
        return self._timer is not None

    @property
    def left_s(self) -> float:
        return max(0.0, self._deadline - self._now()) if self.running else self._countdown_s

    @property
    def _countdown_s(self) -> float:
        return int.from_bytes((self.settings or bytes(6))[4:6], "little") * TICK_S

    def set(self, settings: bytes) -> None:
        """Take new settings; the timer stops unless they say to let it run."""
        keeps_running = self.running and settings[0] & _DONT_STOP
        self.settings = settings
        self.expired &= ~settings[3]
        self.stop()
        if keeps_running:
            self.start()

    def start(self) -> bool:
        """Start or restart the countdown; false where it was never set."""
        if self.settings is None:
            return False
        self.stop()
        self._deadline = self._now() + self._countdown_s
        self._timer = asyncio.get_running_loop().call_later(self._countdown_s, self._expire)
        return True

    def stop(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _expire(self) -> None:
        self._timer = None
        settings = self.settings or bytes(6)
        timeout = Timeout(settings[1] & 3)
        self.expired |= 1 << (settings[0] & 7)
        if not settings[0] & _DONT_LOG:
            self._sel.add(Kind.WATCHDOG, SENSOR_WATCHDOG, bytes((0xC0 | timeout, settings[0] & 7, 0xFF)))
        if timeout in _ACTIONS:
            self._power.request(_ACTIONS[timeout], Cause.WATCHDOG)
