"""`machines/{system_id}/`: one machine, and everything that can be done to it."""

from __future__ import annotations

from lab.maas.api import creation
from lab.maas.api.machines import shown_power
from lab.maas.api.resource import Action, Answer, Call, Resource, require_admin
from lab.maas.errors import Refusal
from lab.maas.life import commission, deploy, powering, release, storage, testing
from lab.maas.life.commission import CommissionOrder
from lab.maas.life.deploy import DeployOrder
from lab.maas.life.release import ReleaseOrder
from lab.maas.model.events import Kind
from lab.maas.model.machine import Machine
from lab.maas.model.status import Status
from lab.maas.render import machine as render

_UNDELETABLE = frozenset({Status.DEPLOYED, Status.DEPLOYING})


def _editable(call: Call) -> Machine:
    """Return the machine if the caller may change it: MAAS's empty 403 says no."""
    found = call.machine()
    if found.locked or (found.owner not in {None, call.who.name} and not call.who.superuser):
        raise Refusal(403, "")
    return found


def _administered(call: Call) -> Machine:
    found = call.machine()
    require_admin(call)
    if found.locked:
        raise Refusal(403, "")
    return found


def _shown(call: Call, one: Machine) -> Answer:
    return Answer(render.machine(call.region, one))


def read(call: Call) -> Answer:
    """Show the machine."""
    return _shown(call, call.machine())


def update(call: Call) -> Answer:
    """Change names, places and power parameters."""
    found = _administered(call)
    problems: creation.Problems = {}
    region, form = call.region, call.form
    zone = creation.check_choice("zone", form.given("zone"), region.zones.keys(), problems)
    pool = creation.check_choice("pool", form.given("pool"), region.pools.keys(), problems)
    hostname = form.given("hostname")
    if hostname and region.by_hostname(hostname) not in (None, found):
        problems["hostname"] = ["Node with this Hostname already exists."]
    if "architecture" in form:
        architecture = creation.check_architecture(form.one("architecture"), problems)
    else:
        architecture = found.architecture
    if problems:
        raise Refusal(400, problems)
    found.zone, found.pool = zone or found.zone, pool or found.pool
    found.hostname, found.architecture = hostname or found.hostname, architecture
    found.description = form.one("description", found.description)
    found.power_type = form.one("power_type", found.power_type)
    found.power_parameters |= creation.power_parameters(form) or {}
    return _shown(call, found)


def delete(call: Call) -> Answer:
    """Forget the machine; one that is deployed is protected."""
    found = _administered(call)
    if found.status in _UNDELETABLE:
        raise Refusal(403, "")
    call.ctl.new_turn(found)
    del call.region.machines[found.system_id]
    return Answer(b"", status=204, content_type="text/plain")


def commission_op(call: Call) -> Answer:
    """Start commissioning."""
    found = _administered(call)
    tests = tuple(call.form.all("testing_scripts")) if "testing_scripts" in call.form else None
    order = CommissionOrder(call.form.flag("enable_ssh"), call.form.flag("skip_bmc_config"), tests)
    commission.begin(call.ctl, found, call.who.name, order)
    return _shown(call, found)


def deploy_op(call: Call) -> Answer:
    """Start deployment."""
    found, form = _editable(call), call.form
    order = DeployOrder(
        series=form.one("distro_series"),
        osystem=form.one("osystem"),
        kernel=form.one("hwe_kernel"),
        user_data=form.given("user_data"),
        ephemeral=form.flag("ephemeral_deploy"),
        comment=form.one("comment"),
    )
    deploy.begin(call.ctl, found, call.who.name, order)
    return _shown(call, found)


def release_op(call: Call) -> Answer:
    """Start release."""
    found, form = _editable(call), call.form
    quick, secure = form.flag("quick_erase"), form.flag("secure_erase")
    order = ReleaseOrder(form.flag("erase"), quick, secure, form.one("comment"))
    release.begin(call.ctl, found, call.who.name, order)
    return _shown(call, found)


def abort_op(call: Call) -> Answer:
    """Break off what runs."""
    found = _editable(call)
    release.abort(call.ctl, found, call.who.name, call.form.one("comment"))
    return _shown(call, found)


def test_op(call: Call) -> Answer:
    """Start tests."""
    found = _administered(call)
    asked = call.form.all("testing_scripts") if "testing_scripts" in call.form else None
    testing.begin(call.ctl, found, call.who.name, asked)
    return _shown(call, found)


def override_op(call: Call) -> Answer:
    """Believe a machine that failed its tests."""
    found = _administered(call)
    testing.override(call.ctl, found, call.who.name, call.form.one("comment"))
    return _shown(call, found)


def mark_broken(call: Call) -> Answer:
    """Set the machine aside."""
    found = _editable(call)
    release.mark_broken(call.ctl, found, call.who.name, call.form.one("comment"))
    return _shown(call, found)


def mark_fixed(call: Call) -> Answer:
    """Take the machine back."""
    found = _administered(call)
    release.mark_fixed(call.ctl, found, call.who.name, call.form.one("comment"))
    return _shown(call, found)


def lock(call: Call) -> Answer:
    """Protect the machine."""
    found = call.machine()
    release.lock(call.ctl, found, call.who.name, call.form.one("comment"))
    return _shown(call, found)


def unlock(call: Call) -> Answer:
    """Lift the protection."""
    found = call.machine()
    release.unlock(call.ctl, found, call.who.name, call.form.one("comment"))
    return _shown(call, found)


def rescue_mode(call: Call) -> Answer:
    """Boot into rescue mode."""
    found = _administered(call)
    release.enter_rescue(call.ctl, found, call.who.name)
    return _shown(call, found)


def exit_rescue_mode(call: Call) -> Answer:
    """Leave rescue mode."""
    found = _administered(call)
    release.exit_rescue(call.ctl, found, call.who.name)
    return _shown(call, found)


def power_on(call: Call) -> Answer:
    """Switch on a machine that somebody holds."""
    found = _editable(call)
    powering.need_rack(call.ctl, found, starting=True)
    if found.owner is None:
        raise Refusal(409, "Can't start node: it hasn't been allocated.")
    call.ctl.asked(found, Kind.USER_START, call.who.name, call.form.one("comment"))
    # A machine that is being installed has just been started; a second start must not cycle it.
    if found.status is not Status.DEPLOYING:
        call.ctl.start(_switch(call, found, on=True, soft=False))
    return _shown(call, found)


def power_off(call: Call) -> Answer:
    """Switch the machine off."""
    found = _editable(call)
    powering.need_rack(call.ctl, found)
    call.ctl.asked(found, Kind.USER_STOP, call.who.name, call.form.one("comment"))
    soft = call.form.one("stop_mode", "hard") == "soft"
    call.ctl.start(_switch(call, found, on=False, soft=soft))
    return _shown(call, found)


async def _switch(call: Call, one: Machine, *, on: bool, soft: bool) -> None:
    if on:
        await powering.switch_on(call.ctl, one)
    else:
        await powering.switch_off(call.ctl, one, soft=soft)


async def query_power_state(call: Call) -> Answer:
    """Ask the BMC."""
    found = call.machine()
    powering.need_rack(call.ctl, found)
    return Answer({"state": str(await powering.query(call.ctl, found))})


def power_parameters(call: Call) -> Answer:
    """Show the power parameters, the password included."""
    found = call.machine()
    require_admin(call)
    return Answer(shown_power(found))


def set_annotations(call: Call) -> Answer:
    """Write the owner's notes; an empty value removes one."""
    found = _editable(call)
    if found.owner is None or found.status is Status.COMMISSIONING:
        raise Refusal(409, "Cannot set workload annotation: it hasn't been acquired.")
    for key, value in call.form:
        found.annotations[key] = value
        if not value:
            del found.annotations[key]
    return _shown(call, found)


def set_storage_layout(call: Call) -> Answer:
    """Lay the disks out anew."""
    found = _administered(call)
    storage.set_layout(call.ctl, found, call.form.one("storage_layout"))
    return _shown(call, found)


RESOURCES = (
    Resource(
        "MachineHandler",
        "machines/{system_id}/",
        (
            Action("GET", None, read),
            Action("PUT", None, update),
            Action("DELETE", None, delete),
            Action("POST", "commission", commission_op),
            Action("POST", "deploy", deploy_op),
            Action("POST", "release", release_op),
            Action("POST", "abort", abort_op),
            Action("POST", "test", test_op),
            Action("POST", "override_failed_testing", override_op),
            Action("POST", "mark_broken", mark_broken),
            Action("POST", "mark_fixed", mark_fixed),
            Action("POST", "lock", lock),
            Action("POST", "unlock", unlock),
            Action("POST", "rescue_mode", rescue_mode),
            Action("POST", "exit_rescue_mode", exit_rescue_mode),
            Action("POST", "power_on", power_on),
            Action("POST", "power_off", power_off),
            Action("GET", "query_power_state", query_power_state),
            Action("GET", "power_parameters", power_parameters),
            Action("POST", "set_workload_annotations", set_annotations),
            Action("POST", "set_owner_data", set_annotations),
            Action("POST", "set_storage_layout", set_storage_layout),
        ),
    ),
    Resource("NodeHandler", "nodes/{system_id}/", (Action("GET", None, read),)),
)
