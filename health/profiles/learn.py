"""Makes a profile of what a known-good node shows, and says what it could not learn. Pure.

Two collections make it whole: some items are collected only where the profile states a limit. So collect
by the plan of a bare profile, learn, collect by the plan of what was learned, and learn again.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from health.catalogue import CHECKS, shadowed
from health.check import Level
from health.errors import HealthError
from health.evidence import Context, Evidence
from health.outcome import Status
from health.profiles.found import PARTS
from health.verdict import Reason, verdict
from inventory.model import Profile

# What no node can show of itself: a site's own policy, to be changed in the file.
_POLICY: dict[str, object] = {"host.clock_skew_s": 1, "disk.used_max_percent": 80}


@dataclass(frozen=True, slots=True)
class Learned:
    """A profile, and why each part or check that it leaves out is left out.

    `doubts` are findings against the node itself: where there are any, it may not be known-good.
    """

    profile: Profile
    left_out: tuple[tuple[str, str], ...]
    doubts: tuple[Reason, ...]


def learn_profile(evidence: Evidence, name: str, like: Profile | None = None) -> Learned:
    """Return a profile under which this evidence gives yes, unless something is wrong with the node.

    `like` gives what is not hardware: image, deadlines, playbook, and limits that evidence does not show.
    """
    limits: dict[str, object] = {**_POLICY, **(dict(like.limits) if like else {})}
    left_out = []
    for part, find in PARTS.items():
        try:
            found = find(evidence)
        except (HealthError, KeyError, ValueError, IndexError) as exc:
            left_out.append((part, str(exc)))
            continue
        limits |= {limit: value for limit, value in found.items() if value != []}
    base = like or Profile(name)
    profile = replace(base, name=name, limits=limits, checks=())
    at = evidence.context.collected_at or evidence.began.wall_clock
    judged = [
        outcome
        for outcome in verdict(evidence, profile, Level.BURNIN, context=Context(collected_at=at)).outcomes
        if not outcome.check.startswith("gate.")
    ]
    quiet = shadowed(profile)
    silent = {one.check for one in judged if one.status is Status.UNKNOWN} - quiet
    left_out += [(one.check, one.summary) for one in judged if one.check in silent]
    kept = tuple(row.id for row in CHECKS if row.id not in silent)
    profile = replace(profile, checks=kept)
    final = verdict(evidence, profile, Level.BURNIN, context=Context(collected_at=at))
    doubts = tuple(one for one in final.reasons if one.gates and one.status is not Status.WARN)
    return Learned(profile, tuple(left_out), doubts)
