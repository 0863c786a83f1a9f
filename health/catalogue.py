"""The table of all checks, and the plan that collects for them. Adding a check adds one row."""

from __future__ import annotations

from health import limits
from health.check import Check, Level
from health.checks import (
    gpu_count,
    gpu_ecc,
    gpu_remap,
    host_boot,
    host_cpus,
    host_disk_space,
    host_failed_units,
    host_memory,
    host_os,
    host_time,
    kernel_taint,
)
from health.errors import UnknownCheck
from health.plan import CollectPlan, make_plan
from inventory.model import Profile

CHECKS: tuple[Check, ...] = (
    host_boot.CHECK,
    host_time.CHECK,
    host_os.CHECK,
    host_cpus.CHECK,
    host_memory.CHECK,
    host_disk_space.CHECK,
    host_failed_units.CHECK,
    kernel_taint.CHECK,
    gpu_count.CHECK,
    gpu_ecc.CHECK,
    gpu_remap.CHECK,
)

# Seconds for the whole collection of a level; a profile may state its own, for example
# "collect.quick.total_s".
_TOTAL_S = {Level.QUICK: 30.0, Level.FULL: 1800.0, Level.BURNIN: 14400.0}


def check(id: str) -> Check:
    """Return the check called `id`. Raises UnknownCheck."""
    for row in CHECKS:
        if row.id == id:
            return row
    raise UnknownCheck(id)


def required_checks(profile: Profile, level: Level) -> tuple[Check, ...]:
    """Return the checks that a gate of `level` runs for `profile`, in the table's order."""
    return tuple(
        row for row in CHECKS if level.holds(row.level) and (not profile.checks or row.id in profile.checks)
    )


def shadowed(profile: Profile) -> frozenset[str]:
    """Return the ids that report without gating: new checks, and those the profile names."""
    return frozenset(limits.optional_words(profile, "shadow.checks")) | {
        row.id for row in CHECKS if not row.gates
    }


def plan(profile: Profile, level: Level) -> CollectPlan:
    """Return what to collect for a gate of `level`."""
    total = limits.optional_number(profile, f"collect.{level}.total_s", _TOTAL_S[level])
    return make_plan((item for row in required_checks(profile, level) for item in row.collects), total)
