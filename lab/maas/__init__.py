"""The lab's MAAS: its REST API, its boot service, and the faults that operators meet."""

from lab.maas.boot.intent import Intent, Phase, Progress
from lab.maas.boot.ipxe import BootAssets
from lab.maas.clock import Clock, SystemClock
from lab.maas.config import Delays, DiskSpec, Hardware, Image, MaasConfig, SubnetSpec, User
from lab.maas.errors import BadSnapshot, LabMaasError, PowerError, UnknownFault, UnknownMachine
from lab.maas.faults import Fault
from lab.maas.power import IpmiPower, PowerDriver, PowerState, PowerTarget, StubPower
from lab.maas.server import MaasServer, start_maas

__all__ = [
    "BadSnapshot",
    "BootAssets",
    "Clock",
    "Delays",
    "DiskSpec",
    "Fault",
    "Hardware",
    "Image",
    "Intent",
    "IpmiPower",
    "LabMaasError",
    "MaasConfig",
    "MaasServer",
    "Phase",
    "PowerDriver",
    "PowerError",
    "PowerState",
    "PowerTarget",
    "Progress",
    "StubPower",
    "SubnetSpec",
    "SystemClock",
    "UnknownFault",
    "UnknownMachine",
    "User",
    "start_maas",
]
