from __future__ import annotations

from lab.maas.life.conductor import Conductor
from lab.maas.model import events
from lab.maas.model.events import EventQuery, Kind
from lab.maas.model.machine import Machine
from lab.maas.model.status import Status
from tests.unit.lab_maas.conftest import add


def ids(ctl: Conductor, query: EventQuery) -> list[int]:
    return [one.id for one in events.find(ctl.region, query)]


def test_pages_do_not_overlap(ctl: Conductor, machine: Machine) -> None:
    for _ in range(7):
        ctl.note(machine, Kind.READY)
    assert ids(ctl, EventQuery(limit=3)) == [7, 6, 5]
    assert ids(ctl, EventQuery(limit=3, before=5)) == [4, 3, 2]
    assert ids(ctl, EventQuery(limit=3, after=2)) == [5, 4, 3]
    assert ids(ctl, EventQuery(limit=3, after=7)) == []


def test_leaves_out_what_is_below_the_level(ctl: Conductor, machine: Machine) -> None:
    ctl.note(machine, Kind.POWERED_ON)
    ctl.note(machine, Kind.READY)
    ctl.note(machine, Kind.MARK_FAILED, "because")
    assert ids(ctl, EventQuery(level=10)) == [3, 2, 1]
    assert ids(ctl, EventQuery()) == [3, 2]
    assert ids(ctl, EventQuery(level=40)) == [3]


def test_finds_one_machines_events_or_several(ctl: Conductor, machine: Machine) -> None:
    others = [add(ctl, f"lab-n0{number}", f"02:4c:41:42:00:0{number}") for number in (2, 3)]
    for one in (machine, *others):
        ctl.note(one, Kind.READY)
    assert ids(ctl, EventQuery(system_ids=frozenset({machine.system_id}))) == [1]
    assert ids(ctl, EventQuery(system_ids=frozenset(one.system_id for one in others))) == [3, 2]
    assert ids(ctl, EventQuery(system_ids=frozenset({"absent"}))) == []
    assert ids(ctl, EventQuery(system_ids=frozenset())) == []


def test_the_last_word_becomes_the_status_message(ctl: Conductor, machine: Machine) -> None:
    ctl.note(machine, Kind.DEPLOYING)
    ctl.note(machine, Kind.POWERED_ON)
    assert machine.status_message == "Deploying"
    machine.status = Status.DEPLOYING
    ctl.mark_failed(machine, "too late")
    assert machine.status_message == "Marking node failed - too late"
    assert machine.status_action == "mark_failed"
    assert machine.error_description == "too late"


def test_says_who_asked(ctl: Conductor, machine: Machine) -> None:
    ctl.asked(machine, Kind.USER_RELEASE, "warden", "once more")
    ctl.asked(machine, Kind.USER_RELEASE, "warden")
    assert [(one.username, one.description) for one in ctl.region.events] == [
        ("warden", "(warden) - once more"),
        ("warden", "(warden)"),
    ]
