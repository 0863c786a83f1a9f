"""What a lab is asked to hold: how many nodes of each rack."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from lab.spec import LabNet, NodeSpec, RackKind, rack_specs


@dataclass(frozen=True, slots=True)
class Plan:
    """Number of nodes by rack."""

    nodes: int = 8  # rack lab
    real: int = 0  # rack lab-real
    light: int = 0  # rack lab-light

    def count(self, rack: RackKind) -> int:
        return {RackKind.NAMESPACE: self.nodes, RackKind.REAL: self.real, RackKind.LIGHT: self.light}[rack]

    def specs(self, net: LabNet) -> tuple[NodeSpec, ...]:
        """Return every node of the plan. Raises BadRequest where a rack has no room."""
        return tuple(spec for rack in RackKind for spec in rack_specs(net, rack, self.count(rack)))

    def with_all_of(self, other: Plan) -> Plan:
        """Return the plan that holds both: a running lab grows and never shrinks."""
        return Plan(max(self.nodes, other.nodes), max(self.real, other.real), max(self.light, other.light))

    def document(self) -> dict[str, int]:
        return asdict(self)

    @classmethod
    def read(cls, document: Mapping[str, Any]) -> Plan:
        return cls(**{name: int(document[name]) for name in ("nodes", "real", "light")})
