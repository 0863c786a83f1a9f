"""Do all CPUs run under the frequency governor that the profile says?"""

from __future__ import annotations

from health import limits
from health.check import Check, Collect, Level
from health.checks.host_cpus import ONLINE, cpu_set
from health.checks.sources import files, word
from health.evidence import Evidence
from health.outcome import Action, Finding, Outcome, Status, conclude
from inventory.model import Profile

ID = "host.governor"
GOVERNORS = Collect("cpu.governors", file="/sys/devices/system/cpu/cpu*/cpufreq/scaling_governor")


def judge(evidence: Evidence, profile: Profile) -> Outcome:
    """Compare with `host.governor` (performance where not stated)."""
    wanted = limits.optional_words(profile, "host.governor") or ("performance",)
    found = files(evidence, GOVERNORS.id)
    online = cpu_set(word(evidence, ONLINE.id))
    odd = {path.split("/")[5]: text.strip() for path, text in found.items() if text.strip() not in wanted}
    findings = []
    if len(found) != len(online):
        message = f"{len(found)} of {len(online)} CPUs show a governor"
        findings.append(Finding("cpu", "CPUs of this node", message, Action.RERUN, Status.UNKNOWN))
    if odd:
        cpu, governor = next(iter(odd.items()))
        message = f"{len(odd)} CPUs run under {governor}; the profile wants {' or '.join(wanted)}"
        findings.append(Finding("cpu", cpu, message, Action.RESTART_SERVICE))
    return conclude(ID, findings, f"{len(found)} CPUs under {wanted[0]}")


CHECK = Check(id=ID, level=Level.QUICK, collects=(GOVERNORS, ONLINE), judge=judge)
