"""Chooses nodes for a job, and spares for failed nodes. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from inventory.model import Node
from provision.pools.candidates import Candidate


@dataclass(frozen=True, slots=True)
class Wanted:
    """What is asked for. `same_pod`: all behind the same switches; `healthiest`: wherever they stand."""

    count: int
    same_pod: bool = False
    healthiest: bool = False


@dataclass(frozen=True, slots=True)
class Short:
    """There are not enough: how many the best group of nodes has, and which group that is."""

    found: int
    where: str


def choose(candidates: Sequence[Candidate], wanted: Wanted) -> tuple[Candidate, ...] | Short:
    """Choose `wanted.count` of `candidates` (healthiest first), all of one profile.

    Clean nodes come before others. Among them, racks are kept together: a rack that is enough by
    itself, else the fullest first. With `healthiest` only the rank counts.
    """
    groups: dict[tuple[str, str], list[Candidate]] = {}
    for one in candidates:
        groups.setdefault((one.node.profile, one.pod if wanted.same_pod else ""), []).append(one)
    choices = []
    for key, members in groups.items():
        if len(members) >= wanted.count:
            chosen = members[: wanted.count] if wanted.healthiest else _packed(members, wanted.count)
            spoiled = sum(not one.rank.clean for one in chosen)
            demerits = sum(one.rank.demerits for one in chosen)
            racks = len({one.node.rack for one in chosen})
            order = (spoiled, demerits, racks) if wanted.healthiest else (spoiled, racks, demerits)
            choices.append(((*order, len(members), key), chosen))
    if choices:
        return tuple(min(choices, key=lambda choice: choice[0])[1])
    best = max(groups, key=lambda key: (len(groups[key]), key), default=("", ""))
    where = f"of profile {best[0]}" + (f" in pod {best[1]}" if best[1] else "") if best[0] else ""
    return Short(len(groups.get(best, ())), where)


def pair(
    failed: Sequence[Node], spares: Sequence[Candidate], pods: Mapping[str, str]
) -> dict[str, Candidate]:
    """Give each failed node the best spare (healthiest first) of its profile; some may get none.

    Near comes before far: as many as possible get one of their own rack, then of their own pod.
    At the same distance a clean spare comes first, and a clean one of the pod before another of the rack.
    """
    nearness: tuple[Callable[[Node, Candidate], bool], ...] = (
        lambda node, spare: spare.rank.clean and spare.node.rack == node.rack,
        lambda node, spare: spare.rank.clean and spare.pod == pods[node.rack],
        lambda node, spare: spare.node.rack == node.rack,
        lambda node, spare: spare.pod == pods[node.rack],
        lambda _node, _spare: True,
    )
    left = list(spares)
    given: dict[str, Candidate] = {}
    for near in nearness:
        for node in failed:
            if node.name in given:
                continue
            match = next((one for one in left if one.node.profile == node.profile and near(node, one)), None)
            if match is not None:
                given[node.name] = match
                left.remove(match)
    return given


def _packed(members: Iterable[Candidate], count: int) -> list[Candidate]:
    chosen: list[Candidate] = []
    for clean in (True, False):
        racks: dict[str, list[Candidate]] = {}
        for one in members:
            if one.rank.clean is clean:
                racks.setdefault(one.node.rack, []).append(one)
        while racks and len(chosen) < count:
            missing = count - len(chosen)
            enough = [name for name in racks if len(racks[name]) >= missing]
            if enough:
                name = min(enough, key=lambda rack: (len(racks[rack]), rack))
            else:
                name = min(racks, key=lambda rack: (-len(racks[rack]), rack))
            chosen += racks.pop(name)[:missing]
    return chosen
