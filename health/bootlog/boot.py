"""One boot as its log tells it: lines in order, and whether they are proven to be all."""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property

from health.bootlog.masks import Masked, mask
from health.readers.kernel import KernelLine
from health.rules.kernel import is_listed

_EVENT = "Xid ("  # SXid, too
# Where a boot's own story ends: what comes later is life, not booting.
SETTLED_S = 300.0
_BIOS = re.compile(r"^DMI: .*?, BIOS (?P<version>\S+)")
_KERNEL = re.compile(r"^Linux version (?P<version>\S+)")
_DRIVER = re.compile(
    r"^(?:NVRM: )?loading NVIDIA .*?Kernel Module\s+(?:for \S+\s+)?(?P<version>\d+\.\d+(?:\.\d+)?)"
)


class Witness(StrEnum):
    """Where a boot's lines were read. A console shows fewer kinds of lines than the kernel's own ring."""

    RING = "ring"
    CONSOLE = "console"


@dataclass(frozen=True, slots=True)
class Cohort:
    """Nodes whose boots must be alike: one profile, firmware, kernel and driver, seen in one way."""

    profile: str
    firmware: str
    kernel: str
    driver: str
    witness: Witness = Witness.RING

    @property
    def id(self) -> str:
        """Return a short key that stays the same."""
        packed = "\n".join((self.profile, self.firmware, self.kernel, self.driver, self.witness))
        return hashlib.sha256(packed.encode()).hexdigest()[:12]

    @property
    def name(self) -> str:
        """Name the cohort in one line."""
        seen = "" if self.witness is Witness.RING else f", seen on the {self.witness}"
        return f"{self.profile}, BIOS {self.firmware}, kernel {self.kernel}, driver {self.driver}{seen}"


@dataclass(frozen=True)
class Boot:
    """One boot of one node. `gap` says why its lines are not all; None where they are proven to be.

    `faults` are the lines that the deny list is about: they are judged by it, never learned, never odd.
    """

    node: str
    lines: tuple[Masked, ...]
    texts: tuple[str, ...]
    gap: str | None = None
    faults: tuple[str, ...] = ()

    @cached_property
    def counts(self) -> Mapping[str, int]:
        """Count the lines of each template."""
        return Counter(line.template for line in self.lines)


def read_boot(node: str, lines: Iterable[KernelLine], gap: str | None = None) -> Boot:
    """Return what a kernel's log says of its boot: the lines until the node has settled."""
    said = (
        line.text
        for line in lines
        if line.text and (line.since_boot_s is None or line.since_boot_s <= SETTLED_S)
    )
    return boot_from(node, said, gap)


def boot_from(node: str, said: Iterable[str], gap: str | None = None) -> Boot:
    """Return a boot of these lines, in their order."""
    texts: list[str] = []
    faults: list[str] = []
    for text in said:
        (faults if _EVENT in text or is_listed(text) else texts).append(text)
    return Boot(node, tuple(mask(text) for text in texts), tuple(texts), gap, tuple(faults))


def cohort_of(profile: str, boot: Boot, witness: Witness = Witness.RING) -> Cohort:
    """Return the cohort that a boot's own first lines name; what it does not say is "unknown"."""
    found = {"firmware": "unknown", "kernel": "unknown", "driver": "unknown"}
    for text in boot.texts:
        for name, pattern in (("firmware", _BIOS), ("kernel", _KERNEL), ("driver", _DRIVER)):
            if found[name] == "unknown" and (match := pattern.match(text)):
                found[name] = match["version"]
    return Cohort(profile, **found, witness=witness)


def read_cohort(document: Mapping[str, str]) -> Cohort:
    """Read a cohort from its JSON form. Raises KeyError, TypeError or ValueError for another form."""
    named = {name: str(document[name]) for name in ("profile", "firmware", "kernel", "driver")}
    return Cohort(**named, witness=Witness(document["witness"]))
