"""What a node's evidence says of its hardware and system, as the limits of a profile. One function a part."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping

from health.checks import (
    bmc_sensors,
    disk_arrays,
    disk_pools,
    disk_speed,
    gpu_copy,
    gpu_gemm,
    host_cpus,
    host_dimms,
    host_iommu,
    host_limits,
    host_memory_speed,
    host_mounts,
    host_numa,
    host_os,
    host_swap,
    ib_loopback,
    ib_partition,
    kernel_version,
    nccl_allreduce,
    net_links,
    nvlink_links,
    pcie_acs,
)
from health.checks.ib_source import ib_ports
from health.checks.sources import (
    CMDLINE,
    SERVICES,
    files,
    memory,
    modules,
    pci_devices,
    smi_report,
    whole,
    word,
)
from health.errors import Unreadable
from health.evidence import Evidence
from health.profiles.hardware import product_of
from health.readers.benchmark import read_collectives, read_transfers
from health.readers.ipmi import read_sensors
from health.readers.json_text import only, sections
from health.readers.network import read_links as read_interfaces
from health.readers.service import read_units
from health.readers.smi_messages import read_links
from health.readers.speed import read_copies, read_fio, read_products, read_sysbench_memory
from health.readers.storage import read_mdstat, read_zpool

Limits = dict[str, object]
Find = Callable[[Evidence], Limits]

# How far under what a good node has shown its like may be.
SLACK = 0.95
_BASIC_SERVICES = re.compile(
    r"^(?:docker|containerd|chrony|chronyd|ssh|sshd|nvidia-persistenced|nvidia-dcgm|dcgm|nvsm|openibd|slurmd"
    r"|systemd-timesyncd|ipmievd|smartmontools|smartd)\.service$"
)
_KEEPABLE_WORDS = re.compile(
    r"^(?:iommu|intel_iommu|amd_iommu|pci|mitigations|numa_balancing|init_on_alloc|cgroup)"
)
_DRIVERS = ("nvidia", "nvidia_uvm", "nvidia_peermem", "mlx5_core", "mlx5_ib", "gdrdrv")


def gpus(evidence: Evidence) -> Limits:
    """Count and describe the GPUs."""
    report = smi_report(evidence)
    if not report.gpus:
        raise Unreadable("nvidia-smi -q", "it describes no GPU")

    def words(path: str) -> list[str]:
        return sorted({value for gpu in report.gpus if (value := gpu.value(path))})

    def least(path: str) -> float:
        values = {value for gpu in report.gpus if (value := gpu.number(path)) is not None}
        if len(values) != 1:
            raise Unreadable("nvidia-smi -q", f"its GPUs differ in {path}")
        return values.pop()

    link = "pci/gpu_link_info"
    return {
        "gpu.count": len(report.gpus),
        "gpu.model": words("product_name"),
        "gpu.memory_mib": least("fb_memory_usage/total"),
        "gpu.vbios": words("vbios_version"),
        "gpu.inforom": words("inforom_version/image_version"),
        "gpu.power_limit_w": least("gpu_power_readings/current_power_limit"),
        "gpu.clock_sm_mhz": least("max_clocks/sm"),
        "gpu.clock_memory_mhz": least("max_clocks/memory"),
        "gpu.pcie_width": least(f"{link}/link_width/max"),
        "gpu.pcie_gen": least(f"{link}/pcie_generation/max"),
        "driver.version": [report.driver or "unknown"],
        "driver.cuda": [report.cuda or "unknown"],
    }


def switches(evidence: Evidence) -> Limits:
    """Count the NVSwitches."""
    found = [one for one in pci_devices(evidence) if one.vendor == "10de" and one.kind.startswith("0680")]
    return {"nvswitch.count": len(found)}


def nvlinks(evidence: Evidence) -> Limits:
    """Count the NVLinks of each GPU, and their speed."""
    found = read_links(whole(evidence, nvlink_links.LINKS.id).text)
    counts = {len(one.links) for one in found}
    rates = [rate for one in found for rate in one.links.values() if rate is not None]
    if len(counts) != 1 or not rates:
        raise Unreadable("nvidia-smi nvlink -s", "its GPUs differ")
    return {"nvlink.links": counts.pop(), "nvlink.speed_gbps": min(rates)}


def direct_path(evidence: Evidence) -> Limits:
    """Tell how the fabric's adapters reach the GPUs' memory."""
    loaded = modules(evidence)
    kind = "none" if "ib_core" not in loaded else "peermem" if "nvidia_peermem" in loaded else "dmabuf"
    return {"gdr.path": kind if "nvidia" in loaded else "none"}


def access_control(evidence: Evidence) -> Limits:
    """Tell whether bridges send peers' traffic through the root."""
    text = whole(evidence, pcie_acs.LSPCI.id).text
    controls = re.findall(r"ACSCtl:\s*(.*)", text)
    on = {"SrcValid+" in one or "ReqRedir+" in one for one in controls}
    if len(on) != 1:
        raise Unreadable("lspci -vvv", "its bridges differ in ACS, or show none")
    return {"pcie.acs": "on" if on.pop() else "off"}


def fabric(evidence: Evidence) -> Limits:
    """Tell which adapters have a port on the fabric, and how fast those are."""
    up = [one for one in ib_ports(evidence) if one.up and one.pci]
    fast = [one for one in up if one.rate == max(other.rate or 0 for other in up)]
    if not fast:
        raise Unreadable("/sys/class/infiniband", "no port is up")
    keys = {path.split("/")[4]: text.strip() for path, text in files(evidence, ib_partition.KEYS.id).items()}
    return {
        "ib.hcas": sorted(one.pci or "" for one in fast),
        "ib.rate_gbps": fast[0].rate,
        "ib.firmware": sorted({one.firmware or "unknown" for one in fast}),
        "ib.pkey": sorted({keys[one.device] for one in fast if one.device in keys}),
        "ib.link_layer": sorted({one.layer or "InfiniBand" for one in fast}),
    }


def network(evidence: Evidence) -> Limits:
    """Tell which bonds there are, of what, and how fast; without a bond, which interfaces are up."""
    found = read_interfaces(whole(evidence, net_links.LINKS.id).text)
    speeds = {path.split("/")[4]: text.strip() for path, text in files(evidence, net_links.SPEEDS.id).items()}
    bonds = sorted(one.name for one in found if one.is_bond and one.carrier)
    members = sorted(one.name for one in found if one.bond in bonds and one.carrier)
    rates = [int(speeds[name]) / 1000 for name in members if speeds.get(name, "").isdecimal()]
    ports = sorted(one.name for one in found if one.carrier and re.match(r"en|eth", one.name))
    if not (bonds or ports):
        raise Unreadable("ip link", "no interface is up")
    bonded: Limits = {"net.bond_members": members} if bonds else {}
    speed: Limits = {"net.speed_gbps": min(rates)} if rates else {}
    return {"net.interfaces": bonds or ports, **bonded, **speed}


def cpus(evidence: Evidence) -> Limits:
    """Count CPUs and NUMA nodes."""
    present = host_cpus.cpu_set(word(evidence, host_cpus.PRESENT.id))
    nodes = host_cpus.cpu_set(word(evidence, host_numa.NODES.id))
    return {"host.cpus": len(present), "host.numa_nodes": len(nodes)}


def host_memory(evidence: Evidence) -> Limits:
    """Say how much memory there is, less a little that the firmware may keep; and how it is set up."""
    text = memory(evidence)
    total = int(only("/proc/meminfo", r"^MemTotal:\s+(\d+) kB$", text)[1])
    pages = int(only("/proc/meminfo", r"^HugePages_Total:\s+(\d+)$", text)[1])
    swaps = whole(evidence, host_swap.SWAPS.id).text.splitlines()
    return {
        "host.memory_min_kb": int(total * 0.99),
        "host.hugepages": pages,
        "host.swap": "on" if len(swaps) > 1 else "off",
    }


def dimms(evidence: Evidence) -> Limits:
    """Count the DIMMs, which must be alike."""
    text = whole(evidence, host_dimms.DIMMS.id).text
    sizes = re.findall(r"^\s*Size: (\d+) (GB|MB)$", text, re.MULTILINE)
    gib = {int(amount) / (1 if unit == "GB" else 1024) for amount, unit in sizes}
    if len(gib) != 1:
        raise Unreadable("dmidecode", "DIMMs differ in size, or none is shown")
    return {"host.dimms": len(sizes), "host.dimm_gib": gib.pop()}


def translation(evidence: Evidence) -> Limits:
    """Tell what the IOMMU does."""
    item = evidence.item(host_iommu.GROUPS.id)
    kinds = {text.strip() for text in sections(item.text).values()} if item else set()
    if not kinds and not (item and "no file matches" in item.errors):
        raise Unreadable(host_iommu.GROUPS.file, "it did not come back")
    return {"host.iommu": "off" if not kinds else "passthrough" if kinds == {"identity"} else "on"}


def session(evidence: Evidence) -> Limits:
    """Say how much a session may use."""
    text = whole(evidence, host_limits.LIMITS.id).text
    lock = only("/proc/self/limits", r"^Max locked memory\s+(\S+)\s+(\S+)\s+bytes\s*$", text)
    opened = only("/proc/self/limits", r"^Max open files\s+(\S+)\s+(\S+)\s+files\s*$", text)
    most: Limits = {"host.open_files_min": int(opened[2])} if opened[2].isdecimal() else {}
    return {"host.memlock": [lock[1]], **most}


def product(evidence: Evidence) -> Limits:
    """Name the machine as its firmware does."""
    return {"host.product": [product_of(evidence)]}


def system(evidence: Evidence) -> Limits:
    """Tell the release, the kernel, its drivers and what its command line says of devices."""
    fields = host_os.read_os_release(whole(evidence, host_os.OS_RELEASE.id).text)
    loaded = modules(evidence)
    words = word(evidence, CMDLINE.id).split()
    return {
        "os.releases": [f"{fields['ID']} {fields['VERSION_ID']}"],
        "kernel.versions": [word(evidence, kernel_version.RELEASE.id)],
        "kernel.modules": [name for name in _DRIVERS if name in loaded],
        "kernel.cmdline": [one for one in words if _KEEPABLE_WORDS.match(one)],
    }


def services(evidence: Evidence) -> Limits:
    """Name the services that run and that a GPU node of any kind needs."""
    units = read_units(whole(evidence, SERVICES.id).text)
    names = {one.name for one in units if one.active == "active" and _BASIC_SERVICES.match(one.name)}
    return {"host.services": sorted(name.removesuffix(".service") for name in names)}


def storage(evidence: Evidence) -> Limits:
    """Count drives, arrays and pools, and name what is mounted from drives."""
    pools = evidence.item(disk_pools.POOLS.id)
    drives = len(files(evidence, "disk.smart"))
    rows = [line.split() for line in whole(evidence, host_mounts.MOUNTS.id).text.splitlines()]
    mounts = {row[1] for row in rows if len(row) == 6 and row[0].startswith("/dev/")}
    mounts = {mount for mount in mounts if not re.match(r"/(?:snap|boot|var/lib)(?:/|$)", mount)}
    absent = pools is not None and pools.missing
    return {
        "disk.drives": drives,
        "disk.arrays": len(read_mdstat(whole(evidence, disk_arrays.MDSTAT.id).text)),
        "disk.pools": 0 if absent else len(read_zpool(whole(evidence, disk_pools.POOLS.id).text)),
        "disk.mounts": sorted(mounts | {"/"}),
    }


def board(evidence: Evidence) -> Limits:
    """Say how many sensors the BMC shows at least."""
    found = read_sensors(whole(evidence, bmc_sensors.SENSORS.id).text)
    return {"bmc.sensors_min": int(len(found) * SLACK)}


def speeds(evidence: Evidence) -> Limits:
    """Turn what a full gate has measured into floors. What was not measured is left out."""
    found: Limits = {}
    for name, find in _SPEEDS.items():
        item = evidence.item(name)
        if item is not None and item.ok:
            found |= {limit: round(SLACK * value, 1) for limit, value in find(evidence).items()}
    return found


def _products(evidence: Evidence) -> Mapping[str, float]:
    products = read_products(whole(evidence, gpu_gemm.GEMM.id).text)
    kinds = {one.kind for one in products}
    return {
        f"gpu.gemm_{kind}_tflops_min": min(one.tflops for one in products if one.kind == kind)
        for kind in kinds
    }


def _copies(evidence: Evidence) -> Mapping[str, float]:
    found = read_copies(whole(evidence, gpu_copy.COPIES.id).text).speeds
    peer = [value for (test, _, _), value in found.items() if test.startswith("device_to_device")]
    host = [value for (test, _, _), value in found.items() if not test.startswith("device_to_device")]
    return {
        **({"gpu.copy_host_gbps_min": min(host)} if host else {}),
        **({"gpu.copy_peer_gbps_min": min(peer)} if peer else {}),
    }


def _collective(evidence: Evidence) -> Mapping[str, float]:
    runs = read_collectives(whole(evidence, nccl_allreduce.ALLREDUCE.id).text)
    return {"nccl.busbw_gbps_min": min(run.bandwidths[-1] for run in runs)}


def _loopbacks(evidence: Evidence) -> Mapping[str, float]:
    texts: Iterable[str] = files(evidence, ib_loopback.LOOPBACK.id).values()
    return {
        "ib.loopback_gbps_min": min(
            max(read_transfers(text), key=lambda row: row.size).average for text in texts
        )
    }


def _reads(evidence: Evidence) -> Mapping[str, float]:
    texts: Iterable[str] = files(evidence, disk_speed.READS.id).values()
    return {"disk.read_mb_s_min": min(read_fio(text) / 1e6 for text in texts)}


def _memory_speed(evidence: Evidence) -> Mapping[str, float]:
    return {"host.memory_mib_s_min": read_sysbench_memory(whole(evidence, host_memory_speed.MEMORY.id).text)}


_SPEEDS: Mapping[str, Callable[[Evidence], Mapping[str, float]]] = {
    gpu_gemm.GEMM.id: _products,
    gpu_copy.COPIES.id: _copies,
    nccl_allreduce.ALLREDUCE.id: _collective,
    ib_loopback.LOOPBACK.id: _loopbacks,
    disk_speed.READS.id: _reads,
    host_memory_speed.MEMORY.id: _memory_speed,
}

PARTS: Mapping[str, Find] = {
    "machine": product,
    "GPUs": gpus,
    "NVSwitches": switches,
    "NVLinks": nvlinks,
    "GPU direct path": direct_path,
    "ACS": access_control,
    "fabric adapters": fabric,
    "network": network,
    "CPUs": cpus,
    "memory": host_memory,
    "DIMMs": dimms,
    "IOMMU": translation,
    "session limits": session,
    "system": system,
    "services": services,
    "storage": storage,
    "BMC": board,
    "speeds": speeds,
}
