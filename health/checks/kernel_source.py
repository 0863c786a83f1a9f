"""The kernel's log as evidence: from its ring, and from the journal where the ring has moved on."""

from __future__ import annotations

import re
from dataclasses import dataclass
from math import inf

from health.check import Collect
from health.errors import NotCollected
from health.evidence import Evidence, Item
from health.outcome import Action, Finding, Status
from health.readers.kernel import END_OF_KMSG, KernelLine, read_kernel

KMSG = Collect("kernel.kmsg", file="/dev/kmsg", needs_root=True, limit_bytes=16_777_216, timeout_s=15)
JOURNAL = Collect(
    "kernel.journal",
    argv=("journalctl", "--dmesg", "--boot=0", "--output=short-monotonic", "--no-pager", "--quiet"),
    needs_root=True,
    limit_bytes=16_777_216,
    timeout_s=25,
)
_FIRST = re.compile(r"^(?:Linux version |Booting Linux on physical CPU|microcode: )")
_MISSED = re.compile(r"Missed \d+ kernel messages|^\d+ messages? (?:lost|suppressed)")


@dataclass(frozen=True, slots=True)
class KernelLog:
    """The lines since boot, or since the last acknowledged repair. `gap` says why they are not all."""

    lines: tuple[KernelLine, ...]
    gap: str | None

    def unproven(self) -> list[Finding]:
        """Return the finding that a log with a gap makes: nothing in it, and nothing proven."""
        if self.gap is None:
            return []
        message = f"the kernel log is not whole: {self.gap}"
        return [Finding("kernel", "kernel log", message, Action.REBOOT, Status.UNKNOWN)]


def kernel_log(evidence: Evidence) -> KernelLog:
    """Return the log since the last acknowledged repair. Raises NotCollected where there is no ring."""
    log = whole_log(evidence)
    return KernelLog(_since_repair(log.lines, evidence), log.gap)


def whole_log(evidence: Evidence) -> KernelLog:
    """Return the log since boot, whole where it can be proven to be. Raises NotCollected for no ring."""
    ring = _ring(evidence.item(KMSG.id))
    if not ring.wrapped:
        return KernelLog(_own(ring.lines), ring.gap)
    journal, gap = _journal(evidence.item(JOURNAL.id))
    first = (ring.lines[0].since_boot_s or 0.0) if ring.lines else inf
    older = [line for line in journal if (line.since_boot_s or 0.0) < first]
    # The journal tells what the ring has lost, if the two meet.
    if gap is None and ring.lines and len(older) == len(journal):
        gap = "the journal ends before the ring begins"
    if gap is not None:
        gap = f"{ring.gap}, and {gap}"
    return KernelLog(_own((*older, *ring.lines)), gap)


@dataclass(frozen=True, slots=True)
class _Ring:
    """The kernel's ring. `wrapped`: it is whole but for what it no longer holds."""

    lines: tuple[KernelLine, ...]
    gap: str | None
    wrapped: bool = False


def _ring(item: Item | None) -> _Ring:
    if item is None or (item.problem and not item.truncated):
        raise NotCollected(KMSG.id, item.problem if item and item.problem else "/dev/kmsg was not collected")
    lines = read_kernel(item.text)
    if item.truncated or item.text.count(END_OF_KMSG) != 1 or not item.text.endswith(f"{END_OF_KMSG}\n"):
        return _Ring(lines, "/dev/kmsg was cut")
    numbers = [line.sequence for line in lines]
    if not lines:
        # A container sees none of its host's log. Its own journal may.
        return _Ring((), "the ring is empty", wrapped=True)
    first = numbers[0]
    if first is None or numbers != list(range(first, first + len(numbers))):
        return _Ring(lines, "records are missing from the ring")
    if first != 0:
        return _Ring(lines, f"the ring begins at record {first}", wrapped=True)
    return _Ring(lines, None)


def _journal(item: Item | None) -> tuple[tuple[KernelLine, ...], str | None]:
    if item is None or (item.problem and not item.truncated):
        return (), item.problem if item and item.problem else "the journal was not collected"
    lines = read_kernel(item.text)
    if item.truncated:
        return lines, "the journal was cut"
    if not any(_FIRST.match(line.text) for line in lines[:5]):
        return lines, "the journal does not begin with the boot"
    if any(_MISSED.search(line.text) for line in lines):
        return lines, "the journal has missed messages"
    return lines, None


def _own(lines: tuple[KernelLine, ...]) -> tuple[KernelLine, ...]:
    """Drop what programs wrote into the kernel's log."""
    return tuple(line for line in lines if line.facility in (None, 0))


def _since_repair(lines: tuple[KernelLine, ...], evidence: Evidence) -> tuple[KernelLine, ...]:
    """Drop what was before the last acknowledged repair."""
    since = evidence.context.repaired_at
    boot = evidence.began.boot_time
    return tuple(
        line
        for line in lines
        if not (since is not None and line.since_boot_s is not None and boot + line.since_boot_s < since)
    )
