"""Tests of a machine: after commissioning, or when a user asks."""

from __future__ import annotations

import base64

from lab.maas.errors import Refusal
from lab.maas.faults import Fault
from lab.maas.life import powering, scripts
from lab.maas.life.conductor import Conductor
from lab.maas.life.scripts import ReportedResult
from lab.maas.model.events import Kind
from lab.maas.model.machine import Machine
from lab.maas.model.results import BAD, OPEN, ScriptSet
from lab.maas.model.status import Status, allowed

_GOES_TO_READY = frozenset({Status.COMMISSIONING, Status.FAILED_TESTING, Status.FAILED_COMMISSIONING})


def begin(ctl: Conductor, machine: Machine, user: str, asked: list[str] | None) -> None:
    """Start the tests that a user asked for. Raises Refusal."""
    if machine.status is Status.TESTING or not allowed(machine.status, Status.TESTING):
        text = "Test is not available because of the current state of the node."
        raise Refusal(400, {"__all__": [text]})
    chosen = scripts.choose_tests(ctl, asked)
    powering.need_rack(ctl, machine)
    ctl.new_turn(machine)
    machine.previous = machine.status
    machine.owner = machine.owner or user
    scripts.testing_set(ctl, machine, chosen)
    ctl.asked(machine, Kind.USER_TEST, user)
    ctl.note(machine, Kind.TESTING)
    ctl.move(machine, Status.TESTING)
    ctl.watch(machine)
    ctl.start(_boot(ctl, machine, machine.turn))


def continue_after_commissioning(ctl: Conductor, machine: Machine) -> None:
    """Go on to the tests that commissioning ends with, while the machine is still up."""
    machine.previous = Status.COMMISSIONING
    ctl.note(machine, Kind.TESTING)
    ctl.move(machine, Status.TESTING)
    ctl.touch(machine)
    ctl.start(_stand_in(ctl, machine, machine.turn))


async def _boot(ctl: Conductor, machine: Machine, turn: int) -> None:
    if not await powering.switch_on(ctl, machine) or machine.turn != turn:
        return
    if ctl.simulated:
        await _stand_in(ctl, machine, turn)


async def _stand_in(ctl: Conductor, machine: Machine, turn: int) -> None:
    """Run the tests for a machine that does not run them itself."""
    await ctl.clock.sleep(ctl.config.delays.testing)
    if machine.turn != turn or machine.boot.testing_reported:
        return
    finished(ctl, machine, ())


def progress(ctl: Conductor, machine: Machine, results: tuple[ReportedResult, ...]) -> None:
    """Enter results that came while tests run."""
    machine.boot.testing_reported = True
    if (made := ctl.region.script_set(machine.testing_set)) is not None:
        scripts.write(ctl, machine, made, results)


def finished(ctl: Conductor, machine: Machine, results: tuple[ReportedResult, ...]) -> None:
    """Enter the last results and decide; tests that nobody reported have passed."""
    made = ctl.region.script_set(machine.testing_set)
    if made is None:
        made = scripts.testing_set(ctl, machine, [])
    broken = ctl.faults.of(machine.system_id, Fault.TEST_FAILS)
    scripts.write(ctl, machine, made, results)
    for one in [one for one in made.results if one.status in OPEN]:
        text = b"a fault was injected\n" if broken else b"ok\n"
        told = ReportedResult(one.name, int(broken), base64.b64encode(text).decode())
        scripts.write(ctl, machine, made, (told,))
    _decide(ctl, machine, made)


def _decide(ctl: Conductor, machine: Machine, made: ScriptSet) -> None:
    ctl.new_turn(machine)
    if any(one.status in BAD for one in made.results):
        ctl.note(machine, Kind.FAILED_TESTING)
        ctl.move(machine, Status.FAILED_TESTING)
    else:
        back = Status.READY if machine.previous in _GOES_TO_READY else machine.previous
        if back is Status.READY:
            machine.owner = None
            ctl.note(machine, Kind.READY)
        ctl.move(machine, back)
    if machine.status is not Status.DEPLOYED and not machine.order.enable_ssh:
        ctl.start(power_off_after(ctl, machine, machine.turn))


async def power_off_after(ctl: Conductor, machine: Machine, turn: int) -> None:
    """Switch a machine off that has nothing more to do, unless it has by then."""
    await ctl.clock.sleep(ctl.config.delays.power)
    if machine.turn == turn:
        await powering.switch_off(ctl, machine)


def override(ctl: Conductor, machine: Machine, user: str, comment: str) -> None:
    """Believe a machine that failed its tests. Raises Refusal."""
    if machine.status is not Status.FAILED_TESTING:
        text = "Unable to override node status. Node is not in 'Failed testing' status."
        raise Refusal(409, text)
    ctl.new_turn(machine)
    ctl.asked(machine, Kind.USER_OVERRIDE, user, comment)
    deployed = bool(machine.order.osystem) and not machine.netboot
    if not deployed:
        machine.owner = None
    ctl.move(machine, Status.DEPLOYED if deployed else Status.READY)
