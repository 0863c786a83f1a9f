"""Whether something runs on a node that is to be wiped, or to lose its power. Pools do not tell: a node
that automation took out of the reliable pool may still run the job that it ran there.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from bmc.capability import PowerState
from bmc.drivers import connect
from bmc.errors import BmcError
from inventory.admission import ADMITTED
from inventory.errors import SecretMissing
from inventory.model import Node
from inventory.records import Allocation, EventKind, NodeState
from provision import slurm, ssh
from provision.access import Access
from provision.errors import BadRequest, SlurmFailed, SshFailed
from provision.stages.job import DEPLOY_ASKED

_AT_ONCE = 32
_ASK_S = 20.0
_PROCESSES = ("nvidia-smi", "--query-compute-apps=pid,process_name", "--format=csv,noheader")
_NO_SUCH_PROGRAM = 127
_DRAIN = "invoke quarantine --nodes {node} --reason '...', and once its job has ended, run this again"
_DEAF = "where you know that nothing runs there, add --override in-use --reason '...'"


@dataclass(frozen=True, slots=True)
class Use:
    """Why a node counts as in use. `known` False: nobody could be asked, and it may run something.

    `hint` is what leads on, for whoever wanted to touch it.
    """

    reason: str
    detail: str = ""
    known: bool = True
    hint: str = ""


async def look(access: Access, nodes: Sequence[Node]) -> dict[str, Use]:
    """Return which of `nodes` count as in use, each with why.

    Handed out is in use, whatever runs. Slurm is asked where the site has it, whatever the pool;
    else every node that Muster has deployed is asked for itself. Where no answer is to be had a
    node counts as in use if it has served (`has_served`) and its BMC does not say that it is off.
    """
    names = [node.name for node in nodes]
    states, allocations = access.store.nodes(names), access.store.allocations(names)
    found = {node.name: _handed_out(allocations[node.name]) for node in nodes if node.name in allocations}
    asked = [node for node in nodes if node.name not in found]
    told = await (_ask_slurm(asked) if access.site.slurm else _ask_nodes(access, asked, states))
    room = asyncio.Semaphore(_AT_ONCE)

    async def counts(node: Node) -> bool:
        use = told.get(node.name)
        if use is None or use.known:
            return use is not None
        async with room:
            return await _may_run(access, node, states.get(node.name))

    counted = await asyncio.gather(*(counts(node) for node in asked))
    return found | {node.name: told[node.name] for node, yes in zip(asked, counted, strict=True) if yes}


def has_served(access: Access, state: NodeState) -> bool:
    """Whether jobs may have begun on the node that nothing has ended since.

    It is in an admitted pool, or was in one after its last deployment and its last loss of power:
    either ends whatever ran.
    """
    if state.pool in ADMITTED:
        return True
    moves = access.store.events(node=state.name, kinds=[EventKind.POOL], limit=1000)
    admitted = [event.ts for event in moves if event.data.get("to") in ADMITTED]
    if not admitted:
        return False
    asked = access.store.events(node=state.name, kinds=[DEPLOY_ASKED], limit=1)
    ends = [when for when in (state.deployed_at, state.last_power_loss_at, *(e.ts for e in asked)) if when]
    return not ends or admitted[-1] > max(ends)


def _handed_out(allocation: Allocation) -> Use:
    since = f"{allocation.since:%Y-%m-%d %H:%M}Z"
    return Use(
        f"it is allocated to {allocation.name} by {allocation.who}",
        detail=f"since {since}: {allocation.why or 'no reason given'}",
        hint=f"once its job is over: invoke pool.return --nodes {allocation.node}",
    )


async def _may_run(access: Access, node: Node, state: NodeState | None) -> bool:
    """Whether a node that could not be asked may run something: it has served, and has power."""
    if state is None or not has_served(access, state):
        return False
    return not await _is_off(access, node)


async def _is_off(access: Access, node: Node) -> bool:
    """Whether the node's own BMC says that it has no power. A BMC of another machine says nothing."""
    try:
        async with connect(access.bmc(node)) as bmc:
            identity = await bmc.identity()
            if node.serial is not None and identity.serial != node.serial:
                return False
            return await bmc.power_state() is PowerState.OFF
    except (BmcError, SecretMissing):
        return False


async def _ask_slurm(nodes: Sequence[Node]) -> Mapping[str, Use]:
    names = [node.name for node in nodes]
    try:
        answer = await slurm.look(names)
    except SlurmFailed as error:
        return {
            name: Use(f"it cannot be asked for: {error.reason}", known=False, hint=_DEAF) for name in names
        }
    found = {name: Use("Slurm does not know it", known=False, hint=_DEAF) for name in answer.unknown}
    for name, state in answer.busy.items():
        hint = _DRAIN.format(node=name)
        found[name] = Use(f"Slurm says {state}", detail=await slurm.jobs(name), hint=hint)
    return found


async def _ask_nodes(
    access: Access, nodes: Iterable[Node], states: Mapping[str, NodeState]
) -> Mapping[str, Use]:
    room = asyncio.Semaphore(_AT_ONCE)

    async def one(node: Node) -> Use | None:
        async with room:
            return await _ask_node(access, node)

    # What Muster never deployed runs nothing of this site's.
    asked = [node for node in nodes if _is_ours(states.get(node.name))]
    found = await asyncio.gather(*(one(node) for node in asked))
    return {node.name: use for node, use in zip(asked, found, strict=True) if use is not None}


def _is_ours(state: NodeState | None) -> bool:
    return state is not None and (state.deployed_at is not None or state.last_verdict is not None)


async def _ask_node(access: Access, node: Node) -> Use | None:
    try:
        result = await ssh.run(access.ssh(node), list(_PROCESSES), timeout_s=_ASK_S)
    except (SshFailed, BadRequest, SecretMissing) as error:  # BadRequest: its address is not known
        why = error.reason if isinstance(error, SshFailed) else str(error)
        reason = f"it has been in the pool and cannot be asked what runs on it ({why})"
        return Use(reason, known=False, hint=_DEAF)
    if result.status == _NO_SUCH_PROGRAM and not access.profile(node).limit("gpu.count"):
        return None  # no GPU tools, and no GPUs to be busy with
    if result.status != 0:
        return Use(f"nvidia-smi ended with {result.status}: cannot tell what runs", known=False, hint=_DEAF)
    busy = [line for line in result.stdout.decode("utf-8", "replace").splitlines() if line.strip()]
    if not busy:
        return None
    hint = _DRAIN.format(node=node.name)
    return Use(f"{len(busy)} processes use its GPUs", detail="; ".join(busy[:3]), hint=hint)
