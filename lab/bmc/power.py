"""Power of one machine as its BMC commands it: one action after the other."""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from enum import IntEnum

from lab.bmc.boot import BootOptions
from lab.bmc.faults import Fault, Faults
from lab.chassis import Chassis, Interruptible

_log = logging.getLogger(__name__)


class Action(IntEnum):
    """Chassis control actions, numbered as on the wire."""

    OFF = 0
    ON = 1
    CYCLE = 2
    RESET = 3
    DIAGNOSE = 4
    SOFT = 5


class Cause(IntEnum):
    """System restart causes (table 28-11)."""

    UNKNOWN = 0x0
    COMMAND = 0x1
    WATCHDOG = 0x4
    SOFT_RESET = 0xA


NEEDS_POWER = frozenset({Action.CYCLE, Action.RESET, Action.DIAGNOSE})


class PowerControl:
    """Queues actions, so that the BMC answers at once and the machine follows."""

    def __init__(self, chassis: Chassis, boot: BootOptions, faults: Faults, cycle_s: float) -> None:
        self._chassis = chassis
        self._boot = boot
        self._faults = faults
        self._cycle_s = cycle_s
        self._pending: deque[tuple[Action, Cause]] = deque()
        self._task: asyncio.Task[None] | None = None
        self.cause = Cause.UNKNOWN
        self.on_by_command = False
        self.failed = False
        self.policy = 0  # what to do when AC returns: 0 stay off
        self.boots = 0  # by whomever
        chassis.take_boot_override(self._boot_from_inside)

    @property
    def on(self) -> bool:
        return self._chassis.powered

    def request(self, action: Action, cause: Cause = Cause.COMMAND) -> None:
        """Take an action; it starts when those before it are done."""
        if self._faults.active(Fault.POWER_IGNORED):
            return
        self._queue(action, cause)

    def cut_mains(self, *, then_on: bool) -> None:
        """Take the mains away and give them back: what no stuck power sequence withstands."""
        self._queue(Action.OFF, Cause.UNKNOWN)
        if then_on:
            self._queue(Action.ON, Cause.COMMAND)

    async def settled(self) -> None:
        """Return when every action taken so far is done."""
        while self._task is not None and not self._task.done():
            await asyncio.shield(self._task)

    async def close(self) -> None:
        self._pending.clear()
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)

    def _queue(self, action: Action, cause: Cause) -> None:
        self._pending.append((action, cause))
        if self._task is None or self._task.done():
            self._task = asyncio.get_running_loop().create_task(self._work())

    async def _work(self) -> None:
        while self._pending:
            action, cause = self._pending.popleft()
            try:
                await self._perform(action, cause)
                self.failed = False
            except (RuntimeError, OSError) as exc:
                self.failed = True
                _log.warning("%s: power action %s failed: %s", self._chassis.name, action.name, exc)

    async def _perform(self, action: Action, cause: Cause) -> None:
        chassis = self._chassis
        if action is Action.ON:
            await self._power_on(cause)
        elif not chassis.powered:
            return
        elif action is Action.OFF:
            await chassis.power_off()
        elif action is Action.CYCLE:
            await chassis.power_off()
            await asyncio.sleep(self._cycle_s)
            await self._power_on(cause)
        elif action is Action.RESET:
            self.cause = cause
            await chassis.reset(boot_device=self._boot_device())
        elif action is Action.SOFT:
            await chassis.soft_off()
        elif isinstance(chassis, Interruptible):
            chassis.send_nmi()

    async def _power_on(self, cause: Cause) -> None:
        if self._chassis.powered:
            return
        self.cause = cause
        self.on_by_command = True
        await self._chassis.power_on(boot_device=self._boot_device())

    def _boot_from_inside(self) -> str | None:
        self.cause = Cause.SOFT_RESET
        return self._boot_device()

    def _boot_device(self) -> str | None:
        self.boots += 1
        return self._boot.take()
