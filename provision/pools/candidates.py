"""Which nodes may be handed out now, how healthy each is, and why the others may not."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from inventory.admission import why_not_free
from inventory.model import Node, Pool, Site
from inventory.records import Answer, Event, EventKind, NodeState
from provision import advice, slurm
from provision.access import Access
from provision.ranking import MEMORY, RECENT, SHADOW, Past, Rank, rank

_HOLDS = frozenset({str(Pool.QUARANTINE), str(Pool.REPAIR)})
_MOST_EVENTS = 1_000_000


@dataclass(frozen=True, slots=True)
class Candidate:
    """A node that may be handed out."""

    node: Node
    pod: str
    rank: Rank

    @property
    def name(self) -> str:
        """The node's name."""
        return self.node.name


@dataclass(frozen=True, slots=True)
class Candidates:
    """Those that may be handed out, healthiest first; and why each other node may not."""

    free: tuple[Candidate, ...]
    left_out: Mapping[str, str]

    def why(self) -> str:
        """Say why nodes are left out, the commonest reason first."""
        counted = Counter(reason.partition(" by ")[0] for reason in self.left_out.values())
        return ", ".join(f"{count}: {reason}" for reason, count in counted.most_common(4))


async def find(
    access: Access, nodes: Sequence[Node], *, pool: Pool = Pool.RELIABLE, now: datetime | None = None
) -> Candidates:
    """Look which of `nodes` are free in `pool`. Raises SlurmFailed where Slurm is asked and silent.

    Nodes that serve others are never free: whoever gets one would take it from everyone.
    """
    now = now or datetime.now(UTC)
    states, taken = access.store.nodes(), access.store.allocations()
    left_out: dict[str, str] = {}
    for node in nodes:
        state = states.get(node.name) or NodeState(node.name)
        serves = f"it serves others: {', '.join(node.roles)}" if node.roles else None
        reason = serves or why_not_free(state, taken.get(node.name), pool=pool)
        if reason is not None:
            left_out[node.name] = reason
    if access.site.slurm:
        left_out |= await slurm.in_use([node.name for node in nodes if node.name not in left_out])
    free = [node for node in nodes if node.name not in left_out]
    by_name = {node.name: node for node in free}
    pods = pods_of(access.site)
    ranked = rank(pasts(access, free, now), now)
    return Candidates(
        tuple(Candidate(by_name[one.node], pods[by_name[one.node].rack], one) for one in ranked), left_out
    )


def pods_of(site: Site) -> dict[str, str]:
    """Return the pod of every rack."""
    return {rack.name: rack.pod for rack in site.racks}


def pasts(access: Access, nodes: Sequence[Node], now: datetime) -> tuple[Past, ...]:
    """Read what the nodes' history says of them."""
    store = access.store
    failures = _count_failures(
        store.events(kinds=[EventKind.STAGE_FAILED], since=now - RECENT, limit=_MOST_EVENTS)
    )
    moves = store.events(kinds=[EventKind.POOL], since=now - MEMORY, limit=_MOST_EVENTS)
    offences = _count_holds(moves)
    verdicts = store.last_verdicts()
    found = []
    for node in nodes:
        verdict = verdicts.get(node.name)
        yes = verdict is not None and verdict.answer is Answer.YES
        found.append(
            Past(
                node.name,
                failures=failures[node.name],
                # What was recorded without a serial is the name's; with one, the hardware's.
                offences=offences["name", node.name] + offences["serial", node.serial or ""],
                warnings=_warnings(verdict.reasons) if verdict is not None and yes else 0,
                last_yes=verdict.ts if verdict is not None and yes else None,
            )
        )
    return tuple(found)


def _warnings(reasons: Iterable[str]) -> int:
    return sum(not reason.endswith(SHADOW) for reason in reasons)


def _count_failures(events: Iterable[Event]) -> Counter[str]:
    return Counter(
        event.node
        for event in events
        if event.node is not None and event.data.get("code") not in advice.NOT_THE_NODE
    )


def _count_holds(moves: Iterable[Event]) -> Counter[tuple[str, str]]:
    """Count how often a node came into quarantine or repair from outside of them."""
    found: Counter[tuple[str, str]] = Counter()
    for event in moves:
        if event.data.get("to") not in _HOLDS or event.data.get("from") in _HOLDS:
            continue
        serial = event.data.get("serial")
        found["serial" if serial else "name", str(serial or event.node)] += 1
    return found
