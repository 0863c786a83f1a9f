"""Hands nodes out under a name, and takes them back."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from inventory.errors import NotFree
from inventory.model import Node
from inventory.nodeset import nearest
from inventory.records import Allocation
from provision.access import Access
from provision.errors import BadRequest, NameTaken, NotEnough, UnknownAllocation
from provision.guards import Consent
from provision.pools import candidates, files
from provision.pools.candidates import Candidate
from provision.pools.choosing import Short, Wanted, choose

_TRIES = 5  # others hand out nodes too: choose anew when one is taken meanwhile


@dataclass(frozen=True, slots=True)
class HandedOut:
    """The nodes of an allocation, in the order of the hostfile. `already`: it was there before."""

    name: str
    nodes: tuple[Node, ...]
    ranks: tuple[Candidate, ...]
    already: bool


async def plan(access: Access, wanted: Wanted, among: Sequence[Node]) -> tuple[Candidate, ...]:
    """Choose the nodes that `allocate` would hand out. Raises NotEnough, SlurmFailed."""
    found = await candidates.find(access, among)
    chosen = choose(found.free, wanted)
    if isinstance(chosen, Short):
        where = f" {chosen.where}" if chosen.where else ""
        raise NotEnough(
            wanted.count, f"{chosen.found} free and proven{where}; not free: {found.why() or 'none'}",
            "invoke pool.status", what="reliable",
        )  # fmt: skip
    order = {node.name: place for place, node in enumerate(access.site.nodes)}
    # Neighbours in a rack are neighbours in the hostfile.
    return tuple(sorted(chosen, key=lambda one: order[one.name]))


async def allocate(
    access: Access, name: str, wanted: Wanted, among: Sequence[Node], *, reason: str
) -> HandedOut:
    """Hand out nodes under `name`; a name that is there gives the nodes it has.

    Raises NotEnough, NameTaken, SlurmFailed, BadRequest.
    """
    there = existing(access, name, wanted.count)
    if there is not None:
        return there
    if wanted.count < 1:
        raise BadRequest("--count", "it needs how many nodes", "for example --count 8")
    for attempt in range(_TRIES):
        chosen = await plan(access, wanted, among)
        try:
            names = [one.name for one in chosen]
            access.store.allocate(name, names, who=access.settings.who, why=reason or None)
        except NotFree:
            if attempt == _TRIES - 1:
                raise
            continue
        break
    return HandedOut(name, tuple(one.node for one in chosen), chosen, already=False)


def existing(access: Access, name: str, count: int) -> HandedOut | None:
    """Return the allocation called `name`, or None. Raises NameTaken, or BadRequest for another count."""
    files.check_name(name)
    allocations = access.store.allocations()
    own = [one for one in allocations.values() if one.name == name]
    if not own:
        return None
    if own[0].who != access.settings.who:
        raise NameTaken(name, own[0].who)
    if count not in (0, len(own)):
        raise BadRequest(
            "--count", f"{name} is there already, with {len(own)} and not {count}",
            f"invoke pool.return --name {name}, or take another name",
        )  # fmt: skip
    return HandedOut(name, files.members(access.site, allocations, name), (), already=True)


def new_name(access: Access, now: datetime | None = None) -> str:
    """Return a name that no allocation has."""
    taken = {one.name for one in access.store.allocations().values()}
    stem = f"a-{now or datetime.now(UTC):%m%d-%H%M%S}"
    names = (stem if not number else f"{stem}-{number}" for number in range(len(taken) + 1))
    return next(name for name in names if name not in taken)


def members_of(access: Access, name: str) -> tuple[Allocation, ...]:
    """Return the allocated nodes of `name`. Raises UnknownAllocation."""
    allocations = access.store.allocations()
    own = tuple(one for one in allocations.values() if one.name == name)
    if not own:
        known = {one.name for one in allocations.values()}
        raise UnknownAllocation(name, nearest(name, known))
    return own


def give_back(access: Access, consent: Consent) -> tuple[str, ...]:
    """Take the nodes back; they stay in their pools. Returns those that were allocated."""
    return access.store.give_back(consent.nodes, by=consent.who, why=consent.reason)
