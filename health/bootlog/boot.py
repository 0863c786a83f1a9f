"""One boot as its log tells it: lines in order, and whether they are proven to be all."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property

from health.bootlog.masks import Masked, mask
from health.readers.kernel import KernelLine

# Where a boot's own story ends: what comes later is life, not booting.
SETTLED_S = 300.0
_BIOS = re.compile(r"^DMI: .*?, BIOS (?P<version>\S+)")
_KERNEL = re.compile(r"^Linux version (?P<version>\S+)")
_DRIVER = re.compile(
    r"^(?:NVRM: )?loading NVIDIA .*?Kernel Module\s+(?:for \S+\s+)?(?P<version>\d+\.\d+(?:\.\d+)?)"
)


@dataclass(frozen=True, slots=True)
class Cohort:
    """Nodes whose boots must be alike: one profile, firmware, kernel and driver."""

    profile: str
    firmware: str
    kernel: str
    driver: str

    @property
    def name(self) -> str:
        """Name the cohort in one line."""
        return f"{self.profile}, BIOS {self.firmware}, kernel {self.kernel}, driver {self.driver}"


@dataclass(frozen=True)
class Boot:
    """One boot of one node. `gap` says why its lines are not all; None where they are proven to be."""

    node: str
    lines: tuple[Masked, ...]
    texts: tuple[str, ...]
    gap: str | None = None

    @cached_property
    def counts(self) -> Mapping[str, int]:
        """Count the lines of each template."""
        return Counter(line.template for line in self.lines)


def read_boot(node: str, lines: Iterable[KernelLine], gap: str | None = None) -> Boot:
    """Return what a kernel's log says of its boot: the lines until the node has settled."""
    own = [
        line for line in lines if line.text and (line.since_boot_s is None or line.since_boot_s <= SETTLED_S)
    ]
    texts = tuple(line.text for line in own)
    return Boot(node, tuple(mask(text) for text in texts), texts, gap)


def cohort_of(profile: str, boot: Boot) -> Cohort:
    """Return the cohort that a boot's own first lines name; what it does not say is "unknown"."""
    found = {"firmware": "unknown", "kernel": "unknown", "driver": "unknown"}
    for text in boot.texts:
        for name, pattern in (("firmware", _BIOS), ("kernel", _KERNEL), ("driver", _DRIVER)):
            if found[name] == "unknown" and (match := pattern.match(text)):
                found[name] = match["version"]
    return Cohort(profile, **found)
