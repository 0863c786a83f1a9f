"""Is ACS off (or on) on the bridges, as the profile says? On, it sends GPU traffic through the CPU."""

from __future__ import annotations

import re

from health import limits
from health.check import Check, Collect, Level
from health.checks.sources import PCI_DEVICES, files, whole
from health.errors import Unreadable
from health.evidence import Evidence
from health.outcome import Action, Finding, Outcome, conclude
from health.readers.pci import read_lspci
from inventory.model import Profile

ID = "pcie.acs"
LSPCI = Collect(
    "pcie.lspci", argv=("lspci", "-D", "-vvv"), timeout_s=20, needs_root=True, limit_bytes=4_194_304
)


def judge(evidence: Evidence, profile: Profile) -> Outcome:
    """Compare ACSCtl of every bridge with `pcie.acs`: on or off."""
    wanted = limits.text(profile, "pcie.acs")
    text = whole(evidence, LSPCI.id).text
    findings, bridges = [], 0
    if len(read_lspci(text)) != len(files(evidence, PCI_DEVICES.id)):
        raise Unreadable("lspci -vvv", "it does not describe all devices of the bus")
    for block in re.split(r"\n(?=[0-9a-f]{4,5}:)", text):
        control = re.search(r"ACSCtl:\s*(.*)", block)
        if not control:
            continue
        bridges += 1
        on = "SrcValid+" in control[1] or "ReqRedir+" in control[1]
        if on != (wanted == "on"):
            address = block.split(" ", 1)[0]
            message = f"ACS is {'on' if on else 'off'}; the profile wants {wanted}"
            findings.append(Finding("pcie", address, message, Action.REBOOT))
    if not bridges:
        raise Unreadable("lspci -vvv", "no bridge shows ACS; it needs root")
    return conclude(ID, findings, f"ACS {wanted} on {bridges} devices")


CHECK = Check(id=ID, level=Level.QUICK, collects=(LSPCI, PCI_DEVICES), judge=judge)
