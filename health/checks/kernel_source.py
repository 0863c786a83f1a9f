"""The kernel's log as evidence: from its ring, and from the journal where the ring has moved on."""

from __future__ import annotations

import re
from dataclasses import dataclass

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
    """Return the log, whole where it can be proven to be. Raises NotCollected where there is none."""
    ring, ring_gap = _ring(evidence.item(KMSG.id))
    if ring_gap is None:
        return KernelLog(_since_repair(ring, evidence), None)
    journal, journal_gap = _journal(evidence.item(JOURNAL.id))
    if not ring and not journal:
        raise NotCollected(KMSG.id, f"{ring_gap}; {journal_gap}")
    first = ring[0].since_boot_s if ring else None
    older = [line for line in journal if first is None or (line.since_boot_s or 0.0) < first]
    # The journal fills what the ring has lost, if the two meet: the ring may begin after the journal ends.
    gap = journal_gap
    if gap is None and first is not None and len(older) == len(journal):
        gap = f"{ring_gap}, and the journal ends before it begins"
    return KernelLog(_since_repair((*older, *ring), evidence), gap)


def _ring(item: Item | None) -> tuple[tuple[KernelLine, ...], str | None]:
    if item is None or (item.problem and not item.truncated):
        return (), item.problem if item and item.problem else "/dev/kmsg was not collected"
    lines = tuple(read_kernel(item.text))
    numbers = [line.sequence for line in lines]
    if item.truncated or not item.text.rstrip().endswith(END_OF_KMSG):
        return lines, "/dev/kmsg was cut"
    if not numbers or None in numbers:
        return lines, "/dev/kmsg holds lines without a number"
    known = [number for number in numbers if number is not None]
    if known[0] != 0:
        return lines, f"the ring begins at record {known[0]}"
    if known != list(range(len(known))):
        return lines, "records are missing from the ring"
    return lines, None


def _journal(item: Item | None) -> tuple[tuple[KernelLine, ...], str | None]:
    if item is None or (item.problem and not item.truncated):
        return (), item.problem if item and item.problem else "the journal was not collected"
    lines = tuple(read_kernel(item.text))
    if item.truncated:
        return lines, "the journal was cut"
    if not any(_FIRST.match(line.text) for line in lines[:5]):
        return lines, "the journal does not begin with the boot"
    if any(_MISSED.search(line.text) for line in lines):
        return lines, "the journal has missed messages"
    return lines, None


def _since_repair(lines: tuple[KernelLine, ...], evidence: Evidence) -> tuple[KernelLine, ...]:
    """Drop what was before the last acknowledged repair, and what programs wrote into the kernel's log."""
    since = evidence.context.repaired_at
    boot = evidence.began.boot_time
    return tuple(
        line
        for line in lines
        if line.facility in (None, 0)
        and not (since is not None and line.since_boot_s is not None and boot + line.since_boot_s < since)
    )
