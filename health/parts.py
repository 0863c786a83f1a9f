"""Which part stands where: from an address or a slot to what the part takes with it when it is moved."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from health.checks.host_dimms import DIMMS
from health.checks.ib_source import ib_ports
from health.checks.sources import smi_report
from health.errors import HealthError
from health.evidence import Evidence

_ADDRESS = re.compile(r"(?:[0-9a-fA-F]{4,8}:)?[0-9a-fA-F]{2}:[0-9a-fA-F]{2}(?:\.[0-7])?")
_NO_SERIAL = re.compile(r"(?i)|0+|not specified|no dimm|unknown|n/a|to be filled.*")


def part_serials(evidence: Evidence) -> Mapping[str, str]:
    """Return what is known of a node's parts: PCI address or slot -> serial or GUID, with its kind.

    What cannot be read is left out: a part without a serial keeps the name of its place.
    """
    found: dict[str, str] = {}
    for find in (_gpus, _adapters, _dimms):
        try:
            found |= dict(find(evidence))
        except HealthError:
            continue
    return found


def serial_of(identity: str, parts: Mapping[str, str]) -> str:
    """Return the serial of the part that a finding names, or the finding's own words where none is known."""
    if identity in parts:
        return parts[identity]
    address = _ADDRESS.search(identity)
    return parts.get(_place(address[0]), identity) if address else identity


def _gpus(evidence: Evidence) -> Iterator[tuple[str, str]]:
    for gpu in smi_report(evidence).gpus:
        serial = gpu.value("serial_number")
        if serial and not _NO_SERIAL.fullmatch(serial):
            yield _place(gpu.address), f"GPU {serial}"


def _adapters(evidence: Evidence) -> Iterator[tuple[str, str]]:
    for port in ib_ports(evidence):
        if port.pci and port.guid.strip("0x:"):
            yield _place(port.pci), f"adapter {port.guid}"


def _dimms(evidence: Evidence) -> Iterator[tuple[str, str]]:
    item = evidence.item(DIMMS.id)
    for block in item.text.split("Memory Device")[1:] if item and item.ok else ():
        slot = re.search(r"^\s*Locator: (.+)$", block, re.MULTILINE)
        serial = re.search(r"^\s*Serial Number: (.+)$", block, re.MULTILINE)
        if slot and serial and not _NO_SERIAL.fullmatch(serial[1].strip()):
            yield slot[1].strip(), f"DIMM {serial[1].strip()}"


def _place(address: str) -> str:
    """Write a PCI address in one way: domain of four digits, no function, lower case."""
    words = address.lower().split(".")[0].split(":")
    domain = words[-3][-4:] if len(words) > 2 else "0000"
    return f"{domain}:{words[-2]}:{words[-1]}"
