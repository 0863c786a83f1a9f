"""Faults of one BMC, settable by name while it runs."""

from __future__ import annotations

import random
from collections.abc import Callable
from enum import StrEnum

from lab.errors import BadRequest

FaultValue = bool | float


class Fault(StrEnum):
    """What can be wrong with a BMC; where a number is said, true is the one in `_WHEN_TRUE`."""

    SILENT = "silent"  # answers nothing
    SLOW = "slow"  # seconds before each answer
    WRONG_PASSWORD = "wrong-password"  # no login fits
    LOSS = "loss"  # percent of datagrams lost, each way
    DUPLICATES = "duplicates"  # percent of datagrams doubled, each way
    GARBAGE = "garbage"  # percent of answers with wrong bytes
    NO_SESSIONS = "no-sessions"  # the session table is full
    RESET_IN_SESSION = "reset-in-session"  # cold-resets at the n-th command of a session
    POWER_IGNORED = "power-ignored"  # takes power commands and does nothing
    CLOCK_1970 = "clock-1970"  # the clock was never set
    FRU_BAD_CHECKSUM = "fru-bad-checksum"
    BOOT_FLAG_IGNORED = "boot-flag-ignored"  # keeps the boot override and boots as always
    SOL_DEAD = "sol-dead"  # the console opens and nothing comes out of it
    NOT_READY = "not-ready"  # Redfish answers 503 and "retry after" so many seconds
    HALF_BODY = "half-body"  # percent of Redfish answers that stop in the middle
    HTML_ERROR = "html-error"  # percent of Redfish answers that are a web page saying 500
    EXPIRED_CERTIFICATE = "expired-certificate"


_WHEN_TRUE = {
    Fault.SLOW: 2.0,
    Fault.LOSS: 5.0,
    Fault.DUPLICATES: 100.0,
    Fault.GARBAGE: 100.0,
    Fault.RESET_IN_SESSION: 3.0,
    Fault.NOT_READY: 30.0,
    Fault.HALF_BODY: 100.0,
    Fault.HTML_ERROR: 100.0,
}


class Faults:
    """The faults in force on one BMC; chance is seeded by its name, so that runs repeat."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._values: dict[Fault, float] = {}
        self._random = random.Random(name)  # chance, not a secret
        self._watchers: list[Callable[[Fault, float], None]] = []

    def watch(self, watcher: Callable[[Fault, float], None]) -> None:
        """Have `watcher` called with each fault that is set (its value) or cleared (0)."""
        self._watchers.append(watcher)

    def set(self, name: str, value: FaultValue = True) -> None:
        """Set a fault; false or 0 clears it. Raises BadRequest for an unknown name or value."""
        try:
            fault = Fault(name)
        except ValueError as exc:
            known = ", ".join(Fault)
            raise BadRequest(
                f"BMC of {self._name}", f"no fault {name!r} is known", follow=f"choose from: {known}"
            ) from exc
        if value < 0:
            raise BadRequest(
                f"BMC of {self._name}",
                f"fault {name} cannot be {value}",
                follow="give a number from 0 up, or true or false",
            )
        amount = _WHEN_TRUE.get(fault, 1.0) if value is True else float(value)
        if amount:
            self._values[fault] = amount
        else:
            self._values.pop(fault, None)
        for watcher in self._watchers:
            watcher(fault, amount)

    def clear(self) -> None:
        for fault in tuple(self._values):
            self.set(fault, False)

    def active(self, fault: Fault) -> bool:
        return fault in self._values

    def value(self, fault: Fault) -> float:
        return self._values.get(fault, 0.0)

    def all(self) -> dict[str, float]:
        return {str(fault): value for fault, value in self._values.items()}

    def strikes(self, fault: Fault) -> bool:
        """Draw whether a fault given in percent hits this datagram."""
        percent = self._values.get(fault)
        return percent is not None and self._random.uniform(0, 100) < percent

    def spoil(self, data: bytes) -> bytes:
        """Return `data` as a faulty BMC would send it: bits turned, cut short, or noise."""
        kind = self._random.randrange(3)
        if kind == 0:
            return self._random.randbytes(self._random.randrange(1, 80))
        if kind == 1:
            return data[: self._random.randrange(1, len(data))]
        spoiled = bytearray(data)
        for _ in range(4):
            spoiled[self._random.randrange(4, len(spoiled))] ^= 1 << self._random.randrange(8)
        return bytes(spoiled)
