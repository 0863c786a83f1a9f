"""Script sets: one run of commissioning, installation or testing scripts on a machine."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import IntEnum


class ScriptType(IntEnum):
    """What a script is for."""

    COMMISSIONING = 0
    INSTALLATION = 1
    TESTING = 2
    RELEASE = 3

    @property
    def label(self) -> str:
        """The word that MAAS shows."""
        return self.name.capitalize()


class ResultStatus(IntEnum):
    """How far a script is."""

    PENDING = 0
    RUNNING = 1
    PASSED = 2
    FAILED = 3
    TIMEDOUT = 4
    ABORTED = 5
    SKIPPED = 9

    @property
    def label(self) -> str:
        """The word that MAAS shows."""
        return "Timed out" if self is ResultStatus.TIMEDOUT else self.name.capitalize()


OPEN = frozenset({ResultStatus.PENDING, ResultStatus.RUNNING})
BAD = frozenset({ResultStatus.FAILED, ResultStatus.TIMEDOUT})


@dataclass(slots=True)
class Result:
    """One script's result on one machine; the outputs are base64."""

    id: int
    name: str
    created: float
    updated: float
    status: ResultStatus = ResultStatus.PENDING
    exit_status: int | None = None
    started: float | None = None
    ended: float | None = None
    script_id: int | None = None
    hardware: int = 0
    device: str = ""
    parameters: dict[str, object] = field(default_factory=dict)
    output: str = ""
    stdout: str = ""
    stderr: str = ""
    result: str = ""


@dataclass(slots=True)
class ScriptSet:
    """All results of one run."""

    id: int
    system_id: str
    type: ScriptType
    results: list[Result]
    last_ping: float | None = None

    @property
    def status(self) -> ResultStatus:
        """The set's status: the worst that any of its results has."""
        states = {result.status for result in self.results}
        for worst in (
            ResultStatus.ABORTED,
            ResultStatus.FAILED,
            ResultStatus.TIMEDOUT,
            ResultStatus.RUNNING,
        ):
            if worst in states:
                return worst
        if ResultStatus.PENDING in states:
            done = states - {ResultStatus.PENDING, ResultStatus.SKIPPED}
            return ResultStatus.RUNNING if done else ResultStatus.PENDING
        return ResultStatus.PASSED if self.results else ResultStatus.PENDING

    @property
    def started(self) -> float | None:
        """When the first script began."""
        return min((one.started for one in self.results if one.started is not None), default=None)

    @property
    def ended(self) -> float | None:
        """When the last script ended; None while any is open."""
        if any(one.status in OPEN or one.ended is None for one in self.results):
            return None
        return max((one.ended for one in self.results if one.ended is not None), default=None)

    def status_of(self, hardware: int) -> ResultStatus | None:
        """The status of the scripts for one kind of hardware; None without any."""
        part = ScriptSet(0, self.system_id, self.type, [r for r in self.results if r.hardware == hardware])
        return part.status if part.results else None
