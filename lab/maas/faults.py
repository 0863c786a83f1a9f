"""Named faults of the lab MAAS, set and lifted while it runs."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum

from lab.maas.errors import UnknownFault


class Fault(StrEnum):
    """Everything that can be made to go wrong."""

    MAAS_503 = "maas-503"
    MAAS_DOWN = "maas-down"
    SLOW = "slow"
    HALF_BODY = "half-body"
    HTML_ERROR = "html-error"
    NO_RACK = "no-rack"
    DEPLOY_FAILS = "deploy-fails"
    COMMISSION_FAILS = "commission-fails"
    TEST_FAILS = "test-fails"
    RELEASE_FAILS = "release-fails"
    STUCK_DEPLOYING = "stuck-deploying"


OF_MACHINE = frozenset(
    {
        Fault.DEPLOY_FAILS,
        Fault.COMMISSION_FAILS,
        Fault.TEST_FAILS,
        Fault.RELEASE_FAILS,
        Fault.STUCK_DEPLOYING,
    }
)
# Seconds: how long to wait before the answer (slow), what Retry-After says (maas-503).
_DEFAULTS = {Fault.SLOW: 3.0, Fault.MAAS_503: 2.0}


@dataclass(slots=True)
class Faults:
    """The faults in force: of the whole service, and of single machines by system id."""

    service: dict[Fault, float] = field(default_factory=dict)
    machines: dict[str, set[Fault]] = field(default_factory=dict)

    def switch(self, fault: Fault, *, on: bool, value: float | None = None) -> None:
        """Set or lift a fault of the service."""
        if on:
            self.service[fault] = _DEFAULTS.get(fault, 0.0) if value is None else value
        else:
            self.service.pop(fault, None)

    def switch_machine(self, system_id: str, fault: Fault, *, on: bool) -> None:
        """Set or lift a fault of one machine."""
        own = self.machines.setdefault(system_id, set())
        if on:
            own.add(fault)
        else:
            own.discard(fault)

    def active(self, fault: Fault) -> bool:
        """Say whether the service has this fault."""
        return fault in self.service

    def of(self, system_id: str, fault: Fault) -> bool:
        """Say whether this machine has this fault."""
        return fault in self.machines.get(system_id, ())


def parse_fault(name: str) -> Fault:
    """Return the fault of that name. Raises UnknownFault."""
    try:
        return Fault(name)
    except ValueError:
        raise UnknownFault(name, tuple(Fault)) from None
