"""Node sets: the one place that knows their syntax (ClusterShell's)."""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

from ClusterShell.NodeSet import RESOLVER_NOGROUP, NodeSet, NodeSetException
from ClusterShell.NodeUtils import GroupResolver, GroupResolverError, GroupSource

from inventory.errors import EmptySelection, NodeSetSyntax, UnknownGroup, UnknownNode, UnknownRack
from inventory.model import Node, Pool, Site

# ClusterShell expands a range while it reads it; a slip of the finger must not eat the memory.
_WIDEST_RANGE = 100_000
_OPERATOR = re.compile(r"[,!&^](?![^\[]*\])")
_RANGE = re.compile(r"\[([^\]]*)\]")


class NodeSets:
    """Selects nodes of a site by name, rack and pool."""

    def __init__(self, site: Site, pools: Callable[[], Mapping[str, str | None]]) -> None:
        """`pools` tells the pool of each node at the moment of asking; None or absent: in no pool."""
        self._site = site
        self._pools = pools

    def select(self, nodes: str | None, racks: Sequence[str], pool: str | None) -> tuple[Node, ...]:
        """Return the nodes that every given selector names, in the order of the site files.

        Raises NodeSetSyntax, UnknownNode, UnknownGroup, UnknownRack, and EmptySelection where
        the selectors leave nothing or none was given.
        """
        picked: list[set[str]] = []
        if nodes is not None:
            picked.append(self._named(nodes))
        if racks:
            picked.append({node.name for rack in racks for node in self._rack(rack)})
        if pool is not None:
            picked.append(self._pooled(pool))
        names = set.intersection(*picked) if picked else set()
        if not names:
            raise EmptySelection(_selectors(nodes, racks, pool))
        return tuple(node for node in self._site.nodes if node.name in names)

    def _rack(self, name: str) -> tuple[Node, ...]:
        racks = {rack.name: rack.nodes for rack in self._site.racks}
        if name not in racks:
            raise UnknownRack(name, nearest(name, racks), fold(racks))
        return racks[name]

    def _pooled(self, pool: str) -> set[str]:
        if pool not in set(Pool):
            raise UnknownGroup(f"pool:{pool}", nearest(pool, Pool), ", ".join(Pool))
        return set(self._pool_members().get(pool, ()))

    def _pool_members(self) -> dict[str, list[str]]:
        """The nodes of every pool; the store may remember nodes that the files no longer describe."""
        members: dict[str, list[str]] = {pool: [] for pool in Pool}
        pools = self._pools()
        for node in self._site.nodes:
            pool = pools.get(node.name)
            if pool is not None:
                members[pool].append(node.name)
        return members

    def _named(self, text: str) -> set[str]:
        resolver = self._resolver()
        known = {node.name for node in self._site.nodes}
        # Each operand by itself: ClusterShell would let `@r1!r1-n99` pass and exclude nobody.
        for operand in _operands(text):
            members = _parse(operand, text, resolver)
            unknown = sorted(members - known)
            if unknown:
                raise UnknownNode(fold(unknown), nearest(unknown[0], known), self._neighbours(unknown[0]))
            if not members and not operand.startswith("@"):
                raise UnknownNode(operand, nearest(operand, known))
        return _parse(text, text, resolver)

    def _neighbours(self, name: str) -> str:
        """The nodes of the rack that looks most like the one of `name`, folded."""
        close = nearest(name, [node.name for node in self._site.nodes])
        for rack in self._site.racks:
            if any(node.name == close for node in rack.nodes):
                return fold(node.name for node in rack.nodes)
        return ""

    def _resolver(self) -> GroupResolver:
        everyone = ",".join(node.name for node in self._site.nodes)
        racks = {rack.name: ",".join(node.name for node in rack.nodes) for rack in self._site.racks}
        profiles: dict[str, list[str]] = {profile: [] for profile in self._site.profiles}
        for node in self._site.nodes:
            profiles.setdefault(node.profile, []).append(node.name)
        resolver = GroupResolver(_Groups("rack", racks, everyone))
        resolver.add_source(_Groups("pool", _joined(self._pool_members())))
        resolver.add_source(_Groups("profile", _joined(profiles)))
        return resolver


def fold(names: Iterable[str]) -> str:
    """Return `names` as one node set: `r1-n[01-04,06]`. Empty in, empty out."""
    return str(NodeSet.fromlist(sorted(set(names)), resolver=RESOLVER_NOGROUP))


def expand(pattern: str) -> tuple[str, ...]:
    """Return the names that a pattern without groups stands for, in its order. Raises NodeSetSyntax."""
    _refuse_wide_ranges(pattern)
    try:
        return tuple(NodeSet(pattern, resolver=RESOLVER_NOGROUP))
    except NodeSetException as exc:
        raise NodeSetSyntax(pattern, str(exc)) from exc


def nearest(name: str, known: Iterable[str]) -> str | None:
    """Return the known name that looks most like `name`, or None where nothing does."""
    found = difflib.get_close_matches(name, sorted(known), n=1, cutoff=0.5)
    return found[0] if found else None


class _Groups(GroupSource):
    """A group source that refuses a group it does not have; ClusterShell's own is silently empty."""

    def resolv_map(self, group: str) -> str:
        found = self._members.get(group)
        if found is None:
            label = group if self.name == "rack" else f"{self.name}:{group}"
            raise UnknownGroup(f"@{label}", self._closest(group), ", ".join(sorted(self._members)))
        return found

    def __init__(self, name: str, members: Mapping[str, str], everyone: str | None = None) -> None:
        joined = everyone if everyone is not None else ",".join(filter(None, members.values()))
        super().__init__(name, groups=dict(members), allgroups=joined)
        self._members = dict(members)

    def _closest(self, group: str) -> str | None:
        close = nearest(group, self._members)
        if close is None:
            return None
        return f"@{close}" if self.name == "rack" else f"@{self.name}:{close}"


def _joined(groups: Mapping[str, Sequence[str]]) -> dict[str, str]:
    return {name: ",".join(members) for name, members in groups.items()}


def _operands(text: str) -> Iterator[str]:
    for part in _OPERATOR.split(text):
        operand = part.strip()
        if not operand:
            raise NodeSetSyntax(text, "an operator needs a node set on each side")
        if operand.startswith("@@"):
            raise NodeSetSyntax(text, "a group begins with one @")
        yield operand


def _parse(operand: str, text: str, resolver: GroupResolver) -> set[str]:
    _refuse_wide_ranges(operand)
    try:
        return set(NodeSet(operand, resolver=resolver))
    except NodeSetException as exc:
        raise NodeSetSyntax(text, str(exc)) from exc
    except GroupResolverError as exc:
        source = operand.removeprefix("@").partition(":")[0]
        close = nearest(source, _SOURCES)
        there = ", ".join(f"@{known}:" for known in _SOURCES)
        raise UnknownGroup(f"@{source}:", close and f"@{close}:", there) from exc


_SOURCES = ("rack", "pool", "profile")


def _refuse_wide_ranges(text: str) -> None:
    size = 1
    for inside in _RANGE.findall(text):
        count = 0
        for piece in inside.split(","):
            ends = [end.strip() for end in piece.partition("/")[0].split("-")]
            if all(end.isdigit() and len(end) < 19 for end in ends):
                count += abs(int(ends[-1]) - int(ends[0])) + 1
            elif any(len(end) >= 19 for end in ends):
                count = _WIDEST_RANGE + 1
        size *= max(count, 1)
        if size > _WIDEST_RANGE:
            raise NodeSetSyntax(text, f"it names more than {_WIDEST_RANGE} nodes")


def _selectors(nodes: str | None, racks: Sequence[str], pool: str | None) -> list[str]:
    said = [] if nodes is None else [f"--nodes {nodes}"]
    said += [f"--rack {rack}" for rack in racks]
    return said if pool is None else [*said, f"--pool {pool}"]
