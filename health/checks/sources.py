"""Items that several checks look at, and how each is opened: what cannot be read is unknown."""

from __future__ import annotations

from collections.abc import Mapping
from fnmatch import fnmatchcase

from health.check import Collect
from health.errors import NotCollected
from health.evidence import Evidence, Item
from health.readers.json_text import sections
from health.readers.pci import PciDevice, read_pci
from health.readers.smi import Gpu, SmiReport, read_smi
from inventory.model import Profile

NVIDIA_SMI = Collect("gpu.smi", argv=("nvidia-smi", "-q"), timeout_s=25, limit_bytes=1_048_576)
PCI_DEVICES = Collect("pci.devices", file="/sys/bus/pci/devices/*/uevent", limit_bytes=2_097_152)
# One pattern for current_ and max_link_speed and _width: each pattern is one process on the node.
PCI_LINKS = Collect(
    "pci.links", file="/sys/bus/pci/devices/*/[cm][ua][rx]*_link_[sw]*", limit_bytes=2_097_152
)
MODULES = Collect("kernel.modules", file="/proc/modules")
CMDLINE = Collect("kernel.cmdline", file="/proc/cmdline")
MEMINFO = Collect("host.meminfo", file="/proc/meminfo")
SERVICES = Collect(
    "host.services",
    argv=("systemctl", "list-units", "--type=service", "--all", "--plain", "--no-pager", "--full"),
    limit_bytes=1_048_576,
)


def whole(evidence: Evidence, id: str) -> Item:
    """Return an item that ended well and came back whole. Raises NotCollected."""
    item = evidence.item(id)
    if item is None:
        raise NotCollected(id, f"{id} was not collected")
    if item.problem:
        raise NotCollected(id, item.problem)
    return item


def ended(evidence: Evidence, id: str, *codes: int) -> Item:
    """Return an item that came back whole with one of `codes`, for tools whose code is an answer."""
    item = evidence.item(id)
    if item is None:
        raise NotCollected(id, f"{id} was not collected")
    broken = item.timed_out or item.denied or item.missing or item.truncated or item.abandoned
    if broken or item.rc not in codes:
        raise NotCollected(id, item.problem or f"{item.source} ended with {item.rc}")
    return item


def files(evidence: Evidence, id: str) -> Mapping[str, str]:
    """Return the files of a pattern by their paths. One that could not be read is not among them.

    Raises NotCollected where none came back.
    """
    item = ended(evidence, id, 0, 1)
    found = sections(item.text)
    if not found:
        raise NotCollected(id, item.problem or f"{item.source}: no such file")
    if item.source.startswith("/"):
        depth = item.source.count("/")
        odd = [one for one in found if one.count("/") != depth or not fnmatchcase(one, item.source)]
        if odd:
            raise NotCollected(id, f"{odd[0][:60]!r} is not of {item.source}")
    return found


def word(evidence: Evidence, id: str) -> str:
    """Return the one line of a small file. Raises NotCollected where it is empty."""
    item = whole(evidence, id)
    text = item.text.strip()
    # The kernel ends its files with a new line: without it, some of the word is missing, too.
    cut = item.source.startswith("/") and not item.text.endswith("\n")
    if not text or "\n" in text or cut:
        raise NotCollected(id, f"{id} does not hold one line")
    return text


def memory(evidence: Evidence) -> str:
    """Return /proc/meminfo. Raises NotCollected where it does not end as it should."""
    text = whole(evidence, MEMINFO.id).text
    if not text.endswith(" kB\n"):
        raise NotCollected(MEMINFO.id, "/proc/meminfo is not whole")
    return text


def modules(evidence: Evidence) -> frozenset[str]:
    """Return the names of loaded kernel modules. Raises NotCollected."""
    rows = [line.split() for line in whole(evidence, MODULES.id).text.splitlines()]
    states = ("Live", "Loading", "Unloading")
    if (
        not rows
        or any(len(row) < 6 or row[4] not in states for row in rows)
        or len({row[0] for row in rows}) != len(rows)
    ):
        raise NotCollected(MODULES.id, "/proc/modules is not whole")
    return frozenset(row[0] for row in rows if row[4] == "Live")


def smi_report(evidence: Evidence) -> SmiReport:
    """Return what `nvidia-smi -q` said. Raises NotCollected or Unreadable."""
    return read_smi(whole(evidence, NVIDIA_SMI.id).text)


def gpus(evidence: Evidence, profile: Profile) -> tuple[Gpu, ...]:
    """Return the GPUs, of which there must be as many as the profile says where it does.

    Raises NotCollected for fewer: what is not seen cannot be judged by any check of its fields.
    """
    report = smi_report(evidence)
    wanted = profile.limit("gpu.count")
    if not report.gpus or (isinstance(wanted, int) and len(report.gpus) < wanted):
        raise NotCollected(NVIDIA_SMI.id, f"nvidia-smi -q describes only {len(report.gpus)} GPUs")
    return report.gpus


def pci_devices(evidence: Evidence) -> tuple[PciDevice, ...]:
    """Return the PCI devices with their links. Raises NotCollected or Unreadable."""
    found = {**files(evidence, PCI_DEVICES.id), **files(evidence, PCI_LINKS.id)}
    return read_pci(found)
