"""Puts spares in the place of failed nodes, in the pool and in the job's hostfile."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from inventory.model import Node, Pool
from inventory.records import Allocation, Replacement
from provision.access import Access
from provision.errors import NotEnough, RelaunchFailed
from provision.guards import Consent
from provision.pools import candidates
from provision.pools.candidates import Candidate
from provision.pools.choosing import pair


@dataclass(frozen=True, slots=True)
class Plan:
    """What a replacement does. `without`: failed nodes that get no spare and only leave.

    `done` were replaced before; `idle` hold no place that a spare could take. `names` are the
    allocations concerned.
    """

    spares: dict[str, Candidate]
    without: tuple[Node, ...]
    done: tuple[Node, ...]
    idle: tuple[Node, ...]
    names: tuple[str, ...]
    failed: tuple[Node, ...]

    def replacements(self) -> tuple[Replacement, ...]:
        """Return the pairs as the store takes them."""
        return tuple(
            Replacement(
                node.name, self.spares[node.name].name if node.name in self.spares else None, node.serial
            )
            for node in self.failed
        )


async def plan(access: Access, nodes: Sequence[Node], *, partial: bool) -> Plan:
    """Choose a spare for every failed node. Raises NotEnough without `partial`, SlurmFailed."""
    states, taken = access.store.nodes(), access.store.allocations()
    replaced = {one.instead_of for one in taken.values()}
    failed: list[Node] = []
    done: list[Node] = []
    idle: list[Node] = []
    for node in nodes:
        state = states.get(node.name)
        if node.name in taken or (state is not None and state.pool is Pool.RELIABLE):
            failed.append(node)
        else:
            (done if node.name in replaced else idle).append(node)
    found = await candidates.find(
        access, [node for node in access.site.nodes if node not in nodes], pool=Pool.SPARE
    )
    spares = pair(failed, found.free, candidates.pods_of(access.site))
    without = tuple(node for node in failed if node.name not in spares)
    if without and not partial:
        held = sum(state.pool is Pool.SPARE for state in states.values())
        raise NotEnough(
            len(failed), f"{len(spares)} of {held} spares are fit; nothing was changed",
            "invoke pool.balance, or say --partial", what="spare",
        )  # fmt: skip
    return Plan(spares, without, tuple(done), tuple(idle), _names(taken, nodes), tuple(failed))


def carry_out(access: Access, plan: Plan, consent: Consent) -> None:
    """Replace, all or nothing. Raises NotFree where a spare was taken meanwhile."""
    if set(consent.nodes) != {node.name for node in plan.failed}:
        raise ValueError("the consent is for other nodes than the plan")
    access.store.replace(plan.replacements(), by=consent.who, why=consent.reason)


async def relaunch(command: str, hostfile: Path, name: str) -> None:
    """Run the operator's command with the new hostfile. Raises RelaunchFailed."""
    environment = {**os.environ, "MUSTER_HOSTFILE": str(hostfile), "MUSTER_ALLOCATION": name}
    # A shell, because this is a line that the operator typed and may use $MUSTER_HOSTFILE in.
    process = await asyncio.create_subprocess_exec("sh", "-c", command, env=environment)
    status = await process.wait()
    if status != 0:
        raise RelaunchFailed(command, status)


def changed_nodes(plan: Plan) -> tuple[str, ...]:
    """Return the nodes whose place others should be shown anew."""
    return tuple(node.name for node in plan.failed) + tuple(one.name for one in plan.spares.values())


def _names(taken: dict[str, Allocation], nodes: Sequence[Node]) -> tuple[str, ...]:
    """Return the allocations that the nodes are of, or were of until they were replaced."""
    ours = {node.name for node in nodes}
    return tuple(sorted({one.name for one in taken.values() if {one.node, one.instead_of} & ours}))
