"""How often links of a node have gone down, as one collection counts it."""

from __future__ import annotations

from collections.abc import Mapping

from health.checks.ib_counters import COUNTERS
from health.checks.ib_source import ib_ports
from health.checks.net_flaps import CHANGES
from health.checks.sources import files
from health.errors import HealthError
from health.evidence import Evidence
from health.fleet import Reading

_PHYSICAL = ("en", "eth", "ib", "bond")


def link_readings(evidence: Evidence) -> Mapping[str, Reading]:
    """Return the counter of each physical link: carrier changes of interfaces, downs of fabric ports."""
    counts: dict[str, int] = {}
    for find in (_carriers, _ports):
        try:
            counts |= find(evidence)
        except HealthError:
            continue
    began = evidence.began
    return {link: Reading(began.wall_clock, began.boot_id, count) for link, count in counts.items()}


def _carriers(evidence: Evidence) -> dict[str, int]:
    found = {path.split("/")[4]: text.strip() for path, text in files(evidence, CHANGES.id).items()}
    return {
        name: int(text) for name, text in found.items() if text.isdecimal() and name.startswith(_PHYSICAL)
    }


def _ports(evidence: Evidence) -> dict[str, int]:
    names = {one.device: one.identity for one in ib_ports(evidence)}
    found = {}
    for path, text in files(evidence, COUNTERS.id).items():
        parts = path.split("/")
        if parts[-1] == "link_downed" and text.strip().isdecimal():
            found[names.get(parts[4], parts[4])] = int(text)
    return found
