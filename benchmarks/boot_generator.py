# ruff: noqa: E501, UP031  one row a line of a kernel
"""Makes boots of one kind of GPU node, as the kernel's own sources word them, and breaks them.

Written from what drivers print, without looking at how logs are read: threads of a boot run side by side,
parts are probed in any order and numbered as they come, some lines come only sometimes, and each node has
its own serials, addresses and sizes.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

GPUS = ("19", "3b", "4c", "5d", "9b", "bb", "cb", "db")
SWITCHES = ("85", "86", "87", "88")
ADAPTERS = ("1a", "3c", "4d", "5e", "9c", "bc", "cc", "dc")
DRIVES = ("06", "c1", "c2", "e1", "e2")


@dataclass(frozen=True)
class Said:
    """One line. `thread` is the sequence it belongs to; a line that is not `sure` may be absent."""

    text: str
    thread: str
    sure: bool = True


Boot = list[Said]


def make_boot(node: int, boot: int, seed: int = 0) -> Boot:
    """Return one healthy boot of a node; the same arguments give the same boot."""
    chance = random.Random(f"{seed}/{node}/{boot}")
    own = random.Random(f"{seed}/{node}")
    threads = [list(_firmware(own)), list(_early(own, chance))]
    lines = [line for thread in threads for line in thread]
    numbers = {kind: chance.sample(range(count), count) for kind, count in (("mlx5", 8), ("nvme", 5))}
    parallel = [
        _pci(chance),
        *(_drive(own, chance, bus, numbers["nvme"][n]) for n, bus in enumerate(DRIVES)),
        *(_adapter(chance, bus, numbers["mlx5"][n]) for n, bus in enumerate(ADAPTERS)),
        *(_switch(chance, bus, n) for n, bus in enumerate(SWITCHES)),
        _gpus(chance),
        _usb(chance),
        _ethernet(own, chance),
        _storage(chance),
        _management(chance),
        _services(chance),
        _noise(own, chance),
    ]
    return lines + woven([list(thread) for thread in parallel], chance)


def woven(threads: list[list[Said]], chance: random.Random) -> Boot:
    """Weave threads that run side by side; each keeps its own order."""
    lines: Boot = []
    left = [thread for thread in threads if thread]
    while left:
        thread = chance.choices(left, weights=[len(one) for one in left])[0]
        for _ in range(min(len(thread), chance.randint(1, 3))):
            lines.append(thread.pop(0))
        left = [one for one in left if one]
    return lines


def thread(name: str, *rows: str | tuple[str, float], chance: random.Random | None = None) -> Iterator[Said]:
    """Give a thread's lines; a row with a share comes in that share of boots."""
    for row in rows:
        if isinstance(row, str):
            yield Said(row, name)
        elif chance is None or chance.random() < row[1]:
            yield Said(row[0], name, sure=False)


def _firmware(own: random.Random) -> Iterator[Said]:
    end = own.randrange(0x10, 0xF0)
    yield from thread(
        "firmware",
        "Linux version 5.15.0-122-generic (buildd@lcy02-amd64-034) (gcc (Ubuntu 11.4.0-1ubuntu1~22.04) 11.4.0, GNU ld (GNU Binutils for Ubuntu) 2.38) #132-Ubuntu SMP",
        f"Command line: BOOT_IMAGE=/boot/vmlinuz-5.15.0-122-generic root=UUID={_uuid(own)} ro iommu=pt console=tty0 console=ttyS0,115200n8",
        "KERNEL supported cpus:",
        "  Intel GenuineIntel",
        "  AMD AuthenticAMD",
        "BIOS-provided physical RAM map:",
        "BIOS-e820: [mem 0x0000000000000000-0x000000000009ffff] usable",
        f"BIOS-e820: [mem 0x0000000000100000-0x000000005{end:02x}fffff] usable",
        f"BIOS-e820: [mem 0x000000005{end + 1:02x}00000-0x00000000777fffff] reserved",
        "BIOS-e820: [mem 0x0000000100000000-0x000001fffeffffff] usable",
        "NX (Execute Disable) protection: active",
        "efi: EFI v2.70 by Dell Inc.",
        f"efi: ACPI=0x777fe000 ACPI 2.0=0x777fe014 TPMFinalLog=0x774a{own.randrange(0x1000, 0xFFFF):04x} SMBIOS=0x68ae3000",
        "secureboot: Secure boot disabled",
        "SMBIOS 3.3.0 present.",
        "DMI: Dell Inc. PowerEdge XE9680/00A6B, BIOS 2.3.6 11/14/2024",
        "tsc: Detected 2000.000 MHz processor",
    )


def _early(own: random.Random, chance: random.Random) -> Iterator[Said]:
    free = 2113000000 + own.randrange(100000)
    yield from thread(
        "early",
        "ACPI: Early table checksum verification disabled",
        "ACPI: RSDP 0x00000000777FE014 000024 (v02 DELL  )",
        "ACPI: XSDT 0x000000007778C188 000114 (v01 DELL   PE_SC3   00000000      01000013)",
        "ACPI: Reserving DSDT table memory at [mem 0x77490000-0x774fa3cb]",
        "ACPI: SRAT: Node 0 PXM 0 [mem 0x00000000-0x7fffffff]",
        "ACPI: SRAT: Node 1 PXM 1 [mem 0x10080000000-0x2007fffffff]",
        "NUMA: Initialized distance table, cnt=2",
        "x2apic: enabled by BIOS, switching to x2apic ops",
        "smpboot: Allowing 224 CPUs, 0 hotplug CPUs",
        f"Memory: {free}K/2113929216K available (16393K kernel code, 4377K rwdata, 10876K rodata, 3240K init, 6564K bss, {2113929216 - free}K reserved, 0K cma-reserved)",
        "rcu: Hierarchical RCU implementation.",
        "rcu: 	RCU restricting CPUs from NR_CPUS=8192 to nr_cpu_ids=224.",
        "Console: colour dummy device 80x25",
        "printk: console [ttyS0] enabled",
        f"Calibrating delay loop (skipped), value calculated using timer frequency.. 4000.00 BogoMIPS (lpj={8000000 + chance.randrange(3)})",
        "Spectre V2 : Mitigation: Enhanced / Automatic IBRS",
        "smpboot: CPU0: Intel(R) Xeon(R) Platinum 8480+ (family: 0x6, model: 0x8f, stepping: 0x8)",
        "smp: Bringing up secondary CPUs ...",
        "smp: Brought up 2 nodes, 224 CPUs",
        f"smpboot: Total of 224 processors activated ({896000 + chance.randrange(900)}.{chance.randrange(100):02d} BogoMIPS)",
        (
            "clocksource: timekeeping watchdog on CPU%d: Marking clocksource 'tsc-early' as stable"
            % chance.randrange(224),
            0.1,
        ),
        "clocksource: Switched to clocksource tsc",
        "DMAR: IOMMU enabled",
        "iommu: Default domain type: Passthrough (set via kernel command line)",
        chance=chance,
    )


def _pci(chance: random.Random) -> Iterator[Said]:
    yield from thread(
        "pci",
        "PCI: Using configuration type 1 for base access",
        "ACPI: PCI Root Bridge [PC00] (domain 0000 [bus 00-16])",
    )
    for bus in sorted((*GPUS, *SWITCHES, *ADAPTERS, *DRIVES)):
        device = (
            "10de:2330"
            if bus in GPUS
            else "10de:22a3"
            if bus in SWITCHES
            else "15b3:1021"
            if bus in ADAPTERS
            else "144d:a80a"
        )
        kind = (
            "0x030200"
            if bus in GPUS
            else "0x068000"
            if bus in SWITCHES
            else "0x020700"
            if bus in ADAPTERS
            else "0x010802"
        )
        yield from thread(
            f"pci {bus}",
            f"pci 0000:{bus}:00.0: [{device}] type 00 class {kind}",
            f"pci 0000:{bus}:00.0: reg 0x10: [mem 0x{chance.randrange(0x20000, 0x2FFFF):x}000000-0x{chance.randrange(0x30000, 0x3FFFF):x}ffffff 64bit pref]",
            f"pci 0000:{bus}:00.0: PME# supported from D0 D3hot",
        )
        if bus in GPUS:
            yield from thread(
                f"pci {bus}", f"pci 0000:{bus}:00.0: Max Payload Size set to 256 (was 128, max 256)"
            )
    yield from thread(
        "pci",
        ("pci 0000:17:01.0: BAR 13: no space for [io  size 0x1000]", 0.6),
        ("pci 0000:17:01.0: BAR 13: failed to assign [io  size 0x1000]", 0.6),
        "pci_bus 0000:00: resource 4 [io  0x0000-0x0cf7 window]",
        chance=chance,
    )


def _drive(own: random.Random, chance: random.Random, bus: str, number: int) -> Iterator[Said]:
    name = f"nvme{number}"
    yield from thread(
        f"nvme {bus}",
        f"nvme {name}: pci function 0000:{bus}:00.0",
        (f"nvme {name}: Shutdown timeout set to {own.choice((8, 10))} seconds", 0.5),
        f"nvme {name}: {chance.choice((64, 127, 128))}/0/0 default/read/poll queues",
        f" {name}n1: p1 p2" if bus == "06" else f"nvme {name}: Ignoring bogus Namespace Identifiers",
        chance=chance,
    )


def _adapter(chance: random.Random, bus: str, number: int) -> Iterator[Said]:
    who = f"mlx5_core 0000:{bus}:00.0"
    rate = "Rate limit: 127 rates are supported, range: 0Mbps to 195312Mbps"
    yield from thread(
        f"mlx5 {bus}",
        f"{who}: firmware version: 28.41.1000",
        f"{who}: 504.112 Gb/s available PCIe bandwidth (32.0 GT/s PCIe x16 link)",
        f"{who}: {rate}",
        f"{who}: E-Switch: Total vports 2, per vport: max uc(128) max mc(2048)",
        f"{who}: Port module event: module 0, Cable plugged",
        (
            f"{who}: mlx5_pcie_event:{chance.choice((301, 304))}:(pid {chance.randrange(400, 3000)}): PCIe slot advertised sufficient power (27W).",
            0.97,
        ),
        f"{who}: MLX5E: StrdRq(0) RqSz(128) StrdSz(128) RxCqeCmprss(0)",
        f"{who} ib{number}: renamed from eth{chance.randrange(9)}",
        f"{who}: Supported tc offload range - chains: 4294967294, prios: 4294967295",
        chance=chance,
    )


def _switch(chance: random.Random, bus: str, number: int) -> Iterator[Said]:
    yield from thread(
        f"nvswitch {bus}",
        f"nvidia-nvswitch{number}: Probing device 0000:{bus}:00.0, Vendor Id = 0x10de, Device Id = 0x22a3, Class = 0x68000",
        f"nvidia-nvswitch{number}: enabling device (0140 -> 0142)",
        (f"nvidia-nvswitch{number}: open (major={chance.randrange(500, 512)})", 0.95),
        chance=chance,
    )


def _gpus(chance: random.Random) -> Iterator[Said]:
    yield from thread(
        "nvidia",
        "nvidia: loading out-of-tree module taints kernel.",
        "nvidia: module verification failed: signature and/or required key missing - tainting kernel",
        f"nvidia-nvlink: Nvlink Core is being initialized, major device number {chance.randrange(505, 512)}",
    )
    for bus in chance.sample(GPUS, len(GPUS)):
        yield from thread(f"nvidia {bus}", f"nvidia 0000:{bus}:00.0: enabling device (0140 -> 0142)")
    yield from thread(
        "nvidia",
        "NVRM: loading NVIDIA UNIX x86_64 Kernel Module  550.127.05  Tue Oct  8 03:22:07 UTC 2024",
        "nvidia-modeset: Loading NVIDIA Kernel Mode Setting Driver for UNIX platforms  550.127.05  Tue Oct  8 02:56:05 UTC 2024",
        "[drm] [nvidia-drm] [GPU ID 0x00001900] Loading driver",
        f"nvidia-uvm: Loaded the UVM driver, major device number {chance.randrange(236, 242)}.",
        ("NVRM: GPU 0000:%s:00.0: PCI Express capability is cached" % chance.choice(GPUS), 0.03),
        chance=chance,
    )


def _usb(chance: random.Random) -> Iterator[Said]:
    yield from thread(
        "usb",
        "xhci_hcd 0000:00:14.0: xHCI Host Controller",
        "xhci_hcd 0000:00:14.0: new USB bus registered, assigned bus number 1",
        "usb usb1: New USB device found, idVendor=1d6b, idProduct=0002, bcdDevice= 5.15",
    )
    for port in (1, 3):
        yield from thread(
            f"usb {port}",
            f"usb 1-{port}: new high-speed USB device number {chance.randrange(2, 6)} using xhci_hcd",
            f"usb 1-{port}: New USB device found, idVendor=413c, idProduct=a102, bcdDevice= 1.00",
            (f"usb 1-{port}: device descriptor read/64, error -71", 0.08),
            chance=chance,
        )


def _ethernet(own: random.Random, chance: random.Random) -> Iterator[Said]:
    macs = [":".join(f"{own.randrange(256):02x}" for _ in range(6)) for _ in range(2)]
    for n, port in enumerate(chance.sample((0, 1), 2)):
        name = f"enp42s0f{port}np{port}"
        yield from thread(
            f"ethernet {port}",
            f"mlx5_core 0000:2a:00.{port} {name}: Link up",
            f"bond0: (slave {name}): Enslaving as a backup interface with an up link"
            if n
            else f"bond0: (slave {name}): Enslaving as an active interface with an up link",
            f"IPv6: ADDRCONF(NETDEV_CHANGE): {name}: link becomes ready",
        )
    yield from thread(
        "ethernet",
        f"bond0: (slave enp42s0f0np0): Permanent HW addr: {macs[0]}",
        "8021q: adding VLAN 0 to HW filter on device bond0",
    )


def _storage(chance: random.Random) -> Iterator[Said]:
    yield from thread(
        "storage",
        "md/raid10:md0: active with 4 out of 4 devices",
        f"md0: detected capacity change from 0 to {30004846592}",
        "EXT4-fs (nvme0n1p2): mounted filesystem with ordered data mode. Opts: (null). Quota mode: none.",
        "EXT4-fs (nvme0n1p2): re-mounted. Opts: errors=remount-ro. Quota mode: none.",
        ("EXT4-fs (nvme0n1p2): %d orphan inodes deleted" % chance.randrange(1, 40), 0.15),
        "XFS (md0): Mounting V5 Filesystem",
        "XFS (md0): Ending clean mount",
        chance=chance,
    )


def _management(chance: random.Random) -> Iterator[Said]:
    yield from thread(
        "ipmi",
        "ipmi_si IPI0001:00: ipmi_platform: probing via ACPI",
        "ipmi_si IPI0001:00: [io  0x0ca8] regsize 1 spacing 4 irq 10",
        "ipmi_si IPI0001:00: The BMC does not support clearing the recv irq bit, compensating, but the BMC needs to be fixed.",
        f"ipmi_si IPI0001:00: Found new BMC (man_id: 0x0002a2, prod_id: 0x0100, dev_id: 0x{0x20:02x})",
        "ipmi_si IPI0001:00: IPMI kcs interface initialized",
    )
    controllers = chance.sample(range(16), 16)
    for number in controllers:
        yield from thread(
            f"edac {number}",
            f"EDAC MC{number}: Giving out device to module i10nm_edac controller Intel_10nm Socket#{number // 8} IMC#{number % 4}: DEV 0000:{0x7E + number:02x}:0c.0 (INTERRUPT)",
        )
    yield from thread("edac", "EDAC i10nm: v0.0.5")


def _services(chance: random.Random) -> Iterator[Said]:
    yield from thread(
        "systemd",
        "systemd[1]: systemd 249.11-0ubuntu3.12 running in system mode (+PAM +AUDIT +SELINUX +APPARMOR)",
        "systemd[1]: Detected architecture x86-64.",
        "systemd[1]: Hostname set to <gpu-node>.",
        "systemd[1]: Queued start job for default target Graphical Interface.",
        "systemd[1]: Created slice system-modprobe.slice.",
        "systemd[1]: Mounting Huge Pages File System...",
        "systemd[1]: Starting Load Kernel Modules...",
        "systemd[1]: Mounted Huge Pages File System.",
        "systemd[1]: Finished Load Kernel Modules.",
        f"systemd-journald[{chance.randrange(700, 1400)}]: Received client request to flush runtime journal.",
        (
            "systemd-journald[%d]: File /var/log/journal/%s/system.journal corrupted or uncleanly shut down, renaming and replacing."
            % (chance.randrange(700, 1400), "a" * 32),
            0.05,
        ),
        chance=chance,
    )
    for profile in chance.sample(
        ("lsb_release", "nvidia_modprobe", "tcpdump", "man_filter", "man_groff", "chronyd"), 6
    ):
        yield from thread(
            "audit",
            f'audit: type=1400 audit({1772442000 + chance.randrange(900)}.{chance.randrange(1000):03d}:{chance.randrange(2, 30)}): apparmor="STATUS" operation="profile_load" profile="unconfined" name="{profile}" pid={chance.randrange(800, 2400)} comm="apparmor_parser"',
        )


def _noise(own: random.Random, chance: random.Random) -> Iterator[Said]:
    model = own.choice(("MTFDKBA960TFR", "SAMSUNG MZ7L3960", "SSDSC2KG960GZR", "HFS960G3H2X069N"))
    yield from thread(
        "noise",
        f"scsi 0:0:0:0: Direct-Access     ATA      {model} A1B2 PQ: 0 ANSI: 5",
        "random: crng init done",
        ("hrtimer: interrupt took %d ns" % chance.randrange(2000, 90000), 0.2),
        (
            "perf: interrupt took too long (%d > 2500), lowering kernel.perf_event_max_sample_rate to %d"
            % (chance.randrange(2501, 4000), 50000),
            0.1,
        ),
        ("net_ratelimit: %d callbacks suppressed" % chance.randrange(2, 60), 0.12),
        ("Adding %dk swap on /dev/zram0.  Priority:100 extents:1 across:%dk" % (8388604, 8388604), 0.02),
        "Loaded X.509 cert 'Build time autogenerated kernel key: %040x'" % own.getrandbits(160),
        "tg3 0000:03:00.0 eno8303: renamed from eth0",
        chance=chance,
    )


def _uuid(own: random.Random) -> str:
    digits = f"{own.getrandbits(128):032x}"
    return "-".join((digits[:8], digits[8:12], digits[12:16], digits[16:20], digits[20:]))


# --- What goes wrong --------------------------------------------------------------------------------

NOVEL = (
    "mlx5_core 0000:9c:00.0: mlx5_crdump_collect: crdump: failed taking snapshot, no space left",
    "nvme nvme2: controller is in a reduced performance mode after firmware activation",
    "NVRM: GPU at PCI:0000:5d:00: memory training took longer than it should",
    "pcieport 0000:97:01.0: bwctrl: retraining the link to a lower speed was asked for",
    "ACPI BIOS Warning (bug): Optional field Pm2ControlBlock has valid Length but zero Address",
    "EDAC i10nm: ECC is in degraded mode on one channel",
    "ipmi_si IPI0001:00: state machine restarted by request of the host",
    "i2c i2c-3: bus seems to be locked by another master",
    "tpm tpm0: starting up without the measurement log",
    "md/raid10:md0: reshape position moved back to the beginning",
    "XFS (md0): Starting recovery (logdev: internal)",
    "systemd[1]: Dependency cycle found between two mount units, one was dropped",
    "resctrl: monitoring is not possible on this part",
    "bond0: Warning: No 802.3ad response from the link partner for any adapters in the bond",
    "nvidia-nvswitch2: the device asked for a slower handshake",
    "usb 1-3: this device was moved to a slower bus",
    "x86/split lock detection: warning about user-space split locks is on",
    "intel_idle: the deepest idle state is not offered by the firmware",
    "power_meter ACPI000D:00: hardware changed its own limit",
    "megaraid_sas 0000:65:00.0: the battery is below its threshold and cache is bypassed",
)


def with_novel(boot: Boot, chance: random.Random) -> Boot:
    """Say something that no healthy node says."""
    broken = list(boot)
    broken.insert(chance.randrange(40, len(broken)), Said(chance.choice(NOVEL), "fault"))
    return broken


def without_line(boot: Boot, chance: random.Random) -> Boot:
    """Leave out one line that every boot has."""
    at = chance.choice([at for at, line in enumerate(boot) if line.sure])
    return boot[:at] + boot[at + 1 :]


def with_twice(boot: Boot, chance: random.Random) -> Boot:
    """Say one line that every boot has once more."""
    at = chance.choice([at for at, line in enumerate(boot) if line.sure])
    return [*boot[: at + 1], boot[at], *boot[at + 1 :]]


def with_reordered(boot: Boot, chance: random.Random) -> Boot:
    """Exchange two lines of one thread that every boot says in one order."""
    while True:
        at = chance.choice([at for at, line in enumerate(boot) if line.sure])
        thread = [place for place, line in enumerate(boot) if line.thread == boot[at].thread and line.sure]
        here = thread.index(at)
        if here + 1 < len(thread) and _differ(boot[at].text, boot[thread[here + 1]].text):
            other = thread[here + 1]
            broken = list(boot)
            broken[at], broken[other] = broken[other], broken[at]
            return broken


def _differ(one: str, other: str) -> bool:
    """Say whether two lines are of different kinds: words differ, not only numbers."""
    return [word for word in one.split() if word.isalpha()] != [
        word for word in other.split() if word.isalpha()
    ]


def with_other_value(boot: Boot, chance: random.Random) -> Boot:
    """Let a part say another value than all its like."""
    swaps: tuple[tuple[str, str], ...] = (
        ("PCIe x16 link", "PCIe x8 link"),
        ("32.0 GT/s PCIe", "16.0 GT/s PCIe"),
        ("Brought up 2 nodes, 224 CPUs", "Brought up 2 nodes, 223 CPUs"),
        ("active with 4 out of 4 devices", "active with 3 out of 4 devices"),
        ("Max Payload Size set to 256", "Max Payload Size set to 128"),
        ("slot advertised sufficient power (27W)", "slot advertised sufficient power (12W)"),
    )
    old, new = chance.choice(swaps)
    places = [at for at, line in enumerate(boot) if old in line.text]
    if not places:
        return with_other_value(boot, chance)
    at = chance.choice(places)
    broken = list(boot)
    broken[at] = replace(broken[at], text=broken[at].text.replace(old, new))
    return broken


Break = Callable[[Boot, random.Random], Boot]
BREAKS: dict[str, Break] = {
    "novel": with_novel,
    "missing": without_line,
    "twice": with_twice,
    "reordered": with_reordered,
    "value": with_other_value,
}
