from __future__ import annotations

import pytest

from lab.maas.boot.intent import Intent, intent_of
from lab.maas.model.machine import Machine
from lab.maas.model.status import FAILED, MOVES, Status, allowed

S = Status


def test_every_status_says_its_name_in_words() -> None:
    assert [S.NEW.label, S.FAILED_COMMISSIONING.label, S.ENTERING_RESCUE_MODE.label] == [
        "New",
        "Failed commissioning",
        "Entering rescue mode",
    ]
    assert S.FAILED_ENTERING_RESCUE_MODE.label == "Failed to enter rescue mode"


def test_codes_are_those_of_maas() -> None:
    assert [int(one) for one in S] == list(range(23))


@pytest.mark.parametrize(
    ("source", "target"),
    [
        (S.NEW, S.COMMISSIONING),
        (S.COMMISSIONING, S.READY),
        (S.READY, S.ALLOCATED),
        (S.ALLOCATED, S.DEPLOYING),
        (S.DEPLOYING, S.DEPLOYED),
        (S.DEPLOYING, S.FAILED_DEPLOYMENT),
        (S.FAILED_DEPLOYMENT, S.RELEASING),
        (S.DEPLOYED, S.DISK_ERASING),
        (S.BROKEN, S.READY),
        (S.TESTING, S.FAILED_TESTING),
        (S.FAILED_TESTING, S.READY),
        (S.RESCUE_MODE, S.EXITING_RESCUE_MODE),
    ],
)
def test_allows_the_moves_of_a_life(source: Status, target: Status) -> None:
    assert allowed(source, target)


@pytest.mark.parametrize(
    ("source", "target"),
    [
        (S.NEW, S.DEPLOYING),
        (S.READY, S.DEPLOYED),
        (S.DEPLOYED, S.COMMISSIONING),
        (S.FAILED_DEPLOYMENT, S.COMMISSIONING),
        (S.FAILED_DEPLOYMENT, S.DEPLOYING),
        (S.DEPLOYING, S.ENTERING_RESCUE_MODE),
        (S.DEPLOYING, S.TESTING),
        (S.TESTING, S.ENTERING_RESCUE_MODE),
        (S.RESCUE_MODE, S.RELEASING),
    ],
)
def test_refuses_the_others(source: Status, target: Status) -> None:
    assert not allowed(source, target)


def test_every_passing_status_can_fail() -> None:
    assert all(failed in MOVES[passing] for passing, failed in FAILED.items())


@pytest.mark.parametrize(
    ("status", "netboot", "intent"),
    [
        (S.COMMISSIONING, True, Intent.COMMISSION),
        (S.DEPLOYING, True, Intent.INSTALL),
        (S.DEPLOYING, False, Intent.LOCAL),
        (S.DEPLOYED, False, Intent.LOCAL),
        (S.DEPLOYED, True, Intent.INSTALL),
        (S.TESTING, False, Intent.TEST),
        (S.ENTERING_RESCUE_MODE, False, Intent.RESCUE),
        (S.EXITING_RESCUE_MODE, False, Intent.LOCAL),
        (S.READY, True, Intent.NOTHING),
        (S.NEW, True, Intent.NOTHING),
        (S.BROKEN, True, Intent.NOTHING),
    ],
)
def test_a_machine_boots_what_its_status_wants(status: Status, netboot: bool, intent: Intent) -> None:
    machine = Machine("4xk7ra", "lab-n01", 0.0, status=status, netboot=netboot)
    assert intent_of(machine) is intent
