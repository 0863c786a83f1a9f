"""What a stage is given, and what it gives back."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from inventory.model import Node, Profile
from inventory.records import Facts, NodeState
from provision.access import Access
from provision.stages.site_maas import SiteMaas
from provision.waiting import Pace

DEPLOY_ASKED = "deploy-asked"  # the event that precedes every deployment that we ask MAAS for

# Seconds a stage may take where the profile says nothing.
_DEADLINES = {
    "reachable": 120.0,
    "enlisted": 300.0,
    "commissioned": 2700.0,
    "console": 180.0,  # how long a console may show a cause before the boot is given up
    "released": 3600.0,
    "deployed": 3600.0,
    "ssh": 900.0,
    "configured": 5400.0,
    "verified": 900.0,
    "maas": 1800.0,  # how long a MAAS that does not answer is waited for
}


@dataclass(frozen=True, slots=True)
class Options:
    """What the operator asked of a run. Plain values only: they are stored by the engine."""

    until: str = "pool"
    image: str = ""  # osystem/series; empty: the profile's
    reason: str = ""
    override: str = ""  # the guard that the operator passed
    who: str = ""
    reimage: bool = False
    max_fail: int = -1  # nodes; -1: no limit
    transport: str = "ssh"  # of plays: ssh or worker
    attempt: int = 1
    poll_s: float = 0.25  # how often the engine looks for a finished stage


@dataclass(frozen=True)
class NodeJob:
    """One node on its way through one stage of one run."""

    node: Node
    profile: Profile
    run: str
    options: Options
    access: Access
    maas: SiteMaas
    note: Callable[[str], None]  # a line of progress: to the node's log and to whoever watches
    pace: Pace = field(default_factory=Pace)

    @property
    def state(self) -> NodeState:
        """What the store knows of the node now."""
        return self.access.store.node(self.node.name)

    @property
    def image(self) -> str:
        """The OS image wanted, as MAAS names it: osystem/series."""
        return self.options.image or self.profile.os_image

    def deadline(self, stage: str) -> float:
        """Seconds that `stage` may take: the profile's, else a generous default."""
        return float(self.profile.deadlines.get(stage, _DEADLINES[stage]))


@dataclass(frozen=True, slots=True)
class Reached:
    """A stage is reached. `already` when nothing had to be done; `facts` go to the projection."""

    detail: str
    already: bool = False
    facts: Facts = field(default_factory=Facts)
