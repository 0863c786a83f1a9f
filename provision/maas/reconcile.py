"""Turns disagreements into changes to MAAS, and makes those changes one by one."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from inventory.model import Node, Site
from provision.maas.client import MaasClient
from provision.maas.differences import (
    Comparison,
    Difference,
    DifferenceKind,
    SeenMachine,
    WantedMachine,
    compare,
)
from provision.maas.errors import MaasError
from provision.maas.model import NewMachine


@dataclass(frozen=True, slots=True)
class Create:
    """Enlist a node, without commissioning it."""

    node: str
    new: NewMachine
    groups: Mapping[str, str] = field(default_factory=dict)  # pool and zone
    tags: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Update:
    """Change fields of one machine. `fields` may hold a password and is not shown."""

    node: str
    system_id: str
    what: str  # for people, without secrets
    fields: Mapping[str, str] = field(repr=False)


@dataclass(frozen=True, slots=True)
class Retag:
    """Put tags on a machine and take others off."""

    node: str
    system_id: str
    add: frozenset[str]
    remove: frozenset[str]


Change = Create | Update | Retag


@dataclass(frozen=True, slots=True)
class Plan:
    """What applying would do, and what it leaves to people. The same object is shown and applied."""

    changes: tuple[Change, ...]
    by_hand: tuple[Difference, ...]


@dataclass(frozen=True, slots=True)
class Applied:
    """One change and how it went; `error` is None where MAAS took it."""

    change: Change
    error: MaasError | None = None


def wanted_machines(
    site: Site,
    *,
    password: Callable[[Node], str | None],
    pools: Mapping[str, str] | None = None,
    tags: Callable[[Node], frozenset[str]] = lambda _node: frozenset(),
) -> tuple[WantedMachine, ...]:
    """Return the site's nodes as MAAS should have them.

    `password` gives a BMC's password, or None where it is not to be compared; `pools` maps a node to
    the MAAS pool that it should be in.
    """
    zones = {rack.name: rack.zone for rack in site.racks}
    return tuple(
        WantedMachine(
            name=node.name,
            macs=node.macs,
            serial=node.serial,
            power=_power(site, node, password(node)),
            architecture=node.architecture,
            pool=(pools or {}).get(node.name),
            zone=zones[node.rack],
            tags=tags(node),
        )
        for node in site.nodes
    )


async def look(maas: MaasClient) -> tuple[SeenMachine, ...]:
    """Read all machines and how their BMCs are reached. Two calls, however many machines there are."""
    machines = await maas.machines()
    power = await maas.all_power_parameters()
    return tuple(SeenMachine(machine, power.get(machine.system_id)) for machine in machines)


async def compare_with_maas(
    maas: MaasClient, wanted: Sequence[WantedMachine], *, managed_tags: Sequence[str] = ()
) -> Comparison:
    """Look, and list every disagreement."""
    return compare(wanted, await look(maas), managed_tags=managed_tags)


def plan(comparison: Comparison, wanted: Sequence[WantedMachine]) -> Plan:
    """Return the changes that make MAAS agree, and the differences that need a person."""
    by_name = {node.name: node for node in wanted}
    by_hand = tuple(difference for difference in comparison.differences if difference.by_hand)
    changes: list[Change] = []
    for difference in comparison.differences:
        if difference.by_hand:
            continue
        node = by_name[difference.node]
        if difference.kind is DifferenceKind.MISSING:
            changes.append(_create(node))
        elif difference.kind is DifferenceKind.WRONG_TAGS:
            changes.append(_retag(node, comparison))
        else:
            changes.append(_update(node, difference))
    return Plan((*_out_of_the_way(comparison), *changes), by_hand)


async def apply(maas: MaasClient, plan: Plan, *, on_change: Callable[[Applied], None]) -> tuple[Applied, ...]:
    """Make the changes. One that MAAS refuses does not stop the others; each is told as it is done.

    Raises MaasError where a pool, a zone or a tag that the changes need cannot be made.
    """
    await _make_groups(maas, plan)
    done: list[Applied] = []
    for change in plan.changes:
        try:
            await _make(maas, change)
            applied = Applied(change)
        except MaasError as exc:
            applied = Applied(change, exc)
        on_change(applied)
        done.append(applied)
    return tuple(done)


def _power(site: Site, node: Node, password: str | None) -> dict[str, str]:
    found = {"power_address": node.bmc.host, "power_user": site.credentials[node.bmc.credential].username}
    return found if password is None else found | {"power_pass": password}


def _out_of_the_way(comparison: Comparison) -> list[Update]:
    """Give a passing name to each machine that gets a name which another machine still has.

    Two machines whose names were swapped could not be renamed one after the other.
    """
    renamed = [
        difference
        for difference in comparison.differences
        if difference.kind is DifferenceKind.RENAMED and not difference.by_hand
    ]
    return [
        Update(
            difference.node,
            difference.system_id or "",
            f"{difference.kind}: {difference.found} -> {difference.system_id}-renamed, for a moment",
            {"hostname": f"{difference.system_id}-renamed"},
        )
        for difference in renamed
        if difference.wanted in comparison.hostnames
    ]


def _create(node: WantedMachine) -> Create:
    new = NewMachine(
        hostname=node.name,
        macs=node.macs,
        architecture=node.architecture,
        power_type=node.power_type or "ipmi",
        power=node.power,
    )
    groups = {name: value for name, value in (("pool", node.pool), ("zone", node.zone)) if value}
    return Create(node.name, new, groups, node.tags)


def _retag(node: WantedMachine, comparison: Comparison) -> Retag:
    machine = comparison.matched[node.name]
    found = frozenset(machine.tags) & comparison.managed_tags
    return Retag(node.name, machine.system_id, node.tags - found, found - node.tags)


def _update(node: WantedMachine, difference: Difference) -> Update:
    fields = {
        DifferenceKind.RENAMED: {"hostname": node.name},
        DifferenceKind.WRONG_POOL: {"pool": node.pool or ""},
        DifferenceKind.WRONG_ZONE: {"zone": node.zone or ""},
        DifferenceKind.WRONG_POWER: {
            **({"power_type": node.power_type} if node.power_type else {}),
            **{f"power_parameters_{key}": value for key, value in node.power.items()},
        },
    }[difference.kind]
    what = f"{difference.kind}: {difference.found} -> {difference.wanted}"
    return Update(node.name, difference.system_id or "", what, fields)


async def _make_groups(maas: MaasClient, plan: Plan) -> None:
    """Make the pools, zones and tags that the changes name; MAAS refuses unknown ones."""
    forms = [change.fields for change in plan.changes if isinstance(change, Update)]
    creations = [change for change in plan.changes if isinstance(change, Create)]
    retags = [change for change in plan.changes if isinstance(change, Retag)]
    forms += [creation.groups for creation in creations]
    for pool in sorted({form["pool"] for form in forms if "pool" in form}):
        await maas.ensure_pool(pool)
    for zone in sorted({form["zone"] for form in forms if "zone" in form}):
        await maas.ensure_zone(zone)
    tags = {tag for one in retags for tag in one.add} | {tag for one in creations for tag in one.tags}
    for tag in sorted(tags):
        await maas.ensure_tag(tag)


async def _make(maas: MaasClient, change: Change) -> None:
    match change:
        case Create(new=new, groups=groups, tags=tags):
            made = await maas.create(new, commission=False)
            if groups:  # creation takes neither pool nor zone
                await maas.update(made.system_id, **groups)
            for tag in sorted(tags):
                await maas.tag_nodes(tag, add=[made.system_id])
        case Update(system_id=system_id, fields=fields):
            await maas.update(system_id, **fields)
        case Retag(system_id=system_id, add=add, remove=remove):
            for tag in sorted(add):
                await maas.tag_nodes(tag, add=[system_id])
            for tag in sorted(remove):
                await maas.tag_nodes(tag, remove=[system_id])
