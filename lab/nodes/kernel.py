"""What a kernel of the lab prints: the boot loader before it, its first messages, its panic."""

from __future__ import annotations

import os
import time

from lab.nodes.firmware import CLEAR, GPU_BUSES
from lab.spec import NodeSpec


def loader_text() -> str:
    """Return what the boot loader prints for the installed system."""
    release = os.uname().release
    return (
        f"{CLEAR}GRUB loading.\nWelcome to GRUB!\n\n  Booting `Debian GNU/Linux'\n\n"
        f"Loading Linux {release} ...\nLoading initial ramdisk ...\n"
    )


class KernelLog:
    """A kernel's messages since it started; the running kernel is this machine's, and it says so."""

    def __init__(self) -> None:
        self._start = time.monotonic()
        self.lines: list[str] = []

    def add(self, text: str) -> str:
        """Keep one message and return it as the console shows it."""
        line = f"[{time.monotonic() - self._start:12.6f}] {text}"
        self.lines.append(line)
        return f"{line}\n"


def kernel_messages(spec: NodeSpec, cmdline: str, gpus: int) -> list[str]:
    """Return a kernel's first messages for this node."""
    system = os.uname()
    pages = os.sysconf("SC_PHYS_PAGES")
    return [
        f"Linux version {system.release} (muster-lab) {system.version}",
        f"Command line: {cmdline}",
        f"DMI: Muster Lab Virtual GPU node/{spec.serial}, BIOS 2.4.1 11/02/2026",
        f"Memory: {pages * 4}K/{pages * 4}K available",
        f"smpboot: Allowing {os.cpu_count()} CPUs, 0 hotplug CPUs",
        "PCI: Using configuration type 1 for base access",
        *(f"pci 0000:{bus}:00.0: [10de:2330] type 00 class 0x030200" for bus in GPU_BUSES[:gpus]),
        f"labnic 0000:17:00.0 eth0: {spec.mac} link up, 25000 Mbps",
        "nvme nvme0: 127/0/0 default/read/poll queues",
        "EXT4-fs (nvme0n1p2): mounted filesystem without journal. Quota mode: none.",
    ]


def panic_messages() -> list[str]:
    """Return what a kernel prints when it finds no root file system; then it hangs."""
    return [
        'VFS: Cannot open root device "LABEL=labroot" or unknown-block(0,0): error -6',
        'Please append a correct "root=" boot option; here are the available partitions:',
        "Kernel panic - not syncing: VFS: Unable to mount root fs on unknown-block(0,0)",
        f"CPU: 0 PID: 1 Comm: swapper/0 Not tainted {os.uname().release} #1",
        "Call Trace:",
        " <TASK>",
        " dump_stack_lvl+0x48/0x70",
        " panic+0x118/0x2ed",
        " mount_root_generic+0x1cb/0x270",
        " prepare_namespace+0x6a/0x270",
        " kernel_init+0x1a/0x130",
        " </TASK>",
        "---[ end Kernel panic - not syncing: VFS: Unable to mount root fs on unknown-block(0,0) ]---",
    ]
