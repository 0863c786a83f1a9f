"""Which machine a node is, as its firmware told the kernel: a profile of another proves nothing."""

from __future__ import annotations

import re
from fnmatch import fnmatchcase

from health import limits
from health.checks.kernel_source import KMSG
from health.errors import Unreadable
from health.evidence import Evidence
from health.readers.kernel import read_kernel
from inventory.model import Profile

# "DMI: Dell Inc. PowerEdge XE9680/0R6R3, BIOS 2.3.6 11/14/2024"; some have no board behind the name.
_PRODUCT = re.compile(r"^DMI: (?P<name>.+?)(?:/[^/,]*)?, BIOS ")


def product_of(evidence: Evidence) -> str:
    """Return the maker and name of the machine. Raises Unreadable where its log does not tell."""
    item = evidence.item(KMSG.id)
    lines = read_kernel(item.text) if item else ()
    for line in lines:
        if line.facility in (None, 0) and (found := _PRODUCT.match(line.text)):
            return found["name"].strip()
    raise Unreadable("kernel log", "it does not name the machine")


def other_hardware(evidence: Evidence, profile: Profile) -> str | None:
    """Say that a node is not the machine of `host.product`, or None where it is, or nothing tells."""
    wanted = limits.optional_words(profile, "host.product")
    if not wanted:
        return None
    try:
        product = product_of(evidence)
    except Unreadable:
        return None
    if any(fnmatchcase(product, pattern) for pattern in wanted):
        return None
    return f"it is a {product}; profile {profile.name} is for {' or '.join(wanted)}"
