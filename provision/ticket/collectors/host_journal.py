"""The journal of this boot; of a very long one, its end."""

from __future__ import annotations

from provision.ticket.collecting import Case, Collector, Lane, Outcome, Result
from provision.ticket.host_command import Command, run_command

_LINES = 100_000
_COMMAND = Command(
    "host/journal.txt",
    ("journalctl", "--boot", "--no-pager", "--output=short-iso-precise", "--utc", f"--lines={_LINES}"),
    timeout_s=120,
)


async def _collect(case: Case) -> Result:
    result = await run_command(case, _COMMAND)
    lines = sum(1 for file in result.files for text in file.content.texts() for _ in text.splitlines())
    if result.outcome is Outcome.COMPLETE and lines >= _LINES:
        return Result(result.files, Outcome.PARTIAL, f"the last {_LINES} lines of this boot")
    return result


HOST_JOURNAL = Collector("host.journal", Lane.HOST, _COMMAND.deadline_s, _collect)
