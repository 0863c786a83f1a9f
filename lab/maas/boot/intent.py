"""What a machine is to do with its next boot."""

from __future__ import annotations

from enum import StrEnum

from lab.maas.model.machine import Machine
from lab.maas.model.status import Status


class Intent(StrEnum):
    """The answers to a machine that asks what to boot."""

    COMMISSION = "commission"
    INSTALL = "install"
    LOCAL = "local"
    ENLIST = "enlist"
    RESCUE = "rescue"
    TEST = "test"
    NOTHING = "nothing"


class Phase(StrEnum):
    """What a machine reports about."""

    COMMISSIONING = "commissioning"
    TESTING = "testing"
    INSTALLATION = "installation"
    BOOT = "boot"
    RESCUE = "rescue"
    ENLISTMENT = "enlistment"


class Progress(StrEnum):
    """How far a phase is."""

    STARTED = "started"
    PROGRESS = "progress"
    FINISHED = "finished"
    FAILED = "failed"


_BY_STATUS = {
    Status.COMMISSIONING: Intent.COMMISSION,
    Status.TESTING: Intent.TEST,
    Status.ENTERING_RESCUE_MODE: Intent.RESCUE,
    Status.RESCUE_MODE: Intent.RESCUE,
}
_HAS_SYSTEM = frozenset({Status.DEPLOYING, Status.DEPLOYED, Status.EXITING_RESCUE_MODE})


def intent_of(machine: Machine) -> Intent:
    """Say what a known machine is to do now."""
    if machine.status in _BY_STATUS:
        return _BY_STATUS[machine.status]
    if machine.status in _HAS_SYSTEM:
        if not machine.netboot:
            return Intent.LOCAL
        deployable = machine.status is not Status.EXITING_RESCUE_MODE
        return Intent.INSTALL if deployable else Intent.NOTHING
    return Intent.NOTHING
