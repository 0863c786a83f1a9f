"""Commissioning: from a bare machine to one that MAAS knows."""

from __future__ import annotations

import base64
from dataclasses import dataclass

from lab.maas.errors import Refusal
from lab.maas.faults import Fault
from lab.maas.life import inventory, powering, scripts, storage, testing
from lab.maas.life.conductor import Conductor
from lab.maas.life.scripts import ReportedResult
from lab.maas.model.events import Kind
from lab.maas.model.machine import Machine, Order
from lab.maas.model.results import BAD, ResultStatus, ScriptSet
from lab.maas.model.status import COMMISSIONABLE, Status


@dataclass(frozen=True, slots=True)
class CommissionOrder:
    """What a user wants of a commissioning."""

    enable_ssh: bool = False
    skip_bmc_config: bool = False
    tests: tuple[str, ...] | None = None


def begin(ctl: Conductor, machine: Machine, user: str, order: CommissionOrder) -> None:
    """Start commissioning. Raises Refusal."""
    if machine.status not in COMMISSIONABLE:
        text = "Commission is not available because of the current state of the node."
        raise Refusal(400, {"__all__": [text]})
    tests = scripts.choose_tests(ctl, None if order.tests is None else list(order.tests))
    powering.need_rack(ctl, machine)
    ctl.new_turn(machine)
    machine.previous = Status.NEW if machine.status is Status.BROKEN else machine.status
    machine.owner = user
    machine.order = Order(enable_ssh=order.enable_ssh)
    machine.error_description = ""
    machine.netboot = True
    for port in machine.interfaces:
        port.links = []
    storage.clear(machine)
    ctl.asked(machine, Kind.USER_COMMISSION, user)
    ctl.note(machine, Kind.COMMISSIONING)
    scripts.commissioning_set(ctl, machine, skip_bmc_config=order.skip_bmc_config)
    machine.testing_set = None
    if tests:
        scripts.testing_set(ctl, machine, tests)
    ctl.move(machine, Status.COMMISSIONING)
    ctl.watch(machine)
    ctl.start(_boot(ctl, machine, machine.turn))


async def _boot(ctl: Conductor, machine: Machine, turn: int) -> None:
    if not await powering.switch_on(ctl, machine) or machine.turn != turn:
        return
    if ctl.simulated:
        await ctl.clock.sleep(ctl.config.delays.commission)
        if machine.turn == turn:
            finished(ctl, machine, ())


def started(ctl: Conductor, machine: Machine) -> None:
    """Note that the machine runs the commissioning environment."""
    ctl.note(machine, Kind.LOADING_EPHEMERAL)
    ctl.note(machine, Kind.GATHERING_INFO)


def progress(ctl: Conductor, machine: Machine, results: tuple[ReportedResult, ...]) -> None:
    """Enter results that came while scripts run."""
    if (made := ctl.region.script_set(machine.commissioning_set)) is not None:
        scripts.write(ctl, machine, made, results)


def finished(ctl: Conductor, machine: Machine, results: tuple[ReportedResult, ...]) -> None:
    """Enter the last results, take over the inventory, and decide what comes next."""
    made = ctl.region.script_set(machine.commissioning_set)
    if made is None:
        return
    scripts.write(ctl, machine, made, results)
    _complete(ctl, machine, made)
    inventory.apply(ctl, machine, made)
    tests = ctl.region.script_set(machine.testing_set)
    if tests is not None:
        scripts.spread_over_disks(ctl, machine, tests)
    if any(one.status in BAD for one in made.results):
        failed(ctl, machine, "")
        return
    if tests is not None:
        testing.continue_after_commissioning(ctl, machine)
        return
    ctl.new_turn(machine)
    machine.owner = None
    ctl.note(machine, Kind.READY)
    ctl.move(machine, Status.READY)
    _rest(ctl, machine)


def failed(ctl: Conductor, machine: Machine, message: str) -> None:
    """Give commissioning up; the reason lies in the results."""
    if message:
        ctl.note(machine, Kind.COMMISSIONING_FAILED, message)
    ctl.new_turn(machine)
    for number in (machine.commissioning_set, machine.testing_set):
        scripts.abort_open(ctl, machine, ctl.region.script_set(number))
    ctl.note(machine, Kind.FAILED_COMMISSIONING)
    ctl.move(machine, Status.FAILED_COMMISSIONING)
    _rest(ctl, machine)


def _rest(ctl: Conductor, machine: Machine) -> None:
    if not machine.order.enable_ssh:
        ctl.start(testing.power_off_after(ctl, machine, machine.turn))


def _complete(ctl: Conductor, machine: Machine, made: ScriptSet) -> None:
    """Pass the scripts that the machine does not report one by one."""
    broken = ctl.faults.of(machine.system_id, Fault.COMMISSION_FAILS)
    if broken:
        for one in made.results[:1]:
            one.status = ResultStatus.PENDING
    for one in scripts.open_results(made):
        text = b"a fault was injected\n" if broken else b""
        told = ReportedResult(one.name, int(broken), base64.b64encode(text).decode())
        scripts.write(ctl, machine, made, (told,))
        broken = False
