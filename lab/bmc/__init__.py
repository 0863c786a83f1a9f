"""A rack of BMCs: IPMI 2.0 over LAN, written from the specification, all in one process."""

from lab.bmc.bmc import Bmc
from lab.bmc.faults import Fault
from lab.bmc.light import LightChassis
from lab.bmc.rack import Rack, start_rack
from lab.bmc.spec import BmcSpec, BmcUser, Hardware, Privilege

__all__ = [
    "Bmc",
    "BmcSpec",
    "BmcUser",
    "Fault",
    "Hardware",
    "LightChassis",
    "Privilege",
    "Rack",
    "start_rack",
]
