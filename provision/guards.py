"""What stands between an operator and an accident. A destructive function takes a Consent, and only
this module makes one: forgetting to ask is a type error.

Guards that yield to a named override: in-use, blast-radius, serves-others. The others never do.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from bmc import fleet
from bmc.capability import BmcTarget
from bmc.drivers import connect
from inventory.model import Node, Pool
from provision import usage
from provision.access import Access
from provision.errors import BadRequest, Declined, Refused

OVERRIDABLE: Final = ("in-use", "blast-radius", "serves-others")
_TYPED_ABOVE = 4
_MAKER: Final = object()


@dataclass(frozen=True, slots=True)
class Consent:
    """Proof that the guards were asked and a human, or a script with --yes, agreed."""

    nodes: tuple[str, ...]
    action: str
    who: str
    reason: str
    overridden: str
    _maker: object = None

    def __post_init__(self) -> None:
        if self._maker is not _MAKER:
            raise TypeError("a Consent is made by guards.ask only")


@dataclass(frozen=True, slots=True)
class Asking:
    """How the operator can be asked. `typed` reads one line, or is None where nobody is there."""

    yes: bool
    typed: Callable[[str], str] | None
    override: str = ""
    reason: str = ""


def check_override(asking: Asking) -> None:
    """Raise BadRequest for an override that does not exist, or comes without a reason."""
    if asking.override and asking.override not in OVERRIDABLE:
        raise BadRequest(
            "--override", f"{asking.override} cannot be overridden", f"one of {', '.join(OVERRIDABLE)}"
        )
    if asking.override and not asking.reason.strip():
        raise BadRequest("--override", "it needs a reason", "add --reason '...'")


async def guard(access: Access, nodes: Sequence[Node], *, action: str, asking: Asking) -> None:
    """Ask every guard about every node. Raises Refused for the first that says no.

    A guard named by `--override` is journalled and passed; no other guard is.
    """
    check_override(asking)
    for check in (_serves_others, _in_use):
        found = await check(access, nodes)
        for refusal in (found[node.name] for node in nodes if node.name in found):
            if refusal.guard != asking.override:
                raise refusal
            access.store.event(
                refusal.node,
                "override",
                run=None,
                actor=access.settings.who,
                message=f"{action}: guard {refusal.guard} overridden: {asking.reason} ({refusal.reason})",
            )
    too_many = _blast_radius(access, nodes)
    if too_many is not None and too_many.guard != asking.override:
        raise too_many


def ask(access: Access, nodes: Sequence[Node], *, action: str, plan: str, asking: Asking) -> Consent:
    """Return the operator's consent, or raise Declined. `plan` is what will happen, in one sentence.

    Over four nodes the rack's name (or the number of nodes, where they are of several racks) must
    be typed; up to four, `yes`. Without a terminal and without --yes it is declined.
    """
    names = tuple(node.name for node in nodes)
    if not asking.yes:
        if asking.typed is None:
            raise Declined(f"{action} of {_nodes(names)} needs --yes where there is no terminal to ask at")
        racks = {node.rack for node in nodes}
        word = "yes" if len(names) <= _TYPED_ABOVE else (racks.pop() if len(racks) == 1 else str(len(names)))
        if asking.typed(f"{plan}  type {word} to go on: ").strip() != word:
            raise Declined(f"{action} of {_nodes(names)} was not confirmed")
    return Consent(names, action, access.settings.who, asking.reason, asking.override, _MAKER)


async def in_use(access: Access, node: Node) -> Refused | None:
    """Return the refusal where something uses the node, or may."""
    return (await _in_use(access, [node])).get(node.name)


async def _in_use(access: Access, nodes: Sequence[Node]) -> dict[str, Refused]:
    found = await usage.look(access, nodes)
    return {
        name: Refused("in-use", name, use.reason, detail=use.detail, hint=use.hint)
        for name, use in found.items()
    }


async def identity(access: Access, nodes: Sequence[Node]) -> None:
    """Raise Refused where another machine than the inventory's answers at a node's BMC address.

    A BMC that does not answer is no refusal: whoever acts on it fails, and says why.
    """

    async def serial(target: BmcTarget) -> str | None:
        async with connect(target) as bmc:
            return (await bmc.identity()).serial

    known = [node for node in nodes if node.serial is not None]
    told = await fleet.each([access.bmc(node) for node in known], serial)
    for node in known:
        found = told[node.name]
        if found.ok and found.value != node.serial:
            reason = f"BMC serial {found.value or 'cannot be read'}, inventory says {node.serial}"
            why = "a cable was moved, or the address is stale"
            raise Refused("identity", node.name, reason, detail=why)


async def _serves_others(_access: Access, nodes: Sequence[Node]) -> dict[str, Refused]:
    return {
        node.name: Refused("serves-others", node.name, f"it serves other nodes: {', '.join(node.roles)}")
        for node in nodes
        if node.roles
    }


def _blast_radius(access: Access, nodes: Sequence[Node]) -> Refused | None:
    """More than one rack of reliable nodes, or more than a tenth of the reliable pool, at once."""
    reliable = {name for name, state in access.store.nodes().items() if state.pool == Pool.RELIABLE}
    hit = [node for node in nodes if node.name in reliable]
    racks = {node.rack for node in hit}
    limit = max(4, len(reliable) // 10)
    if len(racks) <= 1 and len(hit) <= limit:
        return None
    reason = f"{len(hit)} of {len(reliable)} reliable nodes in {len(racks)} racks at once"
    return Refused("blast-radius", nodes[0].name if nodes else "-", reason)


def _nodes(names: Sequence[str]) -> str:
    return "1 node" if len(names) == 1 else f"{len(names)} nodes"
