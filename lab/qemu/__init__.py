"""Nodes that are QEMU machines: real firmware, netboot, kernel and install, without root or KVM."""

from lab.qemu.assets import prepare_assets
from lab.qemu.boot_server import BootServer, start_boot_server
from lab.qemu.chassis import Fault, QemuChassis
from lab.qemu.recipe import Assets

__all__ = ["Assets", "BootServer", "Fault", "QemuChassis", "prepare_assets", "start_boot_server"]
