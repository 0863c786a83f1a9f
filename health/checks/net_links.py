"""Are the Ethernet links and bonds of the profile up, with all members, at their speed?"""

from __future__ import annotations

from health import limits
from health.check import Check, Collect, Level
from health.checks.sources import files, whole
from health.evidence import Evidence
from health.outcome import Action, Finding, Outcome, Status, conclude
from health.readers.network import read_links
from inventory.model import Profile

ID = "net.links"
LINKS = Collect("net.links", argv=("ip", "-j", "link"))
SPEEDS = Collect("net.speeds", file="/sys/class/net/*/speed")


def judge(evidence: Evidence, profile: Profile) -> Outcome:
    """Compare `net.interfaces` with the kernel's view, and `net.bond_members` with `net.speed_gbps` too."""
    names = limits.words(profile, "net.interfaces")
    members = limits.optional_words(profile, "net.bond_members")
    speed = limits.optional_number(profile, "net.speed_gbps", 0)
    found = {one.name: one for one in read_links(whole(evidence, LINKS.id).text)}
    speeds = {path.split("/")[4]: text.strip() for path, text in files(evidence, SPEEDS.id).items()}
    findings = []
    for name in (*names, *members):
        one = found.get(name)
        if one is None:
            findings.append(Finding("nic", name, f"interface {name} is missing", Action.RESEAT))
            continue
        if not one.carrier or "UP" not in one.flags:
            findings.append(Finding("nic", name, f"{name} is down", Action.RESEAT))
        elif name in members and not one.bond:
            findings.append(Finding("nic", name, f"{name} has left its bond", Action.RESTART_SERVICE))
        elif name in members and speed:
            rate = speeds.get(name, "")
            if not rate.isdecimal():
                message = f"the speed of {name} cannot be read"
                findings.append(Finding("nic", name, message, Action.RERUN, Status.UNKNOWN))
            elif int(rate) < speed * 1000:
                message = f"{name} runs at {int(rate) / 1000:g} of {speed:g} Gb/s"
                findings.append(Finding("nic", name, message, Action.RESEAT))
    return conclude(ID, findings, f"{', '.join(names)} up")


CHECK = Check(id=ID, level=Level.QUICK, collects=(LINKS, SPEEDS), judge=judge)
