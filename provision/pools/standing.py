"""How the pools stand: every rack's numbers, what is handed out, and what needs a human."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import datetime

from inventory.admission import ADMITTED, why_not_admitted
from inventory.model import Node, Pool, Rack
from inventory.nodeset import fold
from inventory.records import Allocation, Breaker, NodeState
from provision.access import Access
from provision.pools.spares import shares


@dataclass(frozen=True, slots=True)
class RackStanding:
    """How many nodes of a rack are where. `free`: reliable, proven and not handed out."""

    rack: str
    pod: str
    nodes: int
    reliable: int
    allocated: int
    free: int
    spare: int
    spares_wanted: int
    quarantine: int
    repair: int
    retired: int

    def to_json(self) -> dict[str, object]:
        """Return the form that is printed."""
        return asdict(self)


@dataclass(frozen=True, slots=True)
class Held:
    """One allocation. `bad`: those of its nodes that are no longer in reliable."""

    name: str
    members: tuple[str, ...]
    who: str
    reason: str
    since: datetime
    bad: tuple[str, ...]

    def to_json(self) -> dict[str, object]:
        """Return the form that is printed."""
        return {
            "name": self.name,
            "nodes": fold(self.members),
            "count": len(self.members),
            "by": self.who,
            "since": self.since,
            "reason": self.reason,
            "bad": fold(self.bad),
        }


@dataclass(frozen=True, slots=True)
class Standing:
    """All of it at one moment. `doubtful` are in an admitted pool without a fresh yes."""

    racks: tuple[RackStanding, ...]
    allocations: tuple[Held, ...]
    breaker: Breaker
    doubtful: tuple[str, ...]

    def to_json(self) -> dict[str, object]:
        """Return the form that is printed."""
        return {
            "racks": [row.to_json() for row in self.racks],
            "allocations": [row.to_json() for row in self.allocations],
            "breaker": {
                "open": self.breaker.tripped_at is not None,
                "since": self.breaker.tripped_at,
                "why": self.breaker.why,
                "left_within_an_hour": list(self.breaker.left),
            },
            "without_a_fresh_yes": list(self.doubtful),
        }

    def remarks(self) -> list[str]:
        """Say what needs a human, each with its next command."""
        found = []
        if self.breaker.tripped_at is not None:
            found.append(breaker_line(self.breaker))
        if self.doubtful:
            names = fold(self.doubtful)
            found.append(f"in the pool without a fresh yes: {names}   next: invoke verify --nodes '{names}'")
        for row in self.allocations:
            if row.bad:
                names = fold(row.bad)
                found.append(
                    f"{row.name} has nodes that left the pool: {names}   "
                    f"next: invoke pool.replace --nodes '{names}' --reason '...'"
                )
        uneven = [row.rack for row in self.racks if row.spare != row.spares_wanted]
        if uneven:
            found.append(f"spares are not as wanted in {fold(uneven)}   next: invoke pool.balance --dry-run")
        return found


def breaker_line(breaker: Breaker) -> str:
    """Say that automatic quarantine is stopped, why, and what lifts that."""
    return f"automatic quarantine is stopped: {breaker.why}   next: docs/runbooks/breaker.md"


def look(access: Access) -> Standing:
    """Read how everything stands now."""
    states, taken = access.store.nodes(), access.store.allocations()
    wanted: dict[str, int] = {}
    for share in shares(access.site.nodes, access.site.spare_share, states):
        wanted[share.rack] = wanted.get(share.rack, 0) + share.wanted
    racks = tuple(_rack(rack, states, taken, wanted.get(rack.name, 0)) for rack in access.site.racks)
    doubtful = tuple(
        node.name
        for node in access.site.nodes
        if (state := _state(states, node)).pool in ADMITTED and why_not_admitted(state) is not None
    )
    return Standing(racks, _held(states, taken), access.store.breaker(), doubtful)


def _rack(
    rack: Rack, states: Mapping[str, NodeState], taken: Mapping[str, Allocation], wanted: int
) -> RackStanding:
    here = [_state(states, node) for node in rack.nodes]
    pools = [state.pool for state in here]
    free = sum(
        state.pool is Pool.RELIABLE
        and node.name not in taken
        and not node.roles
        and why_not_admitted(state) is None
        for node, state in zip(rack.nodes, here, strict=True)
    )
    return RackStanding(
        rack.name,
        rack.pod,
        nodes=len(here),
        reliable=pools.count(Pool.RELIABLE),
        allocated=sum(node.name in taken for node in rack.nodes),
        free=free,
        spare=pools.count(Pool.SPARE),
        spares_wanted=wanted,
        quarantine=pools.count(Pool.QUARANTINE),
        repair=pools.count(Pool.REPAIR),
        retired=pools.count(Pool.RETIRED),
    )


def _held(states: Mapping[str, NodeState], taken: Mapping[str, Allocation]) -> tuple[Held, ...]:
    groups: dict[str, list[Allocation]] = {}
    for one in taken.values():
        groups.setdefault(one.name, []).append(one)
    return tuple(_one_held(name, members, states) for name, members in groups.items())


def _one_held(name: str, members: Sequence[Allocation], states: Mapping[str, NodeState]) -> Held:
    bad = tuple(one.node for one in members if states[one.node].pool is not Pool.RELIABLE)
    first = min(members, key=lambda one: one.since)
    return Held(name, tuple(one.node for one in members), first.who, first.why or "", first.since, bad)


def _state(states: Mapping[str, NodeState], node: Node) -> NodeState:
    return states.get(node.name) or NodeState(node.name)
