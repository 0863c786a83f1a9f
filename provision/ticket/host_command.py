"""One command on the node, its output kept as a file."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

from provision.ssh import SshResult
from provision.ticket.artifact import File, Text
from provision.ticket.collecting import Case, Collector, Lane, Outcome, Result

GRACE_S = 10.0  # for SSH to say what the command said, and for a tool that must be killed

_KILL_AFTER = "5"
_TIMED_OUT = (124, 137)
_NOT_INSTALLED = 127
_MOST = 128 << 20


@dataclass(frozen=True, slots=True)
class Command:
    """What to run as root, where its output goes, and how long it may take (seconds)."""

    file: str
    argv: tuple[str, ...]
    timeout_s: float

    @property
    def deadline_s(self) -> float:
        """How long the collector may take in all; it may have to wait for the first word from SSH."""
        return self.timeout_s + 4 * GRACE_S


def host_collector(id: str, command: Command) -> Collector:
    """Return the collector that keeps what `command` says."""
    return Collector(id, Lane.HOST, command.deadline_s, partial(run_command, command=command))


async def run_command(case: Case, command: Command) -> Result:
    """Run a command on the node. Raises HostDead, SshFailed."""
    answer = await ask_host(case, command)
    problem = complaint(command, answer)
    if answer.stdout:
        outcome = Outcome.PARTIAL if problem else Outcome.COMPLETE
        return Result((File(command.file, Text(answer.stdout)),), outcome, problem)
    if not problem:
        return Result((File(command.file, Text(b"")),), Outcome.PARTIAL, f"{command.argv[0]} said nothing")
    missing = answer.status == _NOT_INSTALLED or b"command not found" in answer.stderr
    return Result((), Outcome.SKIPPED if missing else Outcome.ERROR, problem)


async def ask_host(case: Case, command: Command) -> SshResult:
    """Run a command under a time limit that the node itself keeps, so that what it said by then is kept."""
    limited = ["timeout", "-k", _KILL_AFTER, f"{command.timeout_s:.0f}", *command.argv]
    return await case.host.run(limited, timeout_s=command.timeout_s + GRACE_S, limit=_MOST)


def complaint(command: Command, answer: SshResult) -> str:
    """Return what is wrong with an answer, or nothing."""
    tool = command.argv[0]
    if answer.status == 0:
        return ""
    if answer.status in _TIMED_OUT:
        return f"{tool} did not end within {command.timeout_s:.0f} s"
    said = answer.stderr.decode("utf-8", "replace").strip().splitlines()
    if answer.status == _NOT_INSTALLED or "command not found" in (said[-1] if said else ""):
        return f"{tool} is not installed"
    return f"{tool} ended with {answer.status}" + (f": {said[-1].strip()}" if said else "")
