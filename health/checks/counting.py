"""Counters as evidence: how much they grew since a baseline, else between two readings of one collection."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from health.checks.sources import ended
from health.errors import NotCollected
from health.evidence import Evidence
from health.rules.counters import Growth, growth


def window(evidence: Evidence, first: str, later: str, read: Callable[[str], Mapping[str, int]]) -> Growth:
    """Return the growth of counters and the seconds it took. Raises NotCollected or what `read` raises.

    A baseline of the same boot gives the longer window; after a reboot counters begin anew.
    """
    after = ended(evidence, later, 0, 1)
    now = read(after.text)

    def grown(before: Mapping[str, int], seconds: float) -> Growth:
        if set(before) != set(now):
            raise NotCollected(later, f"{after.source} counted other things the first time")
        return growth(before, now, seconds)

    baseline = evidence.context.baseline
    if baseline is not None and baseline.began.boot_id == evidence.began.boot_id:
        before = ended(baseline, later, 0, 1)
        seconds = (evidence.began.uptime_s + after.at_s) - (baseline.began.uptime_s + before.at_s)
        if seconds > 0:
            return grown(read(before.text), seconds)
    before = ended(evidence, first, 0, 1)
    seconds = after.at_s - before.at_s
    if seconds <= 0:
        raise NotCollected(later, f"{after.source} was not read twice")
    return grown(read(before.text), seconds)
