"""What PCI links say: an endpoint that runs below what it and its slot can do."""

from __future__ import annotations

import re

from health.outcome import Action, Finding, Status
from health.readers.pci import PciDevice

_WATCHED = re.compile(
    r"3D controller|Infiniband controller|Ethernet controller|Non-Volatile memory|VGA|Network controller",
    re.IGNORECASE,
)


def judge_links(devices: tuple[PciDevice, ...]) -> list[Finding]:
    """Judge endpoints; bridges with nothing fast behind them are narrow by design."""
    findings = []
    for one in devices:
        if one.is_bridge or not _WATCHED.search(one.kind):
            continue
        narrow = one.width is not None and one.width_max is not None and one.width < one.width_max
        slow = one.speed is not None and one.speed_max is not None and one.speed < one.speed_max
        if not narrow and not slow:
            continue
        # A display adapter that idles lowers its speed; a narrow link is never for saving power.
        status = Status.FAIL if narrow or "VGA" not in one.kind else Status.WARN
        message = (
            f"PCIe link at {one.speed} GT/s x{one.width}, could be {one.speed_max} GT/s x{one.width_max}"
        )
        findings.append(Finding("pcie", one.address, message, Action.RESEAT, status))
    return findings
