"""What a run will do, as a value: printed by --dry-run, and executed as it stands."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from inventory.admission import ADMITTED, HELD
from inventory.model import Node, Pool, Stage
from inventory.records import AUTOMATION, Allocation, NodeState
from provision import flow, usage
from provision.access import Access
from provision.stages.job import Options
from provision.usage import Use

_SAYS = {
    Stage.REACHABLE: "log in to the BMC, compare its serial",
    Stage.ENLISTED: "machine in MAAS",
    Stage.COMMISSIONED: "power on, PXE, MAAS looks it over",
    flow.RELEASE: "give the machine back, POWERS OFF",
    Stage.DEPLOYED: "WIPES DISKS, {image}",
    Stage.CONFIGURED: "{playbook}",
    Stage.VERIFIED: "the gate",
    flow.ADMIT: "join the reliable pool",
}


@dataclass(frozen=True, slots=True)
class LeftOut:
    """A node that the run does not touch, why, and what would change that."""

    node: str
    cause: str
    reason: str
    next: str


@dataclass(frozen=True, slots=True)
class Action:
    """One step for some nodes."""

    step: str
    nodes: tuple[str, ...]
    what: str


@dataclass(frozen=True, slots=True)
class Plan:
    """A run before it runs. `already` need nothing; `nodes` take part."""

    kind: str
    options: Options
    nodes: tuple[Node, ...]
    already: tuple[str, ...]
    left_out: tuple[LeftOut, ...]
    actions: tuple[Action, ...]

    @property
    def names(self) -> tuple[str, ...]:
        """The nodes that take part."""
        return tuple(node.name for node in self.nodes)

    @property
    def wipes(self) -> tuple[str, ...]:
        """The nodes whose disks may be wiped."""
        return next((action.nodes for action in self.actions if action.step == Stage.DEPLOYED), ())


async def plan_bringup(access: Access, nodes: Sequence[Node], options: Options) -> Plan:
    """Plan a bring-up: nodes already admitted need nothing; those held by a human or in use stay out.

    A node that cannot be asked what it runs takes part; its stages ask again before they touch it.
    """
    take, already, left_out = [], [], []
    states = access.store.nodes()
    for node in nodes:
        state = states.get(node.name) or NodeState(node.name)
        held = held_by_human(state)
        if held is not None:
            left_out.append(held)
        elif state.pool in ADMITTED:
            already.append(node.name)
        else:
            take.append(node)
    allocations = access.store.allocations()
    uses = {name: use for name, use in (await usage.look(access, take)).items() if use.known}
    for name, use in uses.items():
        left_out.append(_handed_out(allocations[name]) if name in allocations else _in_use(name, use))
    take = [node for node in take if node.name not in uses]
    order = {node.name: place for place, node in enumerate(nodes)}
    left_out.sort(key=lambda entry: order[entry.node])
    return _plan("bringup", access, options, take, already, left_out)


def plan_reimage(access: Access, nodes: Sequence[Node], options: Options) -> Plan:
    """Plan a re-image. A node held for repair takes part: that is what it is for; retired ones stay out."""
    take, left_out = [], []
    for node in nodes:
        state = access.store.node(node.name)
        if state.pool == Pool.RETIRED:
            next_step = f"invoke release --nodes {node.name} --reason '...'"
            left_out.append(LeftOut(node.name, "retired", state.pool_why or "", next_step))
        else:
            take.append(node)
    return _plan("reimage", access, options, take, [], left_out)


def held_by_human(state: NodeState, now: datetime | None = None) -> LeftOut | None:
    """Return why a human's hold keeps the node out, or None where there is none."""
    if state.pool not in HELD or state.pool_by in (None, AUTOMATION):
        return None
    since = ""
    if state.pool_since is not None:
        days = ((now or datetime.now(UTC)) - state.pool_since).days
        since = f" {days} d ago" if days else " today"
    reason = f'by {state.pool_by}{since}: "{state.pool_why or ""}"'
    next_step = f"invoke release --nodes {state.name} --reason '...'"
    return LeftOut(state.name, str(state.pool), reason, next_step)


def _handed_out(allocation: Allocation) -> LeftOut:
    """Return why a node stays out that left the pool under a job: the job may still run on it."""
    name = allocation.node
    next_step = f"invoke pool.replace --nodes {name} --reason '...', or pool.return --nodes {name}"
    return LeftOut(name, "in-use", f"allocated to {allocation.name} by {allocation.who}", next_step)


def _in_use(name: str, use: Use) -> LeftOut:
    reason = use.reason + (f": {use.detail}" if use.detail else "")
    return LeftOut(name, "in-use", reason, "wait until it has ended, then run this again")


def _plan(
    kind: str,
    access: Access,
    options: Options,
    take: Sequence[Node],
    already: Sequence[str],
    left_out: Sequence[LeftOut],
) -> Plan:
    actions = []
    for step in flow.way(options):
        if take:
            what = _SAYS[step.name].format(
                image=", ".join(sorted({options.image or access.profile(node).os_image for node in take})),
                playbook=", ".join(sorted({access.profile(node).playbook for node in take})),
            )
            actions.append(Action(step.name, tuple(node.name for node in take), what))
    return Plan(kind, options, tuple(take), tuple(already), tuple(left_out), tuple(actions))
