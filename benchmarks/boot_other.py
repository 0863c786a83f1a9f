# ruff: noqa: E501, UP031  one row a line of a kernel
"""Makes boots of a second kind of node, with other words: a two-socket AMD board, kernel 6.8, open driver.

Written after the detector was, from what other drivers print, and never used to tune it. Threads, parts and
chances work as in boot_generator.
"""

from __future__ import annotations

import random
from collections.abc import Iterator

from benchmarks.boot_generator import Boot, Said, thread, woven

GPUS = ("05", "26", "46", "65", "85", "a6", "c6", "e5")
SWITCHES = ("b1", "b2", "b3", "b4")
ADAPTERS = ("0c", "2a", "4e", "6f", "8b", "aa", "ca", "ea")
DISKS = ("01", "41", "42", "81", "82", "c1")


def make_boot(node: int, boot: int, seed: int = 0) -> Boot:
    """Return one healthy boot of a node; the same arguments give the same boot."""
    chance = random.Random(f"other {seed}/{node}/{boot}")
    own = random.Random(f"other {seed}/{node}")
    order = chance.sample(range(len(DISKS)), len(DISKS))
    parallel = [
        *(_disk(own, chance, bus, order[n]) for n, bus in enumerate(DISKS)),
        *(_adapter(chance, bus) for bus in ADAPTERS),
        _driver(chance),
        _memory(chance),
        _board(own, chance),
        _network(own, chance),
        _programs(chance),
    ]
    return [*_beginning(own, chance), *woven([list(one) for one in parallel], chance)]


def _beginning(own: random.Random, chance: random.Random) -> Iterator[Said]:
    kept = own.randrange(100_000, 900_000)
    yield from thread(
        "beginning",
        "Linux version 6.8.0-52-generic (buildd@lcy02-amd64-046) (x86_64-linux-gnu-gcc-13 (Ubuntu 13.3.0-6ubuntu2~24.04) 13.3.0, GNU ld (GNU Binutils for Ubuntu) 2.42) #53-Ubuntu SMP PREEMPT_DYNAMIC",
        f"Command line: BOOT_IMAGE=/vmlinuz-6.8.0-52-generic root=/dev/mapper/vg{own.randrange(10)}-root ro amd_iommu=on iommu=pt console=ttyS0,115200n8",
        "KERNEL supported cpus:",
        "  AMD AuthenticAMD",
        "x86/split lock detection: disabled",
        "DMI: Supermicro AS -8125GS-TNHR/H13DSG-O-CPU, BIOS 3.1 12/10/2024",
        "DMI: Memory slots populated: 24/24",
        f"last_pfn = 0x{0x3080000 + own.randrange(0x100) * 0x40:x} max_arch_pfn = 0x400000000",
        "ACPI: SRAT: Node 0 PXM 0 [mem 0x00000000-0x0009ffff]",
        "ACPI: SRAT: Node 1 PXM 1 [mem 0xc080000000-0x1807fffffff]",
        f"Memory: {3169000000 - kept}K/3170893312K available (22528K kernel code, 4420K rwdata, 14188K rodata, 4948K init, 4752K bss, {1893312 + kept}K reserved, 0K cma-reserved)",
        "Zone ranges:",
        "  Normal   [mem 0x0000000100000000-0x000001807fffffff]",
        "rcu: Preemptible hierarchical RCU implementation.",
        "rcu: Adjusting geometry for rcu_fanout_leaf=16, nr_cpu_ids=384",
        f"tsc: Refined TSC clocksource calibration: 2400.{chance.randrange(1000):03d} MHz",
        "smpboot: CPU0: AMD EPYC 9654 96-Core Processor (family: 0x19, model: 0x11, stepping: 0x1)",
        "Performance Events: Fam17h+ 16-deep LBR, core perfctr, AMD PMU driver.",
        "smp: Brought up 2 nodes, 384 CPUs",
        ("x86/fpu: x87 FPU will use FXSAVE", 0.0),
        "AMD-Vi: Using global IVHD EFR:0x25bf732fa2295afe, EFR2:0x1d",
        "pci 0000:c0:00.2: AMD-Vi: IOMMU performance counters supported",
        "iommu: Default domain type: Passthrough (set via kernel command line)",
        chance=chance,
    )
    for bus in chance.sample(sorted((*GPUS, *SWITCHES, *ADAPTERS, *DISKS)), 26):
        kind = (
            "10de:2336"
            if bus in GPUS
            else "10de:22a3"
            if bus in SWITCHES
            else "15b3:1021"
            if bus in ADAPTERS
            else "1344:51c0"
        )
        yield from thread(
            f"bus {bus}",
            f"pci 0000:{bus}:00.0: [{kind}] type 00 class 0x{'030200' if bus in GPUS else '068000' if bus in SWITCHES else '020700' if bus in ADAPTERS else '010802'} PCIe Endpoint",
            f"pci 0000:{bus}:00.0: BAR 0 [mem 0x{chance.randrange(1 << 36):x}-0x{chance.randrange(1 << 36):x} 64bit]",
            f"pci 0000:{bus}:00.0: Adding to iommu group {chance.randrange(300)}",
        )
    yield from thread(
        "beginning",
        "PCI: CLS 64 bytes, default 64",
        "Trying to unpack rootfs image as initramfs...",
        "workingset: timestamp_bits=36 max_order=30 bucket_order=0",
        "Block layer SCSI generic (bsg) driver version 0.4 loaded (major 241)",
    )


def _disk(own: random.Random, chance: random.Random, bus: str, number: int) -> Iterator[Said]:
    name = f"nvme{number}"
    yield from thread(
        f"disk {bus}",
        f"nvme {name}: pci function 0000:{bus}:00.0",
        (f"nvme {name}: D3 entry latency set to {own.choice((8, 10))} seconds", 0.7),
        f"nvme {name}: {chance.choice((127, 128, 135))}/0/0 default/read/poll queues",
        f"nvme {name}: Using unchecked data buffer",
        chance=chance,
    )


def _adapter(chance: random.Random, bus: str) -> Iterator[Said]:
    who = f"mlx5_core 0000:{bus}:00.0"
    yield from thread(
        f"adapter {bus}",
        f"{who}: enabling device (0100 -> 0102)",
        f"{who}: firmware version: 28.43.2026",
        f"{who}: 504.112 Gb/s available PCIe bandwidth (32.0 GT/s PCIe x16 link)",
        f"{who}: Rate limit: 127 rates are supported, range: 0Mbps to 195312Mbps",
        f"{who}: Flow counters bulk query buffer size increased, bulk_query_len({chance.choice((8, 16))})",
        f"{who}: Port module event: module 0, Cable plugged",
        (
            f"{who}: mlx5_pcie_event:304:(pid {chance.randrange(300, 5000)}): PCIe slot advertised sufficient power (75W).",
            0.9,
        ),
        f"{who} ibp{int(bus, 16)}s0: renamed from ib{chance.randrange(8)}",
        chance=chance,
    )


def _driver(chance: random.Random) -> Iterator[Said]:
    yield from thread(
        "driver",
        "nvidia: loading out-of-tree module taints kernel.",
        f"nvidia-nvlink: Nvlink Core is being initialized, major device number {chance.randrange(230, 512)}",
    )
    for number, bus in enumerate(SWITCHES):
        yield from thread(
            f"switch {bus}",
            f"nvidia-nvswitch{number}: Probing device 0000:{bus}:00.0, Vendor Id = 0x10de, Device Id = 0x22a3, Class = 0x68000",
            f"nvidia-nvswitch{number}: using MSI",
        )
    for bus in chance.sample(GPUS, len(GPUS)):
        yield from thread(
            f"gpu {bus}",
            f"nvidia 0000:{bus}:00.0: vgaarb: VGA decodes changed: olddecodes=none,decodes=none:owns=none",
        )
    yield from thread(
        "driver",
        "NVRM: loading NVIDIA UNIX Open Kernel Module for x86_64  570.133.20  Release Build  (dvs-builder@U22-I3-AE18-23-3)",
        "[drm] Initialized nvidia-drm 0.0.0 20160202 for 0000:05:00.0 on minor 1",
        f"nvidia-uvm: Loaded the UVM driver, major device number {chance.randrange(230, 512)}.",
    )


def _memory(chance: random.Random) -> Iterator[Said]:
    yield from thread("edac", "EDAC MC: Ver: 3.0.0")
    for number in chance.sample(range(2), 2):
        yield from thread(
            f"mc {number}",
            f"EDAC amd64: F19h_M10h detected (node {number}).",
            f"EDAC MC{number}: Giving out device to module amd64_edac controller F19h_M10h: DEV 0000:00:{0x18 + number:02x}.3 (INTERRUPT)",
        )


def _board(own: random.Random, chance: random.Random) -> Iterator[Said]:
    yield from thread(
        "board",
        "ipmi_si dmi-ipmi-si.0: ipmi_platform: probing via SMBIOS",
        f"ipmi_si IPI0001:00: IPMI message handler: Found new BMC (man_id: 0x002a7c, prod_id: 0x1c{own.randrange(16):x}0, dev_id: 0x20)",
        "ccp 0000:02:00.5: sev enabled",
        "ccp 0000:02:00.5: psp enabled",
        (f"ccp 0000:02:00.5: SEV API:1.{own.choice((51, 55))} build:{own.randrange(9, 40)}", 0.95),
        "i2c i2c-0: 24/24 memory slots populated (from DMI)",
        ("kvm_amd: SEV disabled (ASIDs 0 - 99)", 0.85),
        "input: PC Speaker as /devices/platform/pcspkr/input/input%d" % chance.randrange(3, 9),
        chance=chance,
    )


def _network(own: random.Random, chance: random.Random) -> Iterator[Said]:
    mac = ":".join(f"{own.randrange(256):02x}" for _ in range(6))
    for port in chance.sample((0, 1), 2):
        yield from thread(
            f"net {port}",
            f"bnxt_en 0000:61:00.{port} eth{chance.randrange(4)}: Broadcom BCM57414 NetXtreme-E 10Gb/25Gb Ethernet found at mem 3f0{port}210000, node addr {mac}",
            f"bnxt_en 0000:61:00.{port}: 126.028 Gb/s available PCIe bandwidth (16.0 GT/s PCIe x8 link)",
            f"bnxt_en 0000:61:00.{port} enp97s0f{port}np{port}: NIC Link is Up, 25000 Mbps full duplex, Flow control: none",
        )


def _programs(chance: random.Random) -> Iterator[Said]:
    yield from thread(
        "programs",
        "systemd[1]: systemd 255.4-1ubuntu8.5 running in system mode (+PAM +AUDIT +SELINUX +APPARMOR)",
        "systemd[1]: Detected architecture x86-64.",
        f"systemd[1]: Hostname set to <gpu-{chance.randrange(512):03d}>.",
        "EXT4-fs (dm-0): mounted filesystem 6c5d4e3f-2a1b-4c8d-9e7f-0a1b2c3d4e5f r/w with ordered data mode. Quota mode: none.",
        f"systemd-journald[{chance.randrange(600, 2000)}]: Received client request to flush runtime journal.",
        (
            "systemd-journald[%d]: /var/log/journal/%032x/system.journal: Journal file uses a different sequence number ID, rotating."
            % (chance.randrange(600, 2000), chance.getrandbits(128)),
            0.3,
        ),
        "loop%d: detected capacity change from 0 to %d"
        % (chance.randrange(8), chance.randrange(1000, 190000)),
        chance=chance,
    )
