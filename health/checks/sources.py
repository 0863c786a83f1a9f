"""Items that several checks look at, and how each is opened: what cannot be read is unknown."""

from __future__ import annotations

from health.check import Collect
from health.errors import NotCollected
from health.evidence import Evidence, Item
from health.readers.smi import SmiReport, read_smi

NVIDIA_SMI = Collect("gpu.smi", argv=("nvidia-smi", "-q"), timeout_s=25, limit_bytes=1_048_576)


def whole(evidence: Evidence, id: str) -> Item:
    """Return an item that ended well and came back whole. Raises NotCollected."""
    item = evidence.item(id)
    if item is None:
        raise NotCollected(id, "it was not collected")
    if item.problem:
        raise NotCollected(id, item.problem)
    return item


def ended(evidence: Evidence, id: str, *codes: int) -> Item:
    """Return an item that came back whole with one of `codes`, for tools whose code is an answer."""
    item = evidence.item(id)
    if item is None:
        raise NotCollected(id, "it was not collected")
    if item.problem and (item.rc not in codes or item.timed_out or item.denied or item.truncated):
        raise NotCollected(id, item.problem)
    return item


def smi_report(evidence: Evidence) -> SmiReport:
    """Return what `nvidia-smi -q` said. Raises NotCollected or Unreadable."""
    return read_smi(whole(evidence, NVIDIA_SMI.id).text)
