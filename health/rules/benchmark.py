"""What load tests say: that they ended, that the sums are right, and how fast for what they ran on."""

from __future__ import annotations

import re

from health.outcome import Action, Finding, Status
from health.readers.benchmark import Collective, Transfer

# Bandwidth that falls as transfers grow is never the shape of a good link.
_DROP = 0.87
# Without a profile: what a single node of this GPU reaches at least in its best row, GB/s by collective.
_ONE_NODE = {"H100 80GB HBM3": 280.0, "H200": 280.0, "A100-SXM4": 150.0, "H800": 120.0}
_WRITE_FLOOR = {"MB/s": 20000.0, "Gb/s": 160.0}


def judge_collectives(runs: tuple[Collective, ...]) -> list[Finding]:
    """Judge nccl-tests without a profile or a fleet to compare with."""
    findings = []
    for run in runs:
        who = ", ".join(sorted(run.nodes)) or "nodes of this run"
        if run.failures:
            message = f"{run.name}: {run.failures[0]}"
            findings.append(Finding("collective", who, message, Action.INVESTIGATE))
        elif not run.finished or not run.bandwidths:
            findings.append(Finding("collective", who, f"{run.name} did not finish", Action.INVESTIGATE))
        elif run.wrong:
            message = f"{run.name}: {run.wrong} wrong values"
            findings.append(Finding("collective", who, message, Action.VENDOR_TICKET))
        elif run.ranks > 1:
            findings += _speed(run, who)
    return findings


def _speed(run: Collective, who: str) -> list[Finding]:
    best, last = max(run.bandwidths), run.bandwidths[-1]
    if last < _DROP * best:
        message = f"{run.name} falls from {best:.1f} to {last:.1f} GB/s as transfers grow"
        return [Finding("collective", who, message, Action.INVESTIGATE)]
    floor = next((floor for name, floor in _ONE_NODE.items() if name in run.gpu), None)
    if floor and len(run.nodes) == 1 and run.ranks == 8 and not re.search("send", run.name) and best < floor:
        message = f"{run.name} reaches {best:.1f} GB/s of at least {floor:.0f} on one node"
        return [Finding("collective", who, message, Action.INVESTIGATE)]
    return []


def judge_transfers(rows: tuple[Transfer, ...], *, floor: float | None = None) -> list[Finding]:
    """Judge perftest's largest transfer."""
    row = max(rows, key=lambda row: row.size)
    least = floor if floor is not None else _WRITE_FLOOR[row.unit]
    if row.size >= 65536 and row.average < least:
        message = f"{row.average:.0f} {row.unit} of at least {least:.0f}"
        return [Finding("nic", "adapter under test", message, Action.RESEAT)]
    if row.average < 0.9 * row.peak:
        message = f"average {row.average:.0f} of peak {row.peak:.0f} {row.unit}"
        return [Finding("nic", "adapter under test", message, Action.RERUN, Status.WARN)]
    return []


def judge_burn(states: dict[int, bool]) -> list[Finding]:
    """Judge gpu_burn: each GPU computed the same all along."""
    return [
        Finding("gpu", f"GPU {gpu}", f"GPU {gpu} computes wrongly", Action.VENDOR_TICKET)
        for gpu, good in states.items()
        if not good
    ]
