"""The lines each check relies on: removed, cut before their end or without their value, none may pass.

Each row is an item and a pattern; what the pattern's group matches is the value. A pattern without a
group names a line whose presence is enough. Where a pattern matches several lines, all are relied on.
`{ib.hcas}` stands for what the profile says under that limit.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

Rows = tuple[tuple[str, str], ...]


def _smi(*labels: str) -> Rows:
    """Return rows for fields of nvidia-smi's report; each holds for every GPU."""
    return tuple(("gpu.smi", rf"^ +{re.escape(label)} +: (.+)$") for label in labels)


def _under(head: str, label: str) -> tuple[str, str]:
    """Return a row for a field that has a name only under its heading."""
    return ("gpu.smi", rf"^ +{re.escape(head)}\n(?: +\S.*\n)*? +{re.escape(label)} +: (.+)$")


def _files(item: str, name: str) -> tuple[str, str]:
    """Return a row for what stands in every file of that name."""
    return (item, rf"^==> \S*/{name} <==\n(.+)$")


_COUNT: Rows = (("gpu.smi", r"^Attached GPUs +: (\d+)$"), ("gpu.smi", r"^(GPU 0000\S+)$"))
# A record that another follows: that the last is missing, no numbering can tell.
_RING: Rows = (("kernel.kmsg", r"^\d+,\d+,\d+,-;(?=.*\n\d)"), ("kernel.kmsg", r"^# end of kmsg$"))
_PORTS: Rows = tuple(
    _files("ib.ports", rf"{{ib.hcas}}/\S*/{name}") for name in ("phys_state", "rate", "state", "link_layer")
)

RELIED_ON: Mapping[str, Rows] = {
    "host.boot": (("host.system_state", r"^(running)$"),),
    "host.time": (),  # reads the clocks of the document, which the seal covers
    "host.time_sync": (
        ("host.chrony", r"^Leap status +: (.+)$"),
        ("host.chrony", r"^System time +: (.+? seconds)"),
        ("host.chrony", r"^Stratum +: (\d+)$"),
    ),
    "host.os": (("os.release", r"^ID=(\w+)$"), ("os.release", r'^VERSION_ID="([\d.]+)"')),
    "host.cpus": (("cpu.online", r"^(\S+)$"), ("cpu.present", r"^(\S+)$")),
    "host.numa": (("cpu.numa", r"^(\S+)$"),),
    "host.memory": (("host.meminfo", r"^MemTotal: +(\d+ kB)$"),),
    "host.dimms": (("host.dimms", r"^\tSize: (\d+ GB)$"),),
    "host.edac": (
        _files("host.edac", "ue_count"),
        _files("host.edac", "ce_count"),
        ("host.edac", r"^==> (\d+) in all <==$"),
    ),
    "host.thermal": (
        _files("cpu.throttles", "package_throttle_count"),
        ("cpu.throttles", r"^==> (\d+) in all <==$"),
    ),
    "host.governor": (_files("cpu.governors", "scaling_governor"), ("cpu.online", r"^(\S+)$")),
    "host.clocksource": (("cpu.clocksource", r"^(\S+)$"),),
    "host.hugepages": (("host.meminfo", r"^HugePages_Total: +(\d+)$"),),
    "host.swap": (("host.swaps", r"^(Filename\s+Type\s+Size\s+Used\s+Priority)$"),),
    "host.iommu": (_files("host.iommu", "type"), ("host.iommu", r"^==> (\d+) in all <==$")),
    "host.limits": (
        ("host.limits", r"^Max open files +\S+ +(\S+)"),
        ("host.limits", r"^Max locked memory +(\S+)"),
        ("host.limits", r"^Limit "),
    ),
    "host.mounts": (("disk.mounts", r"^\S+ {disk.mounts} \S+ (rw\S*) 0 0$"),),
    "host.disk_space": (
        ("disk.space", r"^\S+ +(?:ext4|xfs) .* (\d+%) /\S*$"),
        ("disk.inodes", r"^\S+ +ext4 .* (\d+%) /\S*$"),
        ("disk.space", r"^(Filesystem .*)$"),
        ("disk.inodes", r"^(Filesystem .*)$"),
    ),
    "host.processes": (
        ("host.processes", r"^ *PID +PPID +(STAT) .*$"),
        ("host.processes", r"^ *\d+ +\d+ (\w+) +\d+ ps$"),
    ),
    "host.failed_units": (
        ("host.failed", r"^  (UNIT LOAD ACTIVE SUB DESCRIPTION)$"),
        ("host.failed", r"^(\d+) loaded units listed"),
    ),
    "host.services": (
        ("host.services", r"^ +(?:docker|nvidia-persistenced|chrony)\.service +loaded (\w+ +\w+)"),
        ("host.services", r"^(\d+) loaded units listed"),
    ),
    "kernel.version": (("kernel.release", r"^(\S+)$"),),
    "kernel.cmdline": (("kernel.cmdline", r"^BOOT_IMAGE=.* iommu=(\S+)"),),
    "kernel.modules": (("kernel.modules", r"^(?:nvidia|mlx5_ib|nvidia_uvm) \d+ \d+ \S+ (Live)"),),
    "kernel.taint": (("kernel.tainted", r"^(\d+)$"),),
    "kernel.log": _RING,
    "kernel.boot_log": _RING,
    "disk.drives": (
        ("disk.smart", r'"smart_status": \{"passed": (true)'),
        ("disk.smart", r'"critical_warning": (\d+)'),
        ("disk.smart", r'"media_errors": (\d+)'),
        ("disk.smart", r"^==> (\d+) in all <==$"),
    ),
    "disk.arrays": (
        ("disk.mdstat", r"^md0 : (active raid10)"),
        ("disk.mdstat", r"\[\d/\d\] (\[U+\])$"),
        ("disk.mdstat", r"^(Personalities) :"),
        ("disk.mdstat", r"^(unused devices): "),
    ),
    "disk.pools": (("disk.pools", r"^(no pools available)$"),),
    "pcie.links": (
        ("pci.links", r"^==> \S*/{ib.hcas}/(?:current|max)_link_(?:width|speed) <==\n(\d+(?:\.\d+ GT/s)?)"),
        ("pci.links", r"^==> (\d+) in all <=="),
        ("pci.devices", r"^==> (\d+) in all <=="),
        ("pci.devices", r"^PCI_CLASS=(?:30200|10802|20700)$"),
    ),
    "pcie.errors": (("pcie.errors", r"^TOTAL_ERR_\w+ (\d+)$"), ("pcie.errors", r"^==> (\d+) in all <==")),
    "pcie.acs": (("pcie.lspci", r"^[0-9a-f]{4}:\S+ \w"), ("pci.devices", r"^==> (\d+) in all <==")),
    "gpu.count": _COUNT,
    "gpu.bus": (*_COUNT, ("pci.devices", r"^DRIVER=nvidia$"), ("pci.devices", r"^==> (\d+) in all <==")),
    "gpu.model": (*_COUNT, *_smi("Product Name"), _under("FB Memory Usage", "Total")),
    "gpu.firmware": (
        *_COUNT,
        *_smi("VBIOS Version", "Image Version", "GSP Firmware Version"),
        ("gpu.smi", r"^Driver Version +: (.+)$"),
    ),
    "driver.version": (("gpu.smi", r"^Driver Version +: (.+)$"), ("gpu.smi", r"^CUDA Version +: (.+)$")),
    "gpu.ecc": (
        *_COUNT,
        _under("ECC Mode", "Current"),
        _under("ECC Mode", "Pending"),
        *_smi(
            "DRAM Uncorrectable",
            "SRAM Uncorrectable Parity",
            "SRAM Uncorrectable SEC-DED",
            "SRAM Threshold Exceeded",
        ),
    ),
    "gpu.remap": (
        *_COUNT,
        _under("Remapped Rows", "Pending"),
        *_smi("Remapping Failure Occurred", "Uncorrectable Error"),
    ),
    "gpu.retired": (*_COUNT,),
    "gpu.xid": _RING,
    "gpu.recovery": (*_COUNT, *_smi("Reset Required", "Drain and Reset Recommended")),
    "gpu.throttle": (
        *_COUNT,
        *_smi("HW Slowdown", "HW Thermal Slowdown", "HW Power Brake Slowdown", "SW Thermal Slowdown"),
    ),
    "gpu.temperature": (*_COUNT, *_smi("GPU T.Limit Temp")),
    "gpu.power": (*_COUNT, _under("GPU Power Readings", "Current Power Limit")),
    "gpu.clocks": (
        *_COUNT,
        _under("Max Clocks", "SM"),
        _under("Max Clocks", "Memory"),
        _under("Applications Clocks", "Graphics"),
    ),
    "gpu.pcie": (*_COUNT, _under("PCIe Generation", "Current"), _under("Link Width", "Current")),
    "gpu.modes": (*_COUNT, *_smi("Persistence Mode", "Compute Mode"), _under("MIG Mode", "Current")),
    "gpu.fabric": (*_COUNT, _under("Fabric", "State"), _under("Fabric", "Status")),
    "nvswitch.count": (
        ("pci.devices", r"^DRIVER=nvidia-nvswitch$"),
        ("pci.devices", r"^==> (\d+) in all <=="),
    ),
    "nvswitch.sxid": _RING,
    "nvlink.links": (("nvlink.status", r"^\t Link \d+: (\S+ GB/s)$"), ("nvlink.status", r"^(GPU \d+): ")),
    "nvlink.errors": (
        ("nvlink.errors_later", r"^\t Link \d+: \w+ Errors: (\d+)$"),
        ("nvlink.errors_later", r"^(GPU \d+): "),
    ),
    "fabric_manager.service": (
        ("host.services", r"^ +nvidia-fabricmanager\.service +loaded (\w+ +\w+)"),
        ("fabric_manager.version", r" : (\S+)$"),
        ("gpu.smi", r"^Driver Version +: (.+)$"),
    ),
    "gdr.path": (("kernel.modules", r"^(?:nvidia_peermem|ib_core) \d+ \d+ \S+ (Live)"),),
    "ib.devices": (
        _files("ib.devices", "{ib.hcas}/infiniband/\\w+/fw_ver"),
        ("ib.devices", r"^==> (\d+) in all <=="),
        ("ib.ports", r"^==> (\d+) in all <=="),
    ),
    "ib.ports": (*_PORTS, ("ib.ports", r"^==> (\d+) in all <==")),
    "ib.partition": (_files("ib.pkeys", "0"), ("ib.pkeys", r"^==> (\d+) in all <==")),
    "ib.counters": (
        _files("ib.counters_later", "symbol_error"),
        _files("ib.counters_later", "link_downed"),
        _files("ib.counters", "symbol_error"),
        ("ib.counters_later", r"^==> (\d+) in all <=="),
    ),
    "net.links": (
        _files("net.speeds", "{net.bond_members}/speed"),
        ("net.links", r'"ifname": "(bond0)", "flags"'),
    ),
    "net.flaps": (
        _files("net.carrier_changes", "{net.interfaces}/carrier_changes"),
        ("net.carrier_changes", r"^==> (\d+) in all <=="),
    ),
    "container.runtime": (
        ("container.docker", r'"(nvidia)": \{"path"'),
        ("container.docker", r'"ServerErrors": (null)'),
    ),
    "site.registry": (("site.registry", r"^(\d+)"),),
    "site.mirror": (("site.mirror", r"^(\d+)"),),
    "bmc.sensors": (("bmc.sensors", r"^[\w ]+\| \w+h \| (ok ) \|"),),
    "bmc.events": (
        ("bmc.sel_info", r"^Entries +: (\d+)"),
        ("bmc.sel", r"^ +\d+ \| \S+ \| \S+ \| [^|]+ \| ([^|]+?) +\|"),
    ),
    "host.stragglers": (("cpu.times", r'^\{"cpus": (\d+),'), ("cpu.times", r'"11": ([\d.]+),')),
    "host.memory_speed": (("host.memory_speed", r"transferred \(([\d.]+ MiB/sec)\)$"),),
    "disk.speed": (
        ("disk.reads", r'"bw_bytes": (\d+), "iops"'),
        ("disk.reads", r'"error": (0)'),
        ("disk.reads", r"^==> (\d+) in all <=="),
    ),
    "gpu.copy": (
        ("gpu.copies", r"^SUM (\w+) [\d.]+$"),
        ("gpu.copies", r"^Running (\w+\.)$"),
        ("gpu.copies", r"^ 0 {8} +([\d.]+)"),
    ),
    "gpu.gemm": (
        ("gpu.gemm", r'"tflops": ([\d.]+),'),
        ("gpu.gemm", r'"wrong": (\d+)\}'),
        ("gpu.gemm", r'^\{"(end)": true'),
    ),
    "nccl.allreduce": (
        ("nccl.allreduce", r"^# (Avg bus bandwidth)"),
        ("nccl.allreduce", r"^#  (Rank) "),
        ("nccl.allreduce", r"^# Out of bounds values : (0 OK)"),
    ),
    "ib.loopback": (
        ("ib.loopback", r": mlx5_0\n(?:.*\n)*? 65536 +\d+ +[\d.]+ +([\d.]+) "),
        ("ib.loopback", r"^==> (\d+) in all <=="),
    ),
    "gpu.diag": (("gpu.diag", r'"entity_group_id": 1,\s*"status": "(Pass)"'),),
}
