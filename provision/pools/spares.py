"""The spares policy: a share of every rack's admitted nodes waits for others to fail."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import floor

from inventory.admission import ADMITTED, why_not_admitted
from inventory.errors import NotFree
from inventory.model import Node, Pool
from inventory.records import NodeState
from provision import guards
from provision.access import Access
from provision.errors import Refused
from provision.guards import Consent
from provision.pools import candidates
from provision.pools.candidates import Candidate


@dataclass(frozen=True, slots=True)
class Share:
    """How many spares some nodes of one rack and profile have, and should have."""

    rack: str
    profile: str
    admitted: int
    spares: int
    wanted: int


@dataclass(frozen=True, slots=True)
class Move:
    """One node that changes sides, and why."""

    node: str
    to: Pool
    why: str


def wanted_spares(share: float, admitted: int) -> int:
    """Return how many of `admitted` nodes should be spares: the share, rounded to the nearest."""
    return floor(share * admitted + 0.5)


def shares(nodes: Iterable[Node], share: float, states: Mapping[str, NodeState]) -> tuple[Share, ...]:
    """Return how every rack stands, for each of its profiles. Nodes that serve others are not counted."""
    found = []
    for (rack, profile), members in _groups(nodes).items():
        pools = [
            state.pool
            for node in members
            if (state := states.get(node.name)) is not None and why_not_admitted(state) is None
        ]
        admitted, spares = sum(pool in ADMITTED for pool in pools), pools.count(Pool.SPARE)
        found.append(Share(rack, profile, admitted, spares, wanted_spares(share, admitted)))
    return tuple(found)


def pool_for(access: Access, node: Node) -> Pool:
    """Return the pool that a node joins once it is admitted: spare while its rack lacks some."""
    if node.roles:
        return Pool.RELIABLE
    rack = access.site.rack_of(node).nodes
    states = access.store.nodes([other.name for other in rack])
    own = next(one for one in shares(rack, access.site.spare_share, states) if one.profile == node.profile)
    wanted = wanted_spares(access.site.spare_share, own.admitted + 1)
    return Pool.SPARE if own.spares < wanted else Pool.RELIABLE


InUse = Callable[[Access, Node], Awaitable[Refused | None]]


async def plan(access: Access, in_use: InUse = guards.in_use) -> tuple[Move, ...]:
    """Return the moves that give every rack its share. Raises SlurmFailed.

    The healthiest spares become reliable where there are too many; where there are too few, the
    least healthy of the free reliable nodes wait as spares. Nothing that is in use is moved.
    """
    spare = (await candidates.find(access, access.site.nodes, pool=Pool.SPARE)).free
    free = (await candidates.find(access, access.site.nodes)).free
    moves: list[Move] = []
    for one in shares(access.site.nodes, access.site.spare_share, access.store.nodes()):
        why = f"{one.spares} of {one.admitted} in {one.rack} are spares, {one.wanted} are wanted"
        surplus = one.spares - one.wanted
        moves += [Move(who.name, Pool.RELIABLE, why) for who in _of(spare, one)[: max(0, surplus)]]
        idle = await _idle(access, reversed(_of(free, one)), -surplus, in_use)
        moves += [Move(who.name, Pool.SPARE, why) for who in idle]
    return tuple(moves)


def carry_out(access: Access, moves: Sequence[Move], consent: Consent) -> tuple[str, ...]:
    """Move the nodes. Returns those that no longer may: the gate or another command was quicker."""
    if {move.node for move in moves} != set(consent.nodes):
        raise ValueError("the consent is for other nodes than the moves")
    late = []
    for move in moves:
        try:
            access.store.shift(move.node, move.to, by=consent.who, why=move.why)
        except NotFree:
            late.append(move.node)
    return tuple(late)


def _groups(nodes: Iterable[Node]) -> dict[tuple[str, str], list[Node]]:
    groups: dict[tuple[str, str], list[Node]] = {}
    for node in nodes:
        if not node.roles:
            groups.setdefault((node.rack, node.profile), []).append(node)
    return groups


def _of(found: Sequence[Candidate], share: Share) -> list[Candidate]:
    return [one for one in found if (one.node.rack, one.node.profile) == (share.rack, share.profile)]


async def _idle(access: Access, found: Iterable[Candidate], count: int, in_use: InUse) -> list[Candidate]:
    """Return up to `count` of the nodes on which nothing runs."""
    idle: list[Candidate] = []
    for one in found:
        if len(idle) >= count:
            break
        if await in_use(access, one.node) is None:
            idle.append(one)
    return idle
