"""What a kernel of the lab prints: the boot loader before it, its first messages, its panic."""

from __future__ import annotations

import os
import time
from pathlib import Path

from lab.nodes.devices import Devices
from lab.nodes.firmware import CLEAR, GPU_BUSES, Emit
from lab.spec import NodeSpec

# The same order as in the image's nvidia-smi.
_FALLING = (3, 4, 5, 6, 7, 0, 1, 2)


def loader_text() -> str:
    """Return what the boot loader prints for the installed system."""
    release = os.uname().release
    return (
        f"{CLEAR}GRUB loading.\nWelcome to GRUB!\n\n  Booting `Debian GNU/Linux'\n\n"
        f"Loading Linux {release} ...\nLoading initial ramdisk ...\n"
    )


class KernelLog:
    """A kernel's messages since it started: on the console, in /dev/kmsg and in the file of dmesg.

    The running kernel is this machine's, and it says so; the hardware it names is the lab's.
    """

    def __init__(self, emit: Emit, devices: Devices, file: Path) -> None:
        self._emit = emit
        self._devices = devices
        self._file = file
        self._start = time.monotonic()
        file.write_text("")
        devices.boot()

    def say(self, *texts: str, level: int = 6) -> None:
        """Write messages; `level` is as in syslog, 6 for information and 3 for errors."""
        for text in texts:
            since = time.monotonic() - self._start
            line = f"[{since:12.6f}] {text}\n"
            self._emit(line)
            self._devices.log_kernel(text, since_boot_s=since, level=level)
            with self._file.open("a") as file:
                file.write(f"<{level}>{line}")


def kernel_messages(spec: NodeSpec, cmdline: str, missing_gpus: int = 0) -> list[str]:
    """Return a kernel's first messages for this node."""
    system = os.uname()
    pages = os.sysconf("SC_PHYS_PAGES")
    lost = set(lost_gpus(missing_gpus))
    present = [bus for bus in GPU_BUSES if bus not in lost]
    return [
        f"Linux version {system.release} (muster-lab) {system.version}",
        f"Command line: {cmdline}",
        f"DMI: Muster Lab Virtual GPU node/{spec.serial}, BIOS 2.4.1 11/02/2026",
        f"Memory: {pages * 4}K/{pages * 4}K available",
        f"smpboot: Allowing {os.cpu_count()} CPUs, 0 hotplug CPUs",
        "PCI: Using configuration type 1 for base access",
        *(f"pci 0000:{bus}:00.0: [10de:2330] type 00 class 0x030200" for bus in present),
        f"labnic 0000:17:00.0 eth0: {spec.mac} link up, 25000 Mbps",
        "nvme nvme0: 127/0/0 default/read/poll queues",
        "EXT4-fs (nvme0n1p2): mounted filesystem without journal. Quota mode: none.",
    ]


def lost_gpus(count: int) -> tuple[str, ...]:
    """Return the buses of the first `count` GPUs to fall off, in the order in which they do."""
    return tuple(GPU_BUSES[slot] for slot in _FALLING[:count])


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


def nmi_messages() -> list[str]:
    """Return what a kernel prints when its operator asks it to panic."""
    return [
        "Uhhuh. NMI received for unknown reason 2d on CPU 0.",
        "Kernel panic - not syncing: NMI: Not continuing",
        f"CPU: 0 PID: 0 Comm: swapper/0 Not tainted {os.uname().release} #1",
        "---[ end Kernel panic - not syncing: NMI: Not continuing ]---",
    ]


_XIDS = {
    13: "Graphics SM Warp Exception on (GPC 0, TPC 1, SM 0): Illegal Instruction Parameter",
    31: "Ch 00000008, intr 00000000. MMU Fault: ENGINE GRAPHICS GPCCLIENT_T1_0 faulted @ 0x7f2c_1e000000",
    48: "An uncorrectable double bit error (DBE) has been detected on GPU in the framebuffer at partition 7",
    63: "Row Remapper: New row (0x0000000000a1b3c4) marked for remapping, reset gpu to activate.",
    64: "Row Remapper: Error: Couldn't mark the row for remapping, as no spare row is left.",
    74: "NVLink: fatal error detected on link 5(0x0, 0x0, 0x10000, 0x0, 0x0, 0x0, 0x0)",
    79: "GPU has fallen off the bus.",
    94: "Contained: SM (0x1). RST: No, D-RST: No",
    95: "Uncontained: LTC TAG (0x2,0x0). RST: Yes, D-RST: No",
    119: "Timeout after 6s of waiting for RPC response from GPU2 GSP! Expected function 76 (GSP_RM_CONTROL)",
}


def xid_message(bus: str, code: int) -> str:
    """Return what the driver logs for an Xid."""
    text = _XIDS.get(code, "Ch 00000008")
    return f"NVRM: Xid (PCI:0000:{bus}:00): {code}, pid='<unknown>', name=<unknown>, {text}"


def sxid_messages(bus: str, code: int) -> list[str]:
    """Return what the driver logs for a fatal SXid: three lines are one event."""
    head = f"nvidia-nvswitch2: SXid (PCI:0000:{bus}:00.0): {code},"
    return [
        f"{head} Fatal, Link 30 LTSSM Fault Up",
        f"{head} Severity 1 Engine instance 30 Sub-engine instance 00",
        f"{head} Data {{0x00000008, 0x00000008, 0x00000000, 0x00000008, 0x00000000, 0x00000000}}",
    ]


def lost_gpu_message(bus: str) -> str:
    """Return what the driver says when a GPU no longer answers."""
    return xid_message(bus, 79)
