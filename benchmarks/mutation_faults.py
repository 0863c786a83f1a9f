# ruff: noqa: E501  one row a fault, with the words that a tool prints
"""What broken parts make tools print: name, item, and how its text changes."""

from __future__ import annotations

import re
from collections.abc import Callable

Edit = Callable[[str], str]


def _swap(old: str, new: str, times: int = 1) -> Edit:
    return lambda text: text.replace(old, new, times)


def _line(pattern: str, new: str) -> Edit:
    """Replace the first match of a pattern."""
    return lambda text: re.sub(pattern, new, text, count=1, flags=re.MULTILINE)


def _field(label: str, value: str, times: int = 1) -> Edit:
    """Set a field of nvidia-smi's report, on the first GPU or on several."""
    return lambda text: re.sub(
        rf"^(\s+{re.escape(label)}\s+: ).*$", rf"\g<1>{value}", text, count=times, flags=re.MULTILINE
    )


def _without_gpu(text: str) -> str:
    """Take the last GPU out of the report, as when it has fallen off the bus."""
    last = text.rindex("\nGPU 00000000:")
    count = text.count("\nGPU 00000000:")
    return text[: last + 1].replace(f": {count}\n", f": {count - 1}\n", 1)


def _without_paths(pattern: str) -> Edit:
    """Take files out of what came for a pattern, and out of the count at its end."""

    def edit(text: str) -> str:
        parts = re.split(r"(?=^==> )", text, flags=re.MULTILINE)
        kept = [part for part in parts if part and not re.match(rf"==> \S*{pattern}", part)]
        kept[-1] = f"==> {len(kept) - 1} in all <==\n"
        return "".join(kept)

    return edit


def _kernel(line: str) -> Edit:
    def edit(text: str) -> str:
        body = text.removesuffix("# end of kmsg\n")
        return f"{body}3,{body.count(chr(10))},95000000000,-;{line}\n# end of kmsg\n"

    return edit


_SMI = "gpu.smi"
_RING = "kernel.kmsg"
_GONE = "Unable to determine the device handle for GPU0000:9B:00.0: Unknown Error\n"

# What only one check looks for: a node whose gate does not have it is well with it.
SEEN_BY = {"huge pages": "host.hugepages"}

CURATED: tuple[tuple[str, str, Edit], ...] = (
    ("seven GPUs of eight", _SMI, _without_gpu),
    ("GPU lost", _SMI, lambda _: _GONE),
    ("GPU is lost in a field", _SMI, _field("Performance State", "GPU is lost")),
    ("no devices", _SMI, lambda _: "No devices were found\n"),
    ("driver does not answer", _SMI, lambda _: "NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver.\n"),
    ("library mismatch", _SMI, lambda _: "Failed to initialize NVML: Driver/library version mismatch\n"),
    ("another product", _SMI, _field("Product Name", "NVIDIA A100-SXM4-80GB")),
    ("less memory", _SMI, _line(r"(FB Memory Usage\n\s+Total\s+: )\d+", r"\g<1>61440")),
    ("other VBIOS", _SMI, _field("VBIOS Version", "96.00.30.00.01")),
    ("other InfoROM", _SMI, _field("Image Version", "G520.0100.00.01")),
    ("GSP of another version", _SMI, _field("GSP Firmware Version", "535.54.03")),
    ("driver of another version", _SMI, _line(r"^(Driver Version\s+: ).*$", r"\g<1>535.54.03")),
    ("one serial twice", _SMI, lambda text: re.sub(r"(Serial Number\s+: )\S+", r"\g<1>1650000000001", text, count=2)),
    ("ECC off", _SMI, _line(r"(ECC Mode\n\s+Current\s+: )Enabled", r"\g<1>Disabled")),
    ("ECC off after reset", _SMI, _line(r"(ECC Mode\n\s+Current\s+: Enabled\n\s+Pending\s+: )Enabled", r"\g<1>Disabled")),
    ("ECC unreadable", _SMI, _line(r"(ECC Mode\n\s+Current\s+: )Enabled", r"\g<1>Unknown Error")),
    ("uncorrected DRAM error", _SMI, _field("DRAM Uncorrectable", "1")),
    ("uncorrected SRAM error", _SMI, _field("SRAM Uncorrectable SEC-DED", "1")),
    ("SRAM parity error", _SMI, _field("SRAM Uncorrectable Parity", "2")),
    ("SRAM threshold", _SMI, _field("SRAM Threshold Exceeded", "Yes")),
    ("ECC counters N/A", _SMI, _field("DRAM Uncorrectable", "N/A")),
    ("row remap pending", _SMI, _line(r"(Remapped Rows\n(?:.*\n){2}\s+Pending\s+: )No", r"\g<1>Yes")),
    ("row remap failed", _SMI, _field("Remapping Failure Occurred", "Yes")),
    ("row remap unreadable", _SMI, _field("Remapping Failure Occurred", "N/A")),
    ("hardware slowdown", _SMI, _field("HW Slowdown", "Active")),
    ("thermal slowdown", _SMI, _field("HW Thermal Slowdown", "Active")),
    ("power brake on all", _SMI, _field("HW Power Brake Slowdown", "Active", 8)),
    ("software thermal slowdown", _SMI, _field("SW Thermal Slowdown", "Active")),
    ("at its temperature limit", _SMI, _field("GPU T.Limit Temp", "1 C")),
    ("temperature unreadable", _SMI, _field("GPU T.Limit Temp", "N/A")),
    ("power cap lowered", _SMI, _field("Current Power Limit", "400.00 W")),
    ("clocks lowered", _SMI, _line(r"(Max Clocks\n\s+Graphics.*\n\s+SM\s+: )1980", r"\g<1>1410")),
    ("application clocks lowered", _SMI, _line(r"(Applications Clocks\n\s+Graphics\s+: )1980", r"\g<1>1200")),
    ("PCIe x8", _SMI, _line(r"(Link Width\n\s+Max\s+: 16x\n\s+Current\s+: )16x", r"\g<1>8x")),
    ("PCIe gen 3", _SMI, _line(r"(PCIe Generation\n\s+Max\s+: 5\n\s+Current\s+: )5", r"\g<1>3")),
    ("persistence off", _SMI, _field("Persistence Mode", "Disabled")),
    ("compute exclusive", _SMI, _field("Compute Mode", "Exclusive_Process")),
    ("MIG on", _SMI, _line(r"(MIG Mode\n\s+Current\s+: )Disabled", r"\g<1>Enabled")),
    ("reset required", _SMI, _field("Reset Required", "Yes")),
    ("drain recommended", _SMI, _field("Drain and Reset Recommended", "Yes")),
    ("fabric in progress", _SMI, _line(r"(Fabric\n\s+State\s+: )Completed", r"\g<1>In Progress")),
    ("fabric failed", _SMI, _line(r"(Fabric\n\s+State.*\n\s+Status\s+: )Success", r"\g<1>Insufficient Resources")),
    ("NVLink inactive", "nvlink.status", _swap("Link 7: 26.562 GB/s", "Link 7: <inactive>")),
    ("NVLink missing", "nvlink.status", _line(r"^\t Link 17: .*\n", "")),
    ("NVLink slow", "nvlink.status", _swap("Link 3: 26.562 GB/s", "Link 3: 13.281 GB/s")),
    ("NVLinks all down", "nvlink.status", _line(r"(UUID: [^)]*\)\n)(?:\t Link.*\n)+", r"\g<1>NVML: Unable to retrieve NVLink information as all links are inactive\n")),
    ("NVLink CRC errors grow", "nvlink.errors_later", _swap("Link 5: CRC Errors: 0", "Link 5: CRC Errors: 1000000")),
    ("NVLink replays grow", "nvlink.errors_later", _swap("Link 2: Replay Errors: 0", "Link 2: Replay Errors: 3")),
    ("GPU gone from the bus", "pci.devices", _without_paths(r"/uevent <==\nDRIVER=nvidia\n")),
    ("GPU without a driver", "pci.devices", _swap("DRIVER=nvidia\n", "")),
    ("NVSwitch gone", "pci.devices", _without_paths(r"/uevent <==\nDRIVER=nvidia-nvswitch\n")),
    ("device at x8", "pci.links", _line(r"(/0000:\w\w:00\.0/current_link_width <==\n)16", r"\g<1>8")),
    ("device at 8 GT/s", "pci.links", _line(r"(/0000:\w\w:00\.0/current_link_speed <==\n)32\.0", r"\g<1>8.0")),
    ("PCIe fatal error", "pcie.errors", _swap("TOTAL_ERR_FATAL 0", "TOTAL_ERR_FATAL 1")),
    ("PCIe non-fatal error", "pcie.errors", _swap("TOTAL_ERR_NONFATAL 0", "TOTAL_ERR_NONFATAL 4")),
    ("ACS on", "pcie.lspci", _swap("ACSCtl:\tSrcValid- TransBlk- ReqRedir-", "ACSCtl:\tSrcValid+ TransBlk- ReqRedir+")),
    ("fabric manager failed", "host.services", _line(r"(nvidia-fabricmanager.service\s+loaded )active   running", r"\g<1>failed   failed ")),
    ("fabric manager absent", "host.services", lambda text: _counted(text, "nvidia-fabricmanager.service")),
    ("persistence daemon dead", "host.services", _line(r"(nvidia-persistenced.service\s+loaded )active   running", r"\g<1>inactive dead   ")),
    ("docker dead", "host.services", _line(r"(docker.service\s+loaded )active   running", r"\g<1>inactive dead   ")),
    ("fabric manager of another version", "fabric_manager.version", _line(r"\d{3}\.\d+\.\d+", "535.54.03")),
    ("port down", "ib.ports", _swap("state <==\n4: ACTIVE", "state <==\n1: DOWN")),
    ("port polling", "ib.ports", _swap("phys_state <==\n5: LinkUp", "phys_state <==\n2: Polling")),
    ("port initialising", "ib.ports", _swap("state <==\n4: ACTIVE", "state <==\n2: INIT")),
    ("port at 200", "ib.ports", _swap("400 Gb/sec (4X NDR)", "200 Gb/sec (2X NDR)")),
    ("no subnet manager", "ib.ports", _swap("sm_lid <==\n0x1", "sm_lid <==\n0x0")),
    ("adapter gone", "ib.ports", _without_paths("/mlx5_0/")),
    ("adapter firmware", "ib.devices", _line(r"(fw_ver <==\n)\S+", r"\g<1>28.30.0001")),
    ("other partition", "ib.pkeys", _swap("0x8001", "0x8002")),
    ("symbol errors", "ib.counters_later", _swap("symbol_error <==\n0", "symbol_error <==\n40")),
    ("link went down", "ib.counters_later", _swap("link_downed <==\n0", "link_downed <==\n1")),
    ("buffer overruns", "ib.counters_later", _swap("buffer_overrun_errors <==\n0", "buffer_overrun_errors <==\n2")),
    ("counter full", "ib.counters_later", _swap("symbol_error <==\n0", "symbol_error <==\n65535")),
    ("counters of one port gone", "ib.counters_later", _without_paths("/mlx5_0/")),
    ("interface flaps", "net.carrier_changes", _swap("bond0/carrier_changes <==\n2", "bond0/carrier_changes <==\n98")),
    ("bond down", "net.links", _swap('"MASTER", "UP", "LOWER_UP"', '"MASTER", "UP", "NO-CARRIER"')),
    ("member left its bond", "net.links", _swap('"master": "bond0", ', "")),
    ("member down", "net.links", _swap('"SLAVE", "UP", "LOWER_UP"', '"SLAVE", "UP", "NO-CARRIER"')),
    ("member at 25", "net.speeds", _swap("speed <==\n100000", "speed <==\n25000")),
    ("CPU offline", "cpu.online", _line(r"^0-(\d+)", "0-7,9-\\1")),
    ("half the CPUs", "cpu.present", lambda _: "0-111\n"),
    ("NUMA node gone", "cpu.numa", lambda _: "0\n"),
    ("DIMM gone", "host.dimms", _line(r"^\tSize: \d+ GB$", "\tSize: No Module Installed")),
    ("DIMM half as large", "host.dimms", _line(r"^\tSize: \d+ GB$", "\tSize: 32 GB")),
    ("memory mapped out", "host.meminfo", _line(r"^MemTotal:\s+\d+ kB", "MemTotal:         400000 kB")),
    ("huge pages", "host.meminfo", _line(r"^HugePages_Total:\s+0", "HugePages_Total:    4096")),
    ("uncorrected memory error", "host.edac", _swap("ue_count <==\n0", "ue_count <==\n1")),
    ("CPUs slowed down by heat", "cpu.throttles", _swap("throttle_count <==\n0", "throttle_count <==\n52133")),
    ("powersave governor", "cpu.governors", _swap("performance", "powersave")),
    ("clocksource hpet", "cpu.clocksource", lambda _: "hpet\n"),
    ("swap on", "host.swaps", lambda text: text + "/swap.img file 8388604 0 -2\n"),
    ("IOMMU translating", "host.iommu", _swap("identity", "DMA", 4)),
    ("little locked memory", "host.limits", _line(r"(Max locked memory\s+)unlimited", r"\g<1>65536    ")),
    ("few open files", "host.limits", lambda text: text.replace("1048576", "1024   ")),
    ("root read-only", "disk.mounts", _swap("/ ext4 rw,", "/ ext4 ro,")),
    ("scratch not mounted", "disk.mounts", _line(r"^/dev/md0 .*\n", "")),
    ("disk full", "disk.space", _line(r"(ext4 .*\s)\d+%", r"\g<1>99%")),
    ("no inodes left", "disk.inodes", _line(r"(ext4 .*\s)\d+%", r"\g<1>100%")),
    ("root not shown", "disk.space", _line(r"^\S+ .* /\n", "")),
    ("zombies", "host.processes", lambda text: text + "".join(f"{5000 + n:>7}       1 Z      900 defunct\n" for n in range(40))),
    ("processes hang", "host.processes", lambda text: text + "".join(f"{6000 + n:>7}       1 D      999 nvidia-smi\n" for n in range(40))),
    ("still starting", "host.system_state", lambda _: "starting\n"),
    ("maintenance", "host.system_state", lambda _: "maintenance\n"),
    ("a failed unit", "host.failed", lambda _: "  UNIT                       LOAD   ACTIVE SUB    DESCRIPTION\n  nvidia-persistenced.service loaded failed failed NVIDIA Persistence Daemon\n\n1 loaded units listed.\n"),
    ("not synchronised", "host.chrony", _swap("Leap status     : Normal", "Leap status     : Not synchronised")),
    ("clock off", "host.chrony", _swap("0.000031204 seconds slow", "4.000031204 seconds slow")),
    ("another OS", "os.release", _line(r'^VERSION_ID=.*$', 'VERSION_ID="9"')),
    ("another kernel", "kernel.release", lambda _: "5.4.0-1-generic\n"),
    ("kernel parameter gone", "kernel.cmdline", _swap(" iommu=pt", "")),
    ("forbidden kernel parameter", "kernel.cmdline", _swap(" iommu=pt", " iommu=pt mitigations=off")),
    ("peermem not loaded", "kernel.modules", _line(r"^nvidia_peermem .*\n", "")),
    ("nouveau loaded", "kernel.modules", lambda text: text + "nouveau 2400256 0 - Live 0x0000000000000000\n"),
    ("kernel oopsed", "kernel.tainted", lambda _: str(12289 | 1 << 7) + "\n"),
    ("machine check taken", "kernel.tainted", lambda _: str(12289 | 1 << 4) + "\n"),
    ("drive failing", "disk.smart", _swap('"passed": true', '"passed": false')),
    ("drive out of spare", "disk.smart", _swap('"available_spare": 100', '"available_spare": 3')),
    ("drive media errors", "disk.smart", _swap('"media_errors": 0', '"media_errors": 12')),
    ("drive critical warning", "disk.smart", _swap('"critical_warning": 0', '"critical_warning": 4')),
    ("drive gone", "disk.smart", _without_paths("nvme1")),
    ("drive tells nothing", "disk.smart", _line(r'"nvme_smart_health_information_log": \{[^}]*\}, ', "")),
    ("array degraded", "disk.mdstat", _swap("[4/4] [UUUU]", "[4/3] [UU_U]")),
    ("array gone", "disk.mdstat", _line(r"^md0 : .*\n.*\n.*\n", "")),
    ("pool degraded", "disk.pools", lambda _: "  pool: tank\n state: DEGRADED\nconfig:\n\n\tNAME STATE READ WRITE CKSUM\n\ttank DEGRADED 0 0 0\n\t  nvme9 UNAVAIL 0 0 0\n\nerrors: No known data errors\n"),
    ("no nvidia runtime", "container.docker", _line(r'"nvidia": \{[^}]*\}, ', "")),
    ("daemon errors", "container.docker", _swap('"ServerErrors": null', '"ServerErrors": ["cannot reach containerd"]')),
    ("registry answers 503", "site.registry", lambda _: "503"),
    ("mirror answers 502", "site.mirror", lambda _: "502"),
    ("power supply lost", "bmc.sel", lambda text: text + "   3 | 03/02/2026 | 09:58:41 | Power Supply PS3 Status | Power Supply AC lost | Asserted\n"),
    ("memory error in the event log", "bmc.sel", lambda text: text + "   3 | 03/02/2026 | 09:58:41 | Memory DIMM_A7 | Uncorrectable ECC | Asserted\n"),
    ("event log cut", "bmc.sel_info", _swap("Entries          : 2", "Entries          : 5")),
    ("fan stopped", "bmc.sensors", _line(r"^(Fan3A\s+\| \w+ \| )ok (\s*\|\s*\S+ \|) .*$", r"\g<1>cr \g<2> 0 RPM")),
    ("redundancy lost", "bmc.sensors", _swap("Fully Redundant", "Redundancy Lost")),
    ("sensors missing", "bmc.sensors", lambda text: "\n".join(text.splitlines()[:5]) + "\n"),
    ("fell off the bus", _RING, _kernel("NVRM: GPU 0000:9b:00.0: GPU has fallen off the bus.")),
    ("driver failed to start", _RING, _kernel("NVRM: GPU 0000:9b:00.0: RmInitAdapter failed! (0x22:0xffff:662)")),
    ("Xid of a MIG instance", _RING, _kernel("NVRM: Xid (PCI:0000:9b:00 GPU-I:01): 95, pid=1, Uncontained")),
    ("Xid of an unknown code", _RING, _kernel("NVRM: Xid (PCI:0000:9b:00): 999, pid=1, new")),
    ("memory error", _RING, _kernel("EDAC MC0: 1 UE memory read error on CPU_SrcID#0_MC#0_Chan#0_DIMM#0 (channel:0 slot:0)")),
    ("machine check", _RING, _kernel("mce: [Hardware Error]: CPU 3: Machine Check Exception: 5 Bank 7: be00000001010091")),
    ("PCIe uncorrected", _RING, _kernel("nvme 0000:e1:00.0: PCIe Bus Error: severity=Uncorrected (Fatal), type=Data Link Layer, (Receiver ID)")),
    ("soft lockup", _RING, _kernel("watchdog: BUG: soft lockup - CPU#44 stuck for 26s! [python3:73464]")),
    ("hung task", _RING, _kernel("INFO: task kworker/3:1:812 blocked for more than 120 seconds.")),
    ("I/O error", _RING, _kernel("blk_update_request: I/O error, dev nvme2n1, sector 2786568960 op 0x1:(WRITE)")),
    ("file system shut down", _RING, _kernel("XFS (md0): Log I/O Error Detected. Shutting down filesystem")),
    ("adapter fatal", _RING, _kernel("mlx5_core 0000:9c:00.0: print_health:819:(pid 0): Fatal error detected")),
    ("adapter limited", _RING, _kernel("mlx5_core 0000:9c:00.0: 252.056 Gb/s available PCIe bandwidth, limited by 32.0 GT/s PCIe x8 link at 0000:97:01.0 (capable of 504.112 Gb/s with 32.0 GT/s PCIe x16 link)")),
    ("GSP timeout", _RING, _kernel("NVRM: GPU6 _kgspLogRpcTimeout: ********************************* GSP Timeout *******")),
    ("gap in the log", _RING, _line(r"^6,20,.*\n", "")),
    ("log without its end", _RING, _swap("# end of kmsg\n", "")),
    ("wrong sums on one GPU", "gpu.gemm", _line(r'("gpu": 3, .*"wrong": )0', r"\g<1>1")),
    ("one GPU multiplies slowly", "gpu.gemm", _line(r'("gpu": 5, "kind": "fp16", .*"tflops": )[\d.]+', r"\g<1>410.2")),
    ("one GPU did not multiply", "gpu.gemm", lambda text: "".join(line for line in text.splitlines(True) if '"gpu": 7' not in line)),
    ("one GPU failed to multiply", "gpu.gemm", _line(r'^\{"gpu": 2, .*$', '{"error": ["CUDA error: out of memory"], "gpu": 2}')),
    ("copies to one GPU slow", "gpu.copies", _line(r"(CPU\(row\) -> GPU\(column\).*\n.*\n 0 +)[\d.]+", r"\g<1>12.31")),
    ("copies between two GPUs slow", "gpu.copies", _line(r"(GPU\(row\) -> GPU\(column\).*\n.*\n 0 +N/A +)[\d.]+", r"\g<1>41.02")),
    ("all-reduce slow", "nccl.allreduce", lambda text: re.sub(r"( 8589934592 .* -1 +[\d.]+ +[\d.]+ +)[\d.]+( +0 +[\d.]+ +[\d.]+ +)[\d.]+", r"\g<1>208.11\g<2>207.90", text)),
    ("all-reduce wrong", "nccl.allreduce", _line(r"( 8589934592 .* -1 +[\d.]+ +[\d.]+ +[\d.]+ +)0", r"\g<1>9")),
    ("all-reduce without its end", "nccl.allreduce", _line(r"^# Avg bus bandwidth.*\n", "")),
    ("adapter slow to itself", "ib.loopback", _line(r"^( 65536 +\d+ +[\d.]+ +)[\d.]+", r"\g<1>181.20")),
    ("drive reads slowly", "disk.reads", _line(r'"bw_bytes": \d+, "iops"', '"bw_bytes": 1400000000, "iops"')),
    ("drive fails to read", "disk.reads", _line(r'"error": 0', '"error": 5')),
    ("host memory slow", "host.memory_speed", _line(r"\([\d.]+ MiB/sec\)", "(201000.10 MiB/sec)")),
    ("one CPU slow", "cpu.times", _line(r'"17": [\d.]+', '"17": 0.4102')),
    ("one CPU untimed", "cpu.times", _line(r'"17": [\d.]+', '"17": -1')),
    ("diagnostic fails", "gpu.diag", _swap('"status": "Pass"', '"status": "Fail"')),
    ("diagnostic did not run", "gpu.diag", lambda _: '{"DCGM Diagnostic": {"runtime_error": "Unable to connect to host engine", "test_categories": null}}\n'),
)  # fmt: skip


def _counted(text: str, unit: str) -> str:
    """Take one unit out of a list, and out of systemctl's count."""
    without = re.sub(rf"^.*{re.escape(unit)}.*\n", "", text, flags=re.MULTILINE)
    return re.sub(r"^(\d+) loaded", lambda found: f"{int(found[1]) - 1} loaded", without, flags=re.MULTILINE)
