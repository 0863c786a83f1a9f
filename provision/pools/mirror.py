"""Shows pools to others: MAAS, Slurm, Prometheus, launchers. The store decides; they only show."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping, Sequence

from inventory.admission import HELD
from inventory.errors import InventoryError
from inventory.model import Pool
from inventory.nodeset import fold
from inventory.records import NodeState
from provision.access import Access
from provision.maas.client import MaasClient
from provision.maas.errors import MaasError, MaasRejected
from provision.maas.model import Machine
from provision.maas.transport import Limits
from provision.pools import files, owed, scheduler

NO_POOL = "default"  # MAAS's own, where it puts machines that nobody placed
TAGS = tuple(f"muster-{pool}" for pool in Pool)
# Nobody waits long for a picture: a MAAS that is away is shown everything later.
_LIMITS = Limits(call_timeout_s=20.0, deadline_s=30.0)
_AT_ONCE = 4
_OURS = "muster: "  # how a description that we wrote begins


async def mirror(access: Access, nodes: Sequence[str], *, limits: Limits | None = None) -> list[str]:
    """Show the nodes' pools to MAAS and Slurm, and all nodes' to monitoring and launchers.

    Returns problems, in words. The store is the truth: a MAAS that is away or refuses does not undo a
    decision. What was not shown is kept, and shown with the next nodes, or by the runner (`make_up`).
    Many that ask at once share the calls.
    """

    state = access.settings.state

    async def work(names: frozenset[str]) -> Mapping[str, str]:
        every = names | owed.load(state)
        problems = await _show(access, every, limits or _LIMITS)
        owed.settle(state, shown=every - set(problems), failed=problems)
        return problems

    found = await access.showing.ask(nodes, work)
    groups: dict[str, list[str]] = {}
    for node, problem in found.items():
        groups.setdefault(problem, []).append(node)
    return [f"{fold(names)}: {problem}" for problem, names in groups.items()]


async def make_up(access: Access) -> frozenset[str]:
    """Show what MAAS or Slurm has not been shown because it was away; returns what is still owed then."""
    waiting = owed.load(access.settings.state)
    if waiting:
        await mirror(access, sorted(waiting))
        shown = waiting - owed.load(access.settings.state)
        for name in sorted(shown):
            access.store.event(name, "note", message="its pool is shown everywhere now")
    return owed.load(access.settings.state)


def publish(access: Access) -> list[str]:
    """Bring the files for monitoring and launchers up to date. Returns problems, in words."""
    try:
        files.publish(access.settings.state, access.site, access.store)
    except OSError as error:
        return [f"the files in {access.settings.state} cannot be written: {error.strerror}"]
    return []


def maas_pool(state: NodeState) -> str:
    """Return the MAAS resource pool that shows where the node stands."""
    return str(state.pool) if state.pool else NO_POOL


def maas_tags(state: NodeState) -> frozenset[str]:
    """Return which of TAGS the node's machine bears."""
    return frozenset({f"muster-{state.pool}"} if state.pool else ())


def maas_description(state: NodeState, shown: str) -> str:
    """Return the machine's description: who holds it and why. What somebody else wrote there stays."""
    if shown and not shown.startswith(_OURS):
        return shown
    if state.pool in HELD and state.pool_since is not None:
        return f"{_OURS}{state.pool} since {state.pool_since:%Y-%m-%d} by {state.pool_by}: {state.pool_why}"
    return f"{_OURS}{maas_pool(state)}" if shown else ""


async def _show(access: Access, names: frozenset[str], limits: Limits) -> dict[str, str]:
    problems = {name: problem for problem in publish(access) for name in names}
    states = access.store.nodes(names)
    machines = {
        state.system_id: state
        for name in sorted(names)
        if (state := states.get(name)) is not None and state.system_id
    }
    told = [problems]
    if machines:
        told.append(await _show_in_maas(access, machines, limits))
    if access.site.slurm and states:
        told.append(await scheduler.show(states))
    every = {name for found in told for name in found}
    return {name: "; ".join(found[name] for found in told if name in found) for name in every}


async def _show_in_maas(access: Access, states: Mapping[str, NodeState], limits: Limits) -> dict[str, str]:
    try:
        async with access.maas_within(limits) as maas:
            shown = await maas.machines(ids=sorted(states))
            await _make_pools(maas, states.values())
            problems = await _place(maas, states, shown)
            return problems | await _tag(maas, states, shown)
    except (MaasError, InventoryError) as error:
        return {state.name: f"MAAS does not show its pool yet: {error}" for state in states.values()}


async def _make_pools(maas: MaasClient, states: Iterable[NodeState]) -> None:
    wanted = {maas_pool(state) for state in states} - {pool.name for pool in await maas.pools()}
    for name in sorted(wanted):
        await maas.ensure_pool(name, f"{_OURS}{name}")


async def _place(
    maas: MaasClient, states: Mapping[str, NodeState], shown: Sequence[Machine]
) -> dict[str, str]:
    room = asyncio.Semaphore(_AT_ONCE)

    async def one(machine: Machine) -> tuple[str, str]:
        state = states[machine.system_id]
        wanted = {
            "pool": (machine.pool, maas_pool(state)),
            "description": (machine.description, maas_description(state, machine.description)),
        }
        fields = {name: text for name, (old, text) in wanted.items() if old != text}
        try:
            if fields:
                async with room:
                    await maas.update(machine.system_id, **fields)
        except MaasRejected as error:
            # A locked machine stays as it is; the others are shown.
            return state.name, f"MAAS does not show its pool yet: {error}"
        return state.name, ""

    found = await asyncio.gather(*(one(machine) for machine in shown))
    return {name: problem for name, problem in found if problem}


async def _tag(maas: MaasClient, states: Mapping[str, NodeState], shown: Sequence[Machine]) -> dict[str, str]:
    known: set[str] | None = None
    for tag in TAGS:
        add = [one.system_id for one in shown if tag in maas_tags(states[one.system_id]) - set(one.tags)]
        remove = [one.system_id for one in shown if tag in set(one.tags) - maas_tags(states[one.system_id])]
        if not add and not remove:
            continue
        if known is None:
            known = {found.name for found in await maas.tags()}
        if tag not in known:
            await maas.ensure_tag(tag, f"{_OURS}nodes in {tag.removeprefix('muster-')}")
        await maas.tag_nodes(tag, add=add, remove=remove)
    return {}
