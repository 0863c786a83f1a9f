"""Release, erasing, abort, broken and fixed, lock, rescue mode."""

from __future__ import annotations

from dataclasses import dataclass

from lab.maas.errors import Refusal
from lab.maas.faults import Fault
from lab.maas.life import network, powering, scripts
from lab.maas.life.conductor import Conductor
from lab.maas.model.events import Kind
from lab.maas.model.machine import Machine, Order
from lab.maas.model.status import ABORTABLE, LOCKABLE, RELEASABLE, Status, allowed
from lab.maas.power import PowerState

_ALREADY = frozenset({Status.READY, Status.RELEASING})


@dataclass(frozen=True, slots=True)
class ReleaseOrder:
    """How a machine is to be given back."""

    erase: bool = False
    quick: bool = False
    secure: bool = False
    comment: str = ""


def begin(ctl: Conductor, machine: Machine, user: str, order: ReleaseOrder) -> None:
    """Start giving a machine back; nothing happens when it already is. Raises Refusal."""
    if machine.status in _ALREADY:
        return
    if machine.status not in RELEASABLE:
        text = f"Machine cannot be released in its current state ('{machine.status.label}')."
        raise Refusal(409, text)
    powering.need_rack(ctl, machine)
    ctl.new_turn(machine)
    machine.previous = machine.status
    ctl.asked(machine, Kind.USER_RELEASE, user, order.comment)
    if order.erase:
        ctl.asked(machine, Kind.USER_ERASE, user, order.comment)
        ctl.move(machine, Status.DISK_ERASING)
        ctl.watch(machine)
        ctl.start(_erase(ctl, machine, machine.turn, quick=order.quick))
        return
    let_go(ctl, machine)
    if machine.power_state == PowerState.OFF or machine.power_type not in powering.DRIVEN:
        _finish(ctl, machine)
        return
    ctl.move(machine, Status.RELEASING)
    ctl.watch(machine)
    ctl.start(_stop(ctl, machine, machine.turn))


def let_go(ctl: Conductor, machine: Machine) -> None:
    """Forget what was deployed."""
    ctl.note(machine, Kind.RELEASING)
    machine.order = Order(ephemeral=machine.order.ephemeral)
    machine.netboot = True
    machine.boot.system_token = ""


async def _erase(ctl: Conductor, machine: Machine, turn: int, *, quick: bool) -> None:
    seconds = ctl.config.delays.erase
    await ctl.clock.sleep(seconds / 4 if quick else seconds)
    if machine.turn != turn:
        return
    if ctl.faults.of(machine.system_id, Fault.RELEASE_FAILS):
        ctl.mark_failed(machine, "Failed to erase disks.")
        return
    ctl.note(machine, Kind.DISKS_ERASED)
    let_go(ctl, machine)
    ctl.move(machine, Status.RELEASING)
    await _stop(ctl, machine, turn)


async def _stop(ctl: Conductor, machine: Machine, turn: int) -> None:
    await ctl.clock.sleep(ctl.config.delays.release)
    if machine.turn != turn:
        return
    if ctl.faults.of(machine.system_id, Fault.RELEASE_FAILS):
        reason = "the BMC does not answer"
        ctl.note(machine, Kind.POWER_OFF_FAILED, reason)
        ctl.mark_failed(machine, f"Power off for the node failed: {reason}")
        return
    if await powering.switch_off(ctl, machine) and machine.turn == turn:
        _finish(ctl, machine)


def _finish(ctl: Conductor, machine: Machine) -> None:
    ctl.new_turn(machine)
    forget_owner(machine)
    ctl.note(machine, Kind.RELEASED)
    ctl.move(machine, Status.READY)


def forget_owner(machine: Machine) -> None:
    """Drop everything that belonged to the machine's owner."""
    machine.owner, machine.acquired = None, False
    machine.agent_name = ""
    machine.annotations = {}
    machine.error_description = ""
    network.drop_addresses(machine)


def abort(ctl: Conductor, machine: Machine, user: str, comment: str) -> None:
    """Break off what a machine is doing; the status follows later. Raises Refusal."""
    if machine.status not in ABORTABLE:
        where = f"node {machine.system_id} is in state {machine.status.label}."
        raise Refusal(409, f"Cannot abort in current state: {where}")
    powering.need_rack(ctl, machine)
    asked, told = _ABORTS[machine.status]
    ctl.new_turn(machine)
    ctl.asked(machine, asked, user, comment)
    ctl.note(machine, told)
    if machine.status is Status.COMMISSIONING:
        machine.owner = None
    ctl.start(_back(ctl, machine, machine.turn))


_ABORTS = {
    Status.COMMISSIONING: (Kind.USER_ABORT_COMMISSION, Kind.ABORTED_COMMISSIONING),
    Status.DEPLOYING: (Kind.USER_ABORT_DEPLOY, Kind.ABORTED_DEPLOYMENT),
    Status.DISK_ERASING: (Kind.USER_ABORT_ERASE, Kind.ABORTED_DISK_ERASING),
    Status.TESTING: (Kind.USER_ABORT_TEST, Kind.ABORTED_TESTING),
}


async def _back(ctl: Conductor, machine: Machine, turn: int) -> None:
    await ctl.clock.sleep(ctl.config.delays.abort)
    if machine.turn != turn or not await powering.switch_off(ctl, machine) or machine.turn != turn:
        return
    for number in (machine.commissioning_set, machine.installation_set, machine.testing_set):
        scripts.abort_open(ctl, machine, ctl.region.script_set(number))
    ctl.new_turn(machine)
    if machine.status is Status.DISK_ERASING:
        ctl.move(machine, Status.FAILED_DISK_ERASING)
    elif machine.status is Status.DEPLOYING:
        network.drop_addresses(machine)
        ctl.move(machine, Status.ALLOCATED)
    elif machine.previous is Status.COMMISSIONING:
        ctl.move(machine, Status.NEW)
    else:
        ctl.move(machine, machine.previous)


def mark_broken(ctl: Conductor, machine: Machine, user: str, comment: str) -> None:
    """Set a machine aside; one that is in use is let go and switched off. Raises Refusal."""
    if machine.status is not Status.BROKEN and not allowed(machine.status, Status.BROKEN):
        raise _no_move(machine, Status.BROKEN)
    ctl.new_turn(machine)
    if machine.status in RELEASABLE and machine.status is not Status.BROKEN:
        let_go(ctl, machine)
        ctl.start(_off(ctl, machine))
    ctl.asked(machine, Kind.USER_BROKEN, user, comment)
    machine.error_description = comment
    ctl.move(machine, Status.BROKEN)


async def _off(ctl: Conductor, machine: Machine) -> None:
    await powering.switch_off(ctl, machine)


def mark_fixed(ctl: Conductor, machine: Machine, user: str, comment: str) -> None:
    """Take a broken machine back. Raises Refusal."""
    if machine.status is not Status.BROKEN:
        raise Refusal(409, "Can't mark a non-broken node as 'Ready'.")
    ctl.new_turn(machine)
    ctl.asked(machine, Kind.USER_FIXED, user, comment)
    forget_owner(machine)
    machine.order = Order()
    machine.installation_set = None
    ctl.move(machine, Status.READY)


def lock(ctl: Conductor, machine: Machine, user: str, comment: str) -> None:
    """Protect a machine from everything but unlock. Raises Refusal."""
    if machine.locked:
        raise Refusal(409, "Machine is already locked")
    if machine.status not in LOCKABLE:
        raise Refusal(409, "Can't lock, machine is not deployed")
    machine.locked = True
    ctl.asked(machine, Kind.USER_LOCK, user, comment)


def unlock(ctl: Conductor, machine: Machine, user: str, comment: str) -> None:
    """Lift a lock. Raises Refusal."""
    if not machine.locked:
        raise Refusal(409, "Machine is not locked")
    machine.locked = False
    ctl.asked(machine, Kind.USER_UNLOCK, user, comment)


def enter_rescue(ctl: Conductor, machine: Machine, user: str) -> None:
    """Boot a machine into rescue mode. Raises Refusal."""
    if not allowed(machine.status, Status.ENTERING_RESCUE_MODE):
        raise _no_move(machine, Status.ENTERING_RESCUE_MODE)
    powering.need_rack(ctl, machine)
    ctl.new_turn(machine)
    machine.previous = machine.status
    machine.owner = machine.owner or user
    ctl.asked(machine, Kind.USER_RESCUE, user)
    ctl.note(machine, Kind.ENTERING_RESCUE_MODE)
    ctl.move(machine, Status.ENTERING_RESCUE_MODE)
    ctl.watch(machine)
    ctl.start(_rescue(ctl, machine, machine.turn))


async def _rescue(ctl: Conductor, machine: Machine, turn: int) -> None:
    if not await powering.switch_on(ctl, machine) or machine.turn != turn:
        return
    if ctl.simulated:
        await ctl.clock.sleep(ctl.config.delays.rescue)
        if machine.turn == turn:
            rescued(ctl, machine)


def rescued(ctl: Conductor, machine: Machine) -> None:
    """Note that the rescue system is up."""
    if machine.status is not Status.ENTERING_RESCUE_MODE:
        return
    ctl.new_turn(machine)
    ctl.note(machine, Kind.RESCUE_MODE)
    ctl.move(machine, Status.RESCUE_MODE)


def exit_rescue(ctl: Conductor, machine: Machine, user: str) -> None:
    """Leave rescue mode for the status before it. Raises Refusal."""
    if not allowed(machine.status, Status.EXITING_RESCUE_MODE):
        raise _no_move(machine, Status.EXITING_RESCUE_MODE)
    powering.need_rack(ctl, machine)
    ctl.new_turn(machine)
    ctl.asked(machine, Kind.USER_EXIT_RESCUE, user)
    ctl.move(machine, Status.EXITING_RESCUE_MODE)
    ctl.watch(machine)
    ctl.start(_leave(ctl, machine, machine.turn))


async def _leave(ctl: Conductor, machine: Machine, turn: int) -> None:
    await ctl.clock.sleep(ctl.config.delays.rescue)
    if machine.turn != turn:
        return
    if machine.previous is Status.DEPLOYED:
        worked = await powering.switch_on(ctl, machine)
    else:
        worked = await powering.switch_off(ctl, machine)
    if worked and machine.turn == turn:
        ctl.new_turn(machine)
        ctl.note(machine, Kind.EXITED_RESCUE_MODE)
        ctl.move(machine, machine.previous)


def _no_move(machine: Machine, target: Status) -> Refusal:
    return Refusal(409, f"Invalid transition: {machine.status.label} -> {target.label}.")
