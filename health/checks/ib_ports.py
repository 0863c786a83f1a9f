"""Is every fabric port of the profile active, at its rate, with an address from the subnet manager?"""

from __future__ import annotations

from health import limits
from health.check import Check, Level
from health.checks.ib_source import IB, ib_ports
from health.evidence import Evidence
from health.outcome import Action, Finding, Outcome, conclude
from health.rules import expect
from health.rules.infiniband import judge_ports
from inventory.model import Profile

ID = "ib.ports"


def judge(evidence: Evidence, profile: Profile) -> Outcome:
    """Compare the ports of `ib.hcas` with `ib.rate_gbps` and `ib.link_layer` (InfiniBand)."""
    wanted = limits.words(profile, "ib.hcas")
    rate = limits.number(profile, "ib.rate_gbps")
    layer = (limits.optional_words(profile, "ib.link_layer") or ("InfiniBand",))[0]
    ports = [one for one in ib_ports(evidence) if one.pci in wanted]
    findings = expect.same_set("nic", [one.pci for one in ports], wanted, "port of adapter", Action.RESEAT)
    for one in ports:
        findings += judge_ports((one,))
        if one.layer != layer:
            message = f"speaks {one.layer or 'nothing known'}, not {layer}"
            findings.append(Finding("nic", one.identity, message, Action.INVESTIGATE))
        if not one.up and not any(found.identity == one.identity for found in findings):
            message = f"port is {one.state}, link {one.physical}"
            findings.append(Finding("nic", one.identity, message, Action.RESEAT))
        if one.up and one.rate != rate:
            findings.append(Finding("nic", one.identity, f"{one.rate} of {rate:g} Gb/s", Action.RESEAT))
    return conclude(ID, findings, f"{len(ports)} ports at {rate:g} Gb/s")


CHECK = Check(id=ID, level=Level.QUICK, collects=IB, judge=judge)
