"""Faults of a node itself, in force until they are cleared, or until what cures them has happened."""

from __future__ import annotations

from collections.abc import Callable
from enum import StrEnum
from pathlib import Path


class NodeFault(StrEnum):
    """What can be wrong with a node. Those that say so act at the next boot or installation.

    What strikes one GPU strikes the one on bus 3a, but for `gpu-missing`, which begins with 5d.
    """

    NO_LEASE = "no-lease"  # DHCP never answers; next boot
    PXE_LOOP = "pxe-loop"  # boots from the network again and again; next boot
    KERNEL_PANIC = "kernel-panic"  # the kernel finds no root file system and hangs; now or at the next boot
    DEPLOY_FAILS = "deploy-fails"  # the installer fails at the boot loader; next installation
    SSH_DEAD = "ssh-dead"  # the system comes up, sshd does not
    DISK_FULL = "disk-full"  # the root file system has no byte left
    MOUNT_MISSING = "mount-missing"  # /scratch is not mounted
    SWAP_ON = "swap-on"  # a swap partition is in use
    SERVICE_FAILED = "service-failed"  # nvidia-persistenced is in the failed state
    STUCK_PROCESSES = "stuck-processes"  # 24 processes hang in the kernel
    KERNEL_TAINTED = "kernel-tainted"  # the kernel has marked itself; default 128: it has oopsed
    CLOCK_BACK = "clock-back"  # how many years the clock is behind; default 5
    DIMM_MISSING = "dimm-missing"  # how many DIMMs the firmware no longer sees; default 1
    IB_PORT_DOWN = "ib-port-down"  # how many fabric ports have lost their link; default 1
    DOCKER_DEAD = "docker-dead"  # the container daemon does not answer
    DOCKER_NO_NVIDIA = "docker-no-nvidia"  # it answers, without the runtime that hands out GPUs
    XID = "xid"  # the driver logs this Xid; default 48
    SXID = "sxid"  # the driver logs this SXid as fatal; default 20034
    GPU_MISSING = "gpu-missing"  # how many GPUs have fallen off the bus; default 1
    GPU_LOST = "gpu-lost"  # nvidia-smi reaches no GPU because one does not answer
    GPU_ECC = "gpu-ecc"  # how many memory errors went uncorrected; default 1
    GPU_REMAP_PENDING = "gpu-remap-pending"  # a row waits for a reset to be remapped
    GPU_REMAP_FAILED = "gpu-remap-failed"  # a row could not be remapped
    GPU_PCIE_WIDTH = "gpu-pcie-width"  # over how many lanes the link runs; default 8
    GPU_THROTTLE = "gpu-throttle"  # too hot, and slowed down by its own hardware
    NVLINK_INACTIVE = "nvlink-inactive"  # how many links are inactive; default 1
    DRIVER_VERSION = "driver-version"  # another driver than the others have
    DRIVER_MISMATCH = "driver-mismatch"  # driver and library are of different versions
    FABRIC_MANAGER_STOPPED = "fabric-manager-stopped"  # the service does not run
    FABRIC_MANAGER_VERSION = "fabric-manager-version"  # it is not of the driver's version, and refuses to run
    SMI_HANGS = "smi-hangs"  # nvidia-smi hangs in the kernel
    SMI_CUT = "smi-cut"  # nvidia-smi prints half of what it should, and says that all went well
    DIES_IN_GATE = "dies-in-gate"  # loses power when something asks its GPUs, after having been configured


class Cure(StrEnum):
    """What takes a fault away by itself, as it would from the real part."""

    SERVICE_START = "service-start"
    GPU_RESET = "gpu-reset"
    BOOT = "boot"
    POWER_CUT = "power-cut"


# What the value is when none is given, and what counts as possible.
DEFAULTS = {
    NodeFault.GPU_MISSING: 1.0,
    NodeFault.CLOCK_BACK: 5.0,
    NodeFault.KERNEL_TAINTED: 128.0,
    NodeFault.GPU_PCIE_WIDTH: 8.0,
    NodeFault.XID: 48.0,
    NodeFault.SXID: 20034.0,
}
LIMITS = {
    NodeFault.GPU_MISSING: 8.0,
    NodeFault.CLOCK_BACK: 40.0,
    NodeFault.KERNEL_TAINTED: 1048575.0,
    NodeFault.DIMM_MISSING: 32.0,
    NodeFault.IB_PORT_DOWN: 8.0,
    NodeFault.XID: 172.0,
    NodeFault.SXID: 30000.0,
    NodeFault.GPU_ECC: 1000000.0,
    NodeFault.GPU_PCIE_WIDTH: 16.0,
    NodeFault.NVLINK_INACTIVE: 18.0,
}
# Those that the node's own root file system carries.
INSIDE = frozenset(
    {
        NodeFault.SSH_DEAD,
        NodeFault.DISK_FULL,
        NodeFault.MOUNT_MISSING,
        NodeFault.SERVICE_FAILED,
        NodeFault.STUCK_PROCESSES,
        NodeFault.KERNEL_TAINTED,
        NodeFault.CLOCK_BACK,
        NodeFault.FABRIC_MANAGER_STOPPED,
        NodeFault.FABRIC_MANAGER_VERSION,
    }
)
_AT_BOOT = frozenset(
    {
        NodeFault.STUCK_PROCESSES,
        NodeFault.KERNEL_TAINTED,
        NodeFault.XID,
        NodeFault.SXID,
        NodeFault.DRIVER_MISMATCH,
        NodeFault.SMI_HANGS,
    }
)
_BY_RESET = frozenset({NodeFault.GPU_REMAP_PENDING, NodeFault.GPU_ECC, NodeFault.NVLINK_INACTIVE})
# A start or a reset comes with every boot, and a boot with every return of power.
CURED = {
    Cure.SERVICE_START: frozenset({NodeFault.FABRIC_MANAGER_STOPPED}),
    Cure.GPU_RESET: _BY_RESET,
    Cure.BOOT: _AT_BOOT | _BY_RESET | {NodeFault.FABRIC_MANAGER_STOPPED},
    Cure.POWER_CUT: _AT_BOOT | _BY_RESET | {NodeFault.FABRIC_MANAGER_STOPPED, NodeFault.GPU_LOST},
}


class NodeFaults:
    """The faults in force on one node, mirrored into the file that programs inside read."""

    def __init__(self, file: Path) -> None:
        self._file = file
        self._values: dict[NodeFault, float] = {}
        self.on_change: Callable[[NodeFault], None] = lambda _: None
        self._write()

    def set(self, fault: NodeFault, value: float = 0.0) -> None:
        self._values[fault] = value or DEFAULTS.get(fault, 1.0)
        self._write()
        self.on_change(fault)

    def clear(self, fault: NodeFault | None = None) -> None:
        for one in (fault,) if fault else tuple(self._values):
            if self._values.pop(one, None) is not None:
                self._write()
                self.on_change(one)

    def cure(self, cure: Cure) -> None:
        """Take away what `cure` takes away. Nobody is told: what was inside is gone by itself."""
        if gone := CURED[cure] & self._values.keys():
            self._values = {fault: value for fault, value in self._values.items() if fault not in gone}
            self._write()

    def active(self, fault: NodeFault) -> bool:
        return fault in self._values

    def value(self, fault: NodeFault) -> float:
        return self._values.get(fault, 0.0)

    def all(self) -> dict[str, float]:
        return {str(fault): value for fault, value in self._values.items()}

    def _write(self) -> None:
        self._file.parent.mkdir(parents=True, exist_ok=True)
        fresh = self._file.with_suffix(".part")
        fresh.write_text("".join(f"{name} {value:g}\n" for name, value in self.all().items()))
        fresh.rename(self._file)
