"""Compares what the site files want with what MAAS has. Pure: no call is made here."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum

from provision.maas.model import Machine, PowerParameters

# What a site file says of a BMC; everything else of MAAS's power parameters is MAAS's own affair.
_POWER_KEYS = ("power_address", "power_user", "power_pass")
_SECRET_KEYS = frozenset({"power_pass", "k_g"})


class DifferenceKind(StrEnum):
    """Every way in which site files and MAAS can disagree."""

    MISSING = "missing"  # MAAS has no machine for the node
    EXTRA = "extra"  # MAAS has a machine that the site files do not know
    RENAMED = "renamed"
    NAME_TAKEN = "name-taken"  # MAAS gives the node's name to other hardware
    AMBIGUOUS = "ambiguous"  # MAC, BMC address and serial point to different machines
    DUPLICATE_BMC = "duplicate-bmc"  # several machines in MAAS share one BMC address
    WRONG_MAC = "wrong-mac"
    WRONG_POWER = "wrong-power"
    WRONG_POOL = "wrong-pool"
    WRONG_ZONE = "wrong-zone"
    WRONG_TAGS = "wrong-tags"


# What a person must look at: MAAS or the site files may be the one that is wrong.
BY_HAND = frozenset(
    {
        DifferenceKind.EXTRA,
        DifferenceKind.NAME_TAKEN,
        DifferenceKind.AMBIGUOUS,
        DifferenceKind.DUPLICATE_BMC,
        DifferenceKind.WRONG_MAC,
    }
)


@dataclass(frozen=True, slots=True)
class WantedMachine:
    """One node as MAAS should have it. None: the site does not say, so it is not compared.

    `power` are MAAS's power parameters as far as the site knows them; the password is not shown.
    """

    name: str
    macs: tuple[str, ...] = ()
    serial: str | None = None
    power_type: str | None = None
    power: Mapping[str, str] = field(default_factory=dict, repr=False)
    architecture: str = "amd64/generic"
    pool: str | None = None
    zone: str | None = None
    tags: frozenset[str] = frozenset()

    @property
    def bmc(self) -> str:
        """The BMC's address, or an empty text."""
        return self.power.get("power_address", "")


@dataclass(frozen=True, slots=True)
class SeenMachine:
    """One machine of MAAS with how its BMC is reached, where that could be read."""

    machine: Machine
    power: PowerParameters | None = None

    @property
    def bmc(self) -> str:
        """The BMC's address, or an empty text."""
        return self.power.address if self.power else ""


@dataclass(frozen=True, slots=True)
class Difference:
    """One disagreement. `wanted` and `found` are for people; neither holds a secret."""

    kind: DifferenceKind
    node: str  # the node's name, or MAAS's host name for what the site does not know
    system_id: str | None
    wanted: str
    found: str
    locked: bool = False  # MAAS refuses every change to a locked machine

    @property
    def by_hand(self) -> bool:
        """True where applying cannot know what is right, or MAAS would refuse."""
        return self.kind in BY_HAND or self.locked


@dataclass(frozen=True, slots=True)
class Comparison:
    """All disagreements, and which machine is which node."""

    differences: tuple[Difference, ...]
    matched: Mapping[str, Machine]  # by node
    hostnames: frozenset[str] = frozenset()  # all that MAAS uses
    managed_tags: frozenset[str] = frozenset()


def compare(
    wanted: Sequence[WantedMachine], seen: Sequence[SeenMachine], *, managed_tags: Iterable[str] = ()
) -> Comparison:
    """Match nodes and machines by MAC, BMC address and serial, and list every disagreement.

    Only tags in `managed_tags` are compared: others in MAAS are other people's.
    """
    index = _Index(seen)
    ours = frozenset(managed_tags)
    found: list[Difference] = []
    matched: dict[str, Machine] = {}
    spoken_of: set[str] = set()
    for node in wanted:
        candidates = index.candidates(node)
        spoken_of |= {one.machine.system_id for one in candidates}
        if len(candidates) == 1:
            matched[node.name] = candidates[0].machine
            found += _disagreements(node, candidates[0], ours)
        else:
            found.append(_unmatched(node, candidates, index))
    found += _duplicates(seen)
    found += [
        _difference(DifferenceKind.EXTRA, one.machine.hostname, one.machine, "not in the site files", one.bmc)
        for one in seen
        if one.machine.system_id not in spoken_of
    ]
    return Comparison(tuple(found), matched, frozenset(index.by_name), ours)


class _Index:
    """Machines by everything that identifies hardware."""

    def __init__(self, seen: Sequence[SeenMachine]) -> None:
        self._by_key: dict[tuple[str, str], list[SeenMachine]] = defaultdict(list)
        self.by_name = {one.machine.hostname: one for one in seen}
        for one in seen:
            keys = [("mac", mac) for mac in one.machine.macs]
            keys += [("bmc", one.bmc)] if one.bmc else []
            keys += [("serial", one.machine.serial)] if one.machine.serial else []
            for key in keys:
                self._by_key[key].append(one)

    def candidates(self, node: WantedMachine) -> list[SeenMachine]:
        """Return the machines that any of the node's identifiers points to."""
        keys = [("mac", mac) for mac in node.macs]
        keys += [("bmc", node.bmc)] if node.bmc else []
        keys += [("serial", node.serial)] if node.serial else []
        found = {one.machine.system_id: one for key in keys for one in self._by_key.get(key, ())}
        return list(found.values())


def _unmatched(node: WantedMachine, candidates: list[SeenMachine], index: _Index) -> Difference:
    wanted = _identity(node.macs, node.bmc, node.serial)
    if candidates:
        described = "; ".join(_described(one) for one in candidates)
        return Difference(DifferenceKind.AMBIGUOUS, node.name, None, wanted, described)
    namesake = index.by_name.get(node.name)
    if namesake is not None:
        return _difference(
            DifferenceKind.NAME_TAKEN, node.name, namesake.machine, wanted, _described(namesake)
        )
    return Difference(DifferenceKind.MISSING, node.name, None, wanted, "no machine")


def _disagreements(
    node: WantedMachine, seen: SeenMachine, managed_tags: frozenset[str]
) -> Iterable[Difference]:
    machine = seen.machine

    def differs(kind: DifferenceKind, wanted: str, found: str) -> Difference:
        return _difference(kind, node.name, machine, wanted, found)

    if machine.hostname != node.name:
        yield differs(DifferenceKind.RENAMED, node.name, machine.hostname)
    if not set(node.macs) <= set(machine.macs):
        yield differs(DifferenceKind.WRONG_MAC, ", ".join(node.macs), ", ".join(machine.macs) or "none")
    power = list(_wrong_power(node, seen))
    if power:
        wanted = ", ".join(f"{key} {value}" for key, value, _ in power)
        yield differs(
            DifferenceKind.WRONG_POWER, wanted, ", ".join(f"{key} {value}" for key, _, value in power)
        )
    if node.pool is not None and machine.pool != node.pool:
        yield differs(DifferenceKind.WRONG_POOL, node.pool, machine.pool)
    if node.zone is not None and machine.zone != node.zone:
        yield differs(DifferenceKind.WRONG_ZONE, node.zone, machine.zone)
    tags = frozenset(machine.tags) & managed_tags
    if tags != node.tags:
        yield differs(DifferenceKind.WRONG_TAGS, _joined(node.tags), _joined(tags))


def _wrong_power(node: WantedMachine, seen: SeenMachine) -> Iterable[tuple[str, str, str]]:
    if node.power_type is not None and seen.machine.power_type != node.power_type:
        yield ("power_type", node.power_type, seen.machine.power_type or "none")
    if seen.power is None:
        return
    for key in _POWER_KEYS:
        wanted, found = node.power.get(key), seen.power.values.get(key, "")
        if wanted is not None and wanted != found:
            yield (key, "differs", "differs") if key in _SECRET_KEYS else (key, wanted, found or "none")


def _duplicates(seen: Sequence[SeenMachine]) -> Iterable[Difference]:
    by_bmc: dict[str, list[SeenMachine]] = defaultdict(list)
    for one in seen:
        if one.bmc:
            by_bmc[one.bmc].append(one)
    for bmc, sharing in sorted(by_bmc.items()):
        if len(sharing) > 1:
            names = ", ".join(f"{one.machine.hostname} ({one.machine.system_id})" for one in sharing)
            first = sharing[0].machine
            yield _difference(
                DifferenceKind.DUPLICATE_BMC, first.hostname, first, f"one machine at {bmc}", names
            )


def _difference(kind: DifferenceKind, node: str, machine: Machine, wanted: str, found: str) -> Difference:
    return Difference(kind, node, machine.system_id, wanted, found, locked=machine.locked)


def _joined(tags: frozenset[str]) -> str:
    return ", ".join(sorted(tags)) or "none"


def _described(one: SeenMachine) -> str:
    identity = _identity(one.machine.macs, one.bmc, one.machine.serial)
    return f"{one.machine.hostname} ({one.machine.system_id}) with {identity}"


def _identity(macs: Sequence[str], bmc: str, serial: str | None) -> str:
    parts = [
        f"MAC {macs[0]}" if macs else "",
        f"BMC {bmc}" if bmc else "",
        f"serial {serial}" if serial else "",
    ]
    return ", ".join(part for part in parts if part) or "nothing that identifies it"
