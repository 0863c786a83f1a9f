"""What the state of Ethernet interfaces says."""

from __future__ import annotations

import re
from collections import defaultdict

from health.outcome import Action, Finding, Status
from health.readers.network import BondMember, Interface

# Without a profile, a bonded port of a GPU node is expected to run at no less, Gb/s.
BONDED_SPEED = 200.0


def judge_links(interfaces: tuple[Interface, ...], *, bonded_speed: float | None = None) -> list[Finding]:
    """Judge bonds and their members; a port of its own that is down may just not be cabled."""
    findings = []
    members: dict[str, list[Interface]] = defaultdict(list)
    for one in interfaces:
        if one.bond:
            members[one.bond].append(one)
    for one in interfaces:
        if one.is_bond:
            findings += _bond(one, members[one.name], interfaces)
            if not one.carrier or one.state == "DOWN":
                findings.append(Finding("nic", one.name, f"bond {one.name} is down", Action.RESEAT))
        elif one.bond and (not one.carrier or one.state == "DOWN"):
            message = f"{one.name} of bond {one.bond} is down"
            findings.append(Finding("nic", one.name, message, Action.RESEAT))
        elif one.bond and bonded_speed and one.speed and one.speed < bonded_speed:
            message = f"{one.name} of bond {one.bond} runs at {one.speed:.0f} Gb/s"
            findings.append(Finding("nic", one.name, message, Action.RESEAT))
        elif one.name.startswith("ib") and "UP" in one.flags and not one.carrier:
            findings.append(Finding("nic", one.name, f"{one.name} has no carrier", Action.RESEAT))
    return findings


def _bond(bond: Interface, members: list[Interface], interfaces: tuple[Interface, ...]) -> list[Finding]:
    if len(members) > 1:
        return []
    # What a lone member is the twin of: the same function of another card, without a carrier.
    suffix = re.search(r"(f\d+|np\d+)$", members[0].name) if members else None
    twins = [
        one.name
        for one in interfaces
        if suffix and one.name.endswith(suffix[0]) and not one.bond and not one.carrier and not one.is_bond
    ]
    who = ", ".join(twins) or bond.name
    message = f"bond {bond.name} has {len(members)} member" + (f"; {who} is down" if twins else "")
    return [Finding("nic", who, message, Action.RESEAT)]


def judge_members(members: tuple[BondMember, ...]) -> list[Finding]:
    """Judge a bond by the kernel's own file."""
    findings = []
    for one in members:
        if not one.up:
            message = f"{one.name} of {one.bond} is down"
            findings.append(Finding("nic", one.name, message, Action.RESEAT))
        elif one.failures > 5:
            message = f"{one.name} of {one.bond} has lost its link {one.failures} times"
            findings.append(Finding("nic", one.name, message, Action.INVESTIGATE, Status.WARN))
    return findings
