"""Do error counters of the fabric ports grow?"""

from __future__ import annotations

from health import limits
from health.check import Check, Collect, Level
from health.checks.counting import window
from health.checks.ib_source import IB, ib_ports
from health.evidence import Evidence
from health.outcome import Action, Finding, Outcome, Status, conclude
from health.readers.json_text import sections
from health.rules.port_growth import judge_growth
from inventory.model import Profile

ID = "ib.counters"
_PATTERN = "/sys/class/infiniband/*/ports/*/counters/*"
COUNTERS = Collect("ib.counters", file=_PATTERN, limit_bytes=1_048_576)
LATER = Collect("ib.counters_later", file=_PATTERN, limit_bytes=1_048_576, after_s=8)


def judge(evidence: Evidence, profile: Profile) -> Outcome:
    """Judge growth since the baseline, else over the seconds between two readings, each port by itself."""
    wanted = limits.words(profile, "ib.hcas")
    devices = {one.device: one.identity for one in ib_ports(evidence) if one.pci in wanted}
    found = window(evidence, COUNTERS.id, LATER.id, _read)
    seen = {name.split(" ", 1)[0].partition("/")[0] for name in found.by}
    blind = sorted(set(devices) - seen)
    findings = [
        Finding("nic", devices[name], "its counters cannot be read", Action.RERUN, Status.UNKNOWN)
        for name in blind
    ]
    findings += judge_growth(found, devices)
    if len(devices) < len(wanted):
        message = f"only {len(devices)} of {len(wanted)} adapters show ports"
        findings.append(Finding("nic", "adapters", message, Action.RERUN, Status.UNKNOWN))
    return conclude(ID, findings, f"no growth of note in {found.seconds:.0f} s on {len(devices)} ports")


def _read(text: str) -> dict[str, int]:
    found = {}
    for path, value in sections(text).items():
        parts = path.split("/")
        if value.strip().isdecimal():
            found[f"{parts[4]}/{parts[6]} {parts[-1]}"] = int(value)
    return found


CHECK = Check(id=ID, level=Level.QUICK, collects=(*IB, COUNTERS, LATER), judge=judge)
