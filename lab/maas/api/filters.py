"""Which machines a list or an allocation means."""

from __future__ import annotations

from collections.abc import Callable

from lab.maas.api.form import Form
from lab.maas.errors import Refusal
from lab.maas.model.machine import Machine
from lab.maas.model.region import Region
from lab.maas.model.status import Status

Test = Callable[[Machine], bool]
Problems = dict[str, list[str]]

_STATUS_NAMES = {one.name.lower(): one for one in Status}
LIST_FIELDS = frozenset({
    "hostname", "mac_address", "id", "zone", "not_in_zone", "pool", "not_in_pool", "tags", "not_tags",
    "status", "domain", "agent_name", "description", "owner", "power_state", "arch", "system_id", "name",
})  # fmt: skip
ALLOCATE_FIELDS = frozenset({
    "system_id", "name", "zone", "not_in_zone", "pool", "not_in_pool", "tags", "not_tags", "arch",
    "cpu_count", "mem", "mac_address",
})  # fmt: skip
# Fields of an allocation that say how, not which.
ALLOCATE_WISHES = frozenset({"agent_name", "comment", "dry_run", "verbose", "bridge_all", "bridge_fd"})


def list_tests(region: Region, query: Form) -> list[Test]:
    """Return what a machine must meet for a list. Raises Refusal with every problem found."""
    problems: Problems = {}
    tests: list[Test] = []
    for name in query.names():
        if name == "op":
            continue
        if name not in LIST_FIELDS:
            problems[name] = ["No such constraint."]
            continue
        tests.append(_test(region, name, query.listed(name), problems))
    if problems:
        raise Refusal(400, problems)
    return tests


def allocate_tests(region: Region, form: Form) -> tuple[list[Test], list[tuple[str, list[str]]]]:
    """Return what a machine must meet to be allocated, and the constraints as they were given."""
    problems: Problems = {}
    tests: list[Test] = []
    given: list[tuple[str, list[str]]] = []
    for name in form.names():
        if name in ALLOCATE_WISHES or name == "op":
            continue
        if name not in ALLOCATE_FIELDS:
            problems[name] = ["No such constraint."]
            continue
        values = form.listed(name)
        if not values:
            continue
        given.append((name, values))
        tests.append(_test(region, name, values, problems))
    if problems:
        raise Refusal(400, problems)
    return tests, given


def _test(region: Region, name: str, values: list[str], problems: Problems) -> Test:
    if name in {"zone", "not_in_zone", "pool", "not_in_pool"}:
        return _place(region, name, values, problems)
    if name in {"tags", "not_tags"}:
        return _tagged(region, name, values, problems)
    if name == "status":
        return _in_status(values, problems)
    if name in {"cpu_count", "mem"}:
        return _at_least(name, values, problems)
    return _plain(name, values)


def _place(region: Region, name: str, values: list[str], problems: Problems) -> Test:
    kind = "zone" if name.endswith("zone") else "pool"
    known = region.zones if kind == "zone" else region.pools
    if missing := [one for one in values if one not in known]:
        problems[name] = [f"No such {kind}(s): {', '.join(missing)}."]
    wanted = set(values)
    inside = not name.startswith("not_")

    def test(one: Machine) -> bool:
        return ((one.zone if kind == "zone" else one.pool) in wanted) is inside

    return test


def _tagged(region: Region, name: str, values: list[str], problems: Problems) -> Test:
    if missing := [one for one in values if one not in region.tags]:
        problems[name] = ["No such tag(s): " + ", ".join(f"'{one}'" for one in missing) + "."]
    wanted = set(values)
    if name == "tags":
        return lambda one: wanted <= set(one.tags)
    return lambda one: not wanted & set(one.tags)


def _in_status(values: list[str], problems: Problems) -> Test:
    for one in values:
        if one not in _STATUS_NAMES:
            text = f"Select a valid choice. {one} is not one of the available choices."
            problems.setdefault("status", []).append(text)
    wanted = {_STATUS_NAMES[one] for one in values if one in _STATUS_NAMES}
    return lambda one: one.status in wanted


def _at_least(name: str, values: list[str], problems: Problems) -> Test:
    try:
        least = float(values[-1])
    except ValueError:
        problems[name] = ["Invalid number."]
        least = 0.0
    if name == "cpu_count":
        return lambda one: one.facts.cores >= least
    return lambda one: one.facts.memory >= least


_PLAIN: dict[str, Callable[[Machine], set[str]]] = {
    "hostname": lambda one: {one.hostname, one.fqdn},
    "name": lambda one: {one.hostname, one.fqdn},
    "mac_address": lambda one: {port.mac for port in one.interfaces},
    "id": lambda one: {one.system_id},
    "system_id": lambda one: {one.system_id},
    "domain": lambda _: {"maas"},
    "agent_name": lambda one: {one.agent_name},
    "description": lambda one: {one.description},
    "owner": lambda one: {one.owner or ""},
    "power_state": lambda one: {one.power_state},
    "arch": lambda one: {one.architecture, one.architecture.partition("/")[0]},
}


def _plain(name: str, values: list[str]) -> Test:
    facets = _PLAIN[name]
    wanted = {one.lower() for one in values} if name == "mac_address" else set(values)
    return lambda one: bool(wanted & facets(one))


def chosen(region: Region, tests: list[Test]) -> list[Machine]:
    """Return the machines that meet everything, the oldest first."""
    return [one for one in region.machines.values() if all(test(one) for test in tests)]
