"""Faults of a node itself, in force until they are cleared."""

from __future__ import annotations

from collections.abc import Callable
from enum import StrEnum
from pathlib import Path


class NodeFault(StrEnum):
    """What can be wrong with a node. Those that say so act at the next boot or installation."""

    NO_LEASE = "no-lease"  # DHCP never answers; next boot
    PXE_LOOP = "pxe-loop"  # boots from the network again and again; next boot
    KERNEL_PANIC = "kernel-panic"  # the kernel finds no root file system and hangs; now or at the next boot
    DEPLOY_FAILS = "deploy-fails"  # the installer fails at the boot loader; next installation
    SSH_DEAD = "ssh-dead"  # the system comes up, sshd does not
    DISK_FULL = "disk-full"  # the root file system has no byte left
    SERVICE_FAILED = "service-failed"  # nvidia-persistenced is in the failed state
    GPU_MISSING = "gpu-missing"  # how many GPUs have fallen off the bus; default 1
    CLOCK_BACK = "clock-back"  # how many years the clock is behind; default 5
    DIES_IN_GATE = "dies-in-gate"  # loses power when something asks its GPUs, after having been configured


# What the value is when none is given, and what counts as possible.
DEFAULTS = {NodeFault.GPU_MISSING: 1.0, NodeFault.CLOCK_BACK: 5.0}
LIMITS = {NodeFault.GPU_MISSING: 8.0, NodeFault.CLOCK_BACK: 40.0}
# Those that the node's own root file system carries.
INSIDE = frozenset({NodeFault.SSH_DEAD, NodeFault.DISK_FULL, NodeFault.SERVICE_FAILED, NodeFault.CLOCK_BACK})


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
