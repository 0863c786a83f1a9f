"""NVIDIA's own bug report, which its RMA process asks for."""

from __future__ import annotations

from provision.ticket.artifact import File, Packed
from provision.ticket.collecting import Case, Collector, Lane, Outcome, Result
from provision.ticket.host_command import Command, ask_host, complaint

_FILE = "host/nvidia-bug-report.log.gz"
# Made in a folder of its own, and gone from the node afterwards. Safe mode leaves out what hangs a sick GPU.
_SCRIPT = """\
command -v nvidia-bug-report.sh >/dev/null || exit 127
folder=$(mktemp -d) || exit 1
trap 'rm -rf "$folder"' EXIT
cd "$folder" && nvidia-bug-report.sh --safe-mode >/dev/null 2>&1
cat nvidia-bug-report.log.gz
"""
_COMMAND = Command(_FILE, ("sh", "-c", _SCRIPT), timeout_s=300)


async def _collect(case: Case) -> Result:
    answer = await ask_host(case, _COMMAND)
    if answer.status == 127:
        return Result((), Outcome.SKIPPED, "nvidia-bug-report.sh is not installed")
    problem = complaint(_COMMAND, answer).replace("sh ", "nvidia-bug-report.sh ", 1)
    if not answer.stdout:
        return Result((), Outcome.ERROR, problem or "nvidia-bug-report.sh left nothing")
    report = Packed(answer.stdout)
    try:
        all(report.texts())
    except ValueError as exc:
        return Result((), Outcome.ERROR, f"its report cannot be redacted: {exc}")
    return Result((File(_FILE, report),), Outcome.PARTIAL if problem else Outcome.COMPLETE, problem)


HOST_BUG_REPORT = Collector("host.nvidia-bug-report", Lane.HOST, _COMMAND.deadline_s, _collect)
