"""One hardware profile from several known-good nodes: what each shows, and what becomes of differences. Pure.

What all agree on stands. Of versions all are taken, of least values the least; what else the nodes differ
in is left out and named. A check is required where it passes on every node.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from health.evidence import Evidence
from health.profiles.learn import Learned, learn_profile
from inventory.model import Profile

# Lists of which a node must match one: another good node may match another.
_VERSIONS = frozenset(
    {
        "driver.version",
        "driver.cuda",
        "gpu.model",
        "gpu.vbios",
        "gpu.inforom",
        "ib.firmware",
        "kernel.versions",
        "os.releases",
    }
)
_LEAST = ("_min", "_min_kb", "_gbps", "_mbps")


@dataclass(frozen=True, slots=True)
class Merged:
    """A profile, why each part that it leaves out is left out, and what speaks against the nodes."""

    profile: Profile
    left_out: Mapping[str, str]
    doubts: tuple[str, ...]


def learn(found: Mapping[str, Evidence], name: str, like: Profile) -> Merged:
    """Return the profile that fits all nodes in `found`; `like` gives what no node shows."""
    bare = replace(like, checks=())
    learned = {node: learn_profile(evidence, name, bare) for node, evidence in found.items()}
    left_out = {part: f"{node}: {why}" for node, one in learned.items() for part, why in one.left_out}
    limits: dict[str, object] = {}
    for limit in dict.fromkeys(key for one in learned.values() for key in one.profile.limits):
        values = {node: one.profile.limit(limit) for node, one in learned.items()}
        merged = _merged(limit, tuple(values.values()))
        if merged is None:
            left_out[limit] = "the nodes differ: " + "; ".join(f"{n} has {v}" for n, v in values.items())
        else:
            limits[limit] = merged
    first = next(iter(learned.values())).profile
    checks = tuple(
        one for one in first.checks if all(one in other.profile.checks for other in learned.values())
    )
    doubts = tuple(f"{node}: {reason}" for node, one in learned.items() for reason in _against(one))
    return Merged(replace(first, limits=limits, checks=checks), left_out, doubts)


def _against(learned: Learned) -> tuple[str, ...]:
    return tuple(str(reason) for reason in learned.doubts)


def _merged(limit: str, values: tuple[object, ...]) -> object | None:
    """Return one value for all nodes, or None where they differ in what must be alike."""
    if all(value == values[0] for value in values):
        return values[0]
    lists = [value for value in values if isinstance(value, list | tuple)]
    if limit in _VERSIONS and len(lists) == len(values):
        return sorted({str(one) for value in lists for one in value})
    numbers = [value for value in values if isinstance(value, int | float) and not isinstance(value, bool)]
    if limit.endswith(_LEAST) and len(numbers) == len(values):
        return min(numbers)
    return None
