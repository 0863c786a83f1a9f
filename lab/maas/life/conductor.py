"""The one thing that all undertakings share: memory, clock, power, faults and running tasks."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Coroutine
from dataclasses import dataclass, field

from lab.maas.clock import Clock
from lab.maas.config import MaasConfig
from lab.maas.faults import Fault, Faults
from lab.maas.model import events
from lab.maas.model.events import Kind
from lab.maas.model.machine import Machine
from lab.maas.model.region import Region
from lab.maas.model.status import FAILED, Status
from lab.maas.power import PowerDriver

_log = logging.getLogger(__name__)


@dataclass(slots=True)
class Conductor:
    """Holds what changes machines, and starts what takes time."""

    config: MaasConfig
    region: Region
    clock: Clock
    power: PowerDriver
    faults: Faults
    slots: asyncio.Semaphore
    tasks: set[asyncio.Task[None]] = field(default_factory=set)
    locks: dict[str, asyncio.Lock] = field(default_factory=dict)

    @property
    def simulated(self) -> bool:
        """Say whether machines are imaginary and do their part by themselves."""
        return self.config.simulate

    def now(self) -> float:
        """Return the present."""
        return self.clock.time()

    def power_lock(self, machine: Machine) -> asyncio.Lock:
        """Return the lock that power commands to a machine take."""
        return self.locks.setdefault(machine.system_id, asyncio.Lock())

    def start(self, work: Coroutine[object, object, None]) -> None:
        """Run something beside the request that asked for it."""
        task = asyncio.get_running_loop().create_task(work)
        self.tasks.add(task)
        task.add_done_callback(self._ended)

    def _ended(self, task: asyncio.Task[None]) -> None:
        self.tasks.discard(task)
        if not task.cancelled() and (broken := task.exception()) is not None:
            _log.error("an undertaking of the lab MAAS broke off", exc_info=broken)

    async def close(self) -> None:
        """Stop everything that runs."""
        running = list(self.tasks)
        for task in running:
            task.cancel()
        await asyncio.gather(*running, return_exceptions=True)

    def note(self, machine: Machine, kind: Kind, description: str = "", *, action: str = "") -> None:
        """Write an event that MAAS itself caused."""
        events.record(self.region, self.now(), machine, kind, description, action=action)

    def asked(self, machine: Machine, kind: Kind, user: str, comment: str = "") -> None:
        """Write that a user asked for something."""
        events.record_request(self.region, self.now(), machine, kind, (user, comment))

    def move(self, machine: Machine, target: Status) -> None:
        """Set a machine's status, and write the change down as MAAS does."""
        if machine.status is target:
            return
        text = f"From '{machine.status.label}' to '{target.label}'"
        machine.status = target
        self.note(machine, Kind.STATUS_CHANGED, text)

    def new_turn(self, machine: Machine) -> int:
        """Begin an undertaking: everything that still runs for the last one becomes stale."""
        machine.turn += 1
        machine.boot.token = ""
        machine.boot.testing_reported = False
        return machine.turn

    def touch(self, machine: Machine) -> None:
        """Give the machine the whole node timeout again, because it was heard of."""
        machine.deadline = self.now() + self.config.node_timeout

    def watch(self, machine: Machine) -> None:
        """Fail the machine when nothing is heard of it for the node timeout in its present turn."""
        self.touch(machine)
        self.start(self._expire(machine, machine.turn))

    async def _expire(self, machine: Machine, turn: int) -> None:
        while machine.turn == turn:
            left = machine.deadline - self.now()
            if left > 0:
                await self.clock.sleep(left)
            elif self.faults.of(machine.system_id, Fault.STUCK_DEPLOYING):
                return
            else:
                # MAAS counts in minutes; a lab that counts in seconds says a fraction of one.
                minutes = f"{self.config.node_timeout / 60:g}"
                what = f"Node operation '{machine.status.label}'"
                self.mark_failed(machine, f"{what} timed out after {minutes} minutes.")
                return

    def mark_failed(self, machine: Machine, reason: str) -> None:
        """Move a machine to the failed form of its status, with the reason that MAAS writes."""
        target = FAILED.get(machine.status)
        if target is None:
            return
        self.new_turn(machine)
        self.note(machine, Kind.MARK_FAILED, reason, action="mark_failed")
        machine.error_description = reason
        self.move(machine, target)
