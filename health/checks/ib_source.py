"""Fabric ports as evidence, each with the PCI address of its adapter."""

from __future__ import annotations

from health.check import Collect
from health.checks.sources import files
from health.evidence import Evidence
from health.readers.infiniband import Port, read_sysfs

# Reached through the PCI device: the names under /sys/class/infiniband change from boot to boot.
_DEVICES = "/sys/bus/pci/devices/*"
PORTS = Collect("ib.ports", file=f"{_DEVICES}/infiniband/*/ports/*/*")
DEVICES = Collect("ib.devices", file=f"{_DEVICES}/infiniband/*/*")
# operstate and speed
NETDEVS = Collect("ib.netdevs", file=f"{_DEVICES}/net/*/[os]p*")
IB = (PORTS, DEVICES, NETDEVS)


def ib_ports(evidence: Evidence) -> tuple[Port, ...]:
    """Return the ports. Raises NotCollected or Unreadable."""
    found = {**files(evidence, PORTS.id), **files(evidence, DEVICES.id), **files(evidence, NETDEVS.id)}
    return read_sysfs(found)
