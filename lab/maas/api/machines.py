"""`machines/`: lists, creation, allocation, and what is done to many at once."""

from __future__ import annotations

from lab.maas.api import creation, filters
from lab.maas.api.resource import Action, Answer, Call, Resource, bad, require_admin
from lab.maas.errors import Refusal
from lab.maas.life import commission, deploy, release
from lab.maas.life.commission import CommissionOrder
from lab.maas.life.release import ReleaseOrder
from lab.maas.model.machine import Machine
from lab.maas.model.status import RELEASABLE, Status
from lab.maas.render import machine as render


def read(call: Call) -> Answer:
    """List machines."""
    found = filters.chosen(call.region, filters.list_tests(call.region, call.query))
    return Answer([render.machine(call.region, one) for one in found])


def create(call: Call) -> Answer:
    """Make a machine; an administrator's is commissioned at once unless that is refused."""
    if call.user is None:
        return _enlist(call)
    new = creation.check(call.region, call.form)
    made = creation.add(call.region, new, call.ctl.now())
    if call.user.superuser and call.form.flag("commission", default=True):
        tests = tuple(call.form.all("testing_scripts")) if "testing_scripts" in call.form else None
        order = CommissionOrder(call.form.flag("enable_ssh"), call.form.flag("skip_bmc_config"), tests)
        commission.begin(call.ctl, made, call.user.name, order)
    return Answer(render.machine(call.region, made))


def _enlist(call: Call) -> Answer:
    try:
        new = creation.check(call.region, call.form)
    except Refusal as exc:
        if isinstance(exc.body, dict) and {"mac_addresses", "hostname"} & exc.body.keys():
            # MAAS itself stumbles over an enlistment that it already has.
            raise Refusal(500, "'NoneType' object has no attribute 'get'") from exc
        raise
    made = creation.add(call.region, new, call.ctl.now())
    return Answer(render.enlisted(made, call.region))


def is_registered(call: Call) -> Answer:
    """Say whether a MAC address belongs to a machine."""
    mac = call.query.one("mac_address")
    if not mac:
        raise bad("mac_address", "This field is required.")
    return Answer(call.region.by_mac(mac) is not None)


def list_allocated(call: Call) -> Answer:
    """List the caller's machines."""
    tests = filters.list_tests(call.region, call.query)
    mine = [one for one in filters.chosen(call.region, tests) if one.owner == call.who.name]
    held = [one for one in mine if one.status is not Status.COMMISSIONING]
    return Answer([render.machine(call.region, one) for one in held])


def all_power_parameters(call: Call) -> Answer:
    """Return every machine's power parameters, passwords included."""
    require_admin(call)
    asked = set(call.query.all("id"))
    found = [one for one in call.region.machines.values() if not asked or one.system_id in asked]
    return Answer({one.system_id: shown_power(one) for one in found})


def shown_power(one: Machine) -> dict[str, object]:
    """Render a machine's power parameters."""
    shown: dict[str, object] = dict(one.power_parameters)
    if one.power_type == "ipmi":
        shown["workaround_flags"] = ["opensesspriv"]
    return shown


def allocate(call: Call) -> Answer:
    """Give one Ready machine that meets the constraints to the caller."""
    tests, given = filters.allocate_tests(call.region, call.form)
    free = [one for one in filters.chosen(call.region, tests) if one.status is Status.READY]
    if not free:
        raise Refusal(409, _none_available(given))
    found = free[0]
    if not call.form.flag("dry_run"):
        agent, comment = call.form.one("agent_name"), call.form.one("comment")
        deploy.acquire(call.ctl, found, call.who.name, agent, comment)
    return Answer({**render.machine(call.region, found), "constraints_by_type": {}})


def _none_available(given: list[tuple[str, list[str]]]) -> str:
    named = dict(given)
    if "system_id" in named:
        return f"No machine with system ID {named['system_id'][-1]} available."
    if "name" in named:
        return f"No machine with name {named['name'][-1]} available."
    if not given:
        return "No machine available."
    resolved = " ".join(f"{name}={','.join(sorted(values))}" for name, values in sorted(given))
    return f'No available machine matches constraints: {given} (resolved to "{resolved}")'


def bulk_release(call: Call) -> Answer:
    """Release several machines, all of them or none."""
    wanted = call.form.listed("machines")
    if unknown := sorted(set(wanted) - call.region.machines.keys()):
        raise Refusal(400, f"Unknown machine(s): {', '.join(unknown)}.")
    found = [call.region.machines[one] for one in wanted]
    if any(one.locked for one in found):
        raise Refusal(403, "")
    fit = RELEASABLE | {Status.READY, Status.RELEASING}
    if refused := [one for one in found if one.status not in fit]:
        named = ", ".join(f"{one.system_id} ('{one.status.label}')" for one in refused)
        raise Refusal(409, f"Machine(s) cannot be released in their current state: {named}.")
    released = []
    for one in found:
        if one.status in RELEASABLE:
            order = ReleaseOrder(call.form.flag("erase"), comment=call.form.one("comment"))
            release.begin(call.ctl, one, call.who.name, order)
            released.append(one.system_id)
    return Answer(released)


def accept(call: Call) -> Answer:
    """Commission enlisted machines that are named."""
    require_admin(call)
    wanted = call.form.listed("machines")
    if unknown := sorted(set(wanted) - call.region.machines.keys()):
        raise Refusal(400, f"Unknown machine(s): {', '.join(unknown)}.")
    return _accept(call, [call.region.machines[one] for one in wanted])


def accept_all(call: Call) -> Answer:
    """Commission every enlisted machine."""
    require_admin(call)
    return _accept(call, list(call.region.machines.values()))


def _accept(call: Call, machines: list[Machine]) -> Answer:
    taken = [one for one in machines if one.status is Status.NEW]
    for one in taken:
        commission.begin(call.ctl, one, call.who.name, CommissionOrder())
    return Answer([render.machine(call.region, one) for one in taken])


def set_zone(call: Call) -> Answer:
    """Put several machines into a zone."""
    require_admin(call)
    zone = call.form.one("zone")
    if zone not in call.region.zones:
        raise bad("zone", f"No such zone: '{zone}'.")
    for system_id in call.form.listed("nodes"):
        if system_id in call.region.machines:
            call.region.machines[system_id].zone = zone
    return Answer(None)


RESOURCES = (
    Resource(
        "MachinesHandler",
        "machines/",
        (
            Action("GET", None, read),
            Action("POST", None, create, anonymous=True),
            Action("GET", "is_registered", is_registered, anonymous=True),
            Action("GET", "list_allocated", list_allocated),
            Action("GET", "power_parameters", all_power_parameters),
            Action("POST", "allocate", allocate),
            Action("POST", "release", bulk_release),
            Action("POST", "accept", accept),
            Action("POST", "accept_all", accept_all),
            Action("POST", "set_zone", set_zone),
        ),
        has_anonymous=True,
    ),
    Resource(
        "NodesHandler",
        "nodes/",
        (
            Action("GET", None, read),
            Action("GET", "is_registered", is_registered, anonymous=True),
            Action("POST", "set_zone", set_zone),
        ),
        has_anonymous=True,
    ),
)
