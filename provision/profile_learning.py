"""Writes a hardware profile from what known-good nodes show: pure, evidence in, limits out.

What all nodes agree on becomes a limit; what they differ in is named and left out, but for versions, of
which all are taken. A check is required where it then passes on every node.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, replace
from enum import StrEnum

from health import catalogue
from health.check import Level
from health.checks import (
    disk_drives,
    host_cpus,
    host_dimms,
    host_mounts,
    host_numa,
    host_os,
    host_swap,
    kernel_version,
    nvlink_links,
)
from health.checks.ib_source import ib_ports
from health.checks.sources import memory, modules, pci_devices, smi_report, whole, word
from health.errors import HealthError
from health.evidence import Evidence
from health.outcome import Status
from health.readers.infiniband import Port
from health.readers.smi import Gpu
from health.readers.smi_messages import GpuLinks, read_links
from health.verdict import Answer, verdict
from inventory.model import Profile

_SHARE_OF_MEMORY = 0.98  # a DIMM that is missing takes more than this leaves
_LINK_SPEED = 0.99  # of the slowest link: drivers round
_MODULES = re.compile(r"^(?:nvidia(?:_\w+)?|mlx5_(?:core|ib)|ib_(?:core|ipoib|uverbs)|gdrdrv)$")


class Merge(StrEnum):
    """How values of several nodes become one."""

    SAME = "same"
    ALL = "all"
    LEAST = "least"


@dataclass(frozen=True, slots=True)
class Fact:
    """One limit: its name, how it is read from evidence, how several nodes' values are merged."""

    limit: str
    read: Callable[[Evidence], object]
    merge: Merge = Merge.SAME


@dataclass(frozen=True, slots=True)
class Learned:
    """A profile, what could not be learned and why, and what fails on a node although it passed as good."""

    profile: Profile
    left_out: Mapping[str, str]
    wrong: tuple[str, ...]


def learn(base: Profile, name: str, found: Mapping[str, Evidence]) -> Learned:
    """Return the profile that fits all nodes in `found`. `base` gives what evidence does not show."""
    limits: dict[str, object] = {}
    left_out: dict[str, str] = {}
    for fact in FACTS:
        value, why = _merged(fact, found)
        if why:
            left_out[fact.limit] = why
        else:
            limits[fact.limit] = value
    kept = {key: value for key, value in base.limits.items() if key not in {fact.limit for fact in FACTS}}
    wide = replace(base, name=name, limits={**kept, **limits}, checks=())
    required, silent, wrong = _tried(wide, found, frozenset(base.checks))
    return Learned(replace(wide, checks=required), {**left_out, **silent}, wrong)


def _merged(fact: Fact, found: Mapping[str, Evidence]) -> tuple[object, str]:
    """Return one value for all nodes, or why there is none."""
    values: dict[str, object] = {}
    for node, evidence in found.items():
        try:
            values[node] = fact.read(evidence)
        except (HealthError, ValueError) as error:
            return None, f"{node}: {error}"
    distinct = {str(value): value for value in values.values()}
    if fact.merge is Merge.LEAST:
        return min(value for value in values.values() if isinstance(value, int | float)), ""
    if fact.merge is Merge.ALL:
        return sorted({one for value in values.values() if isinstance(value, list) for one in value}), ""
    if len(distinct) > 1:
        return None, "the nodes differ: " + "; ".join(f"{node} has {value}" for node, value in values.items())
    return next(iter(distinct.values())), ""


def _tried(
    profile: Profile, found: Mapping[str, Evidence], required_before: frozenset[str]
) -> tuple[tuple[str, ...], dict[str, str], tuple[str, ...]]:
    """Judge every node by the profile: checks that pass on all, those that are of no use, and what is wrong.

    A failure is wrong where the check was required before (`required_before`, empty: all are); else the
    check may not be meant for this kind of node, and is left out.
    """
    silent: dict[str, str] = {}
    wrong: list[str] = []
    for node, evidence in found.items():
        judged = verdict(evidence, profile, Level.QUICK, collected_at=evidence.began.wall_clock)
        for outcome in judged.outcomes:
            if outcome.status is Status.FAIL and (not required_before or outcome.check in required_before):
                wrong.append(f"{node}: {outcome.check}: {outcome.summary}")
            elif outcome.status in (Status.FAIL, Status.UNKNOWN):
                silent[outcome.check] = f"{node}: {outcome.summary}"
    shadowed = catalogue.shadowed(profile)
    names = tuple(
        check.id
        for check in catalogue.required_checks(profile, Level.QUICK)
        if check.id not in silent or check.id in shadowed
    )
    return names, {name: why for name, why in silent.items() if name not in shadowed}, tuple(wrong)


def proves(learned: Learned, found: Mapping[str, Evidence]) -> bool:
    """Say whether the gate, with the learned profile, says yes to every node that it was learned from."""
    return all(
        verdict(
            evidence, learned.profile, Level.QUICK, collected_at=evidence.began.wall_clock
        ).answer is Answer.YES
        for evidence in found.values()
    )  # fmt: skip


def _gpus(evidence: Evidence) -> tuple[Gpu, ...]:
    found = smi_report(evidence).gpus
    if not found:
        raise HealthError("nvidia-smi -q describes no GPU")
    return found


def _of_gpus(path: str) -> Callable[[Evidence], object]:
    """Read a number that is the same on all GPUs."""

    def read(evidence: Evidence) -> object:
        values = {one.number(path) for one in _gpus(evidence)}
        if len(values) != 1 or None in values:
            raise HealthError(f"GPUs differ in {path}, or do not say it")
        return _plain(values.pop())

    return read


def _words_of_gpus(path: str) -> Callable[[Evidence], list[str]]:
    def read(evidence: Evidence) -> list[str]:
        values = [one.value(path) for one in _gpus(evidence)]
        if None in values:
            raise HealthError(f"a GPU does not say its {path}")
        return sorted({str(value) for value in values})

    return read


def _plain(number: float | None) -> int | float | None:
    return int(number) if number is not None and number == int(number) else number


def _driver(evidence: Evidence) -> list[str]:
    return _known(smi_report(evidence).driver, "nvidia-smi names no driver")


def _cuda(evidence: Evidence) -> list[str]:
    return _known(smi_report(evidence).cuda, "nvidia-smi names no CUDA version")


def _known(value: str | None, otherwise: str) -> list[str]:
    if not value:
        raise HealthError(otherwise)
    return [value]


def _switches(evidence: Evidence) -> int:
    devices = pci_devices(evidence)
    return sum(one.vendor == "10de" and one.kind.startswith("0680") for one in devices)


def _link_count(evidence: Evidence) -> int:
    return min(len(one.links) for one in _links(evidence))


def _link_speed(evidence: Evidence) -> float:
    speeds = [speed for one in _links(evidence) for speed in one.links.values()]
    known = [speed for speed in speeds if speed is not None]
    if len(known) != len(speeds) or not known:
        raise HealthError("an NVLink is not active")
    return round(min(known) * _LINK_SPEED, 2)


def _links(evidence: Evidence) -> tuple[GpuLinks, ...]:
    return read_links(whole(evidence, nvlink_links.LINKS.id).text)


def _hcas(evidence: Evidence) -> list[str]:
    return sorted({port.pci for port in _up(evidence)})


def _up(evidence: Evidence) -> list[Port]:
    found = [port for port in ib_ports(evidence) if port.up and port.pci]
    if not found:
        raise HealthError("no fabric port is active")
    return found


def _rate(evidence: Evidence) -> object:
    return _one({port.rate for port in _up(evidence)}, "ports have different rates")


def _layer(evidence: Evidence) -> object:
    return [_one({port.layer for port in _up(evidence)}, "ports speak different protocols")]


def _one(values: Collection[object], otherwise: str) -> object:
    if len(values) != 1:
        raise HealthError(otherwise)
    value = next(iter(values))
    return _plain(value) if isinstance(value, float) else value


def _firmware(evidence: Evidence) -> list[str]:
    return sorted({port.firmware for port in _up(evidence) if port.firmware})


def _count(item: str) -> Callable[[Evidence], int]:
    """Count a set of CPUs or NUMA nodes, in the kernel's form "0-3,8"."""

    def read(evidence: Evidence) -> int:
        total = 0
        for part in word(evidence, item).split(","):
            first, _, last = part.partition("-")
            total += int(last or first) - int(first) + 1
        return total

    return read


def _memory(evidence: Evidence) -> int:
    found = re.search(r"^MemTotal:\s+(\d+) kB$", memory(evidence), re.MULTILINE)
    if not found:
        raise HealthError("/proc/meminfo does not say MemTotal")
    return int(int(found[1]) * _SHARE_OF_MEMORY)


def _dimm_sizes(evidence: Evidence) -> list[int]:
    text = whole(evidence, host_dimms.DIMMS.id).text
    found = re.findall(r"^\s*Size: (\d+) (GB|MB)$", text, re.MULTILINE)
    if not found:
        raise HealthError("dmidecode shows no DIMM")
    return [int(size) // (1 if unit == "GB" else 1024) for size, unit in found]


def _dimms(evidence: Evidence) -> int:
    return len(_dimm_sizes(evidence))


def _dimm_gib(evidence: Evidence) -> object:
    return _one(set(_dimm_sizes(evidence)), "DIMMs are of different sizes")


def _swap(evidence: Evidence) -> str:
    return "on" if len(whole(evidence, host_swap.SWAPS.id).text.splitlines()) > 1 else "off"


def _release(evidence: Evidence) -> list[str]:
    fields = host_os.read_os_release(whole(evidence, host_os.OS_RELEASE.id).text)
    return [f"{fields.get('ID', '')} {fields.get('VERSION_ID', '')}"]


def _kernel(evidence: Evidence) -> list[str]:
    return [word(evidence, kernel_version.RELEASE.id)]


def _modules(evidence: Evidence) -> list[str]:
    return sorted(name for name in modules(evidence) if _MODULES.match(name))


def _mounts(evidence: Evidence) -> list[str]:
    """Return mounts of disks and of memory that hold data, not the system's own."""
    rows = [line.split() for line in whole(evidence, host_mounts.MOUNTS.id).text.splitlines()]
    usual = re.compile(r"^/(?:proc|sys|dev|run|tmp|boot|snap)(?:/|$)")
    return sorted({row[1] for row in rows if len(row) == 6 and not usual.match(row[1])})


def _drives(evidence: Evidence) -> int:
    text = whole(evidence, disk_drives.SMART.id).text
    return len(re.findall(r"^==> /sys/class/nvme/", text, re.MULTILINE)) or _nothing("no drive answers")


def _nothing(why: str) -> int:
    raise HealthError(why)


FACTS: tuple[Fact, ...] = (
    Fact("gpu.count", lambda evidence: len(_gpus(evidence))),
    Fact("gpu.model", _words_of_gpus("product_name"), Merge.ALL),
    Fact("gpu.memory_mib", _of_gpus("fb_memory_usage/total")),
    Fact("gpu.vbios", _words_of_gpus("vbios_version"), Merge.ALL),
    Fact("gpu.inforom", _words_of_gpus("inforom_version/image_version"), Merge.ALL),
    Fact("gpu.power_limit_w", _of_gpus("gpu_power_readings/current_power_limit")),
    Fact("gpu.clock_sm_mhz", _of_gpus("max_clocks/sm")),
    Fact("gpu.clock_memory_mhz", _of_gpus("max_clocks/memory")),
    Fact("gpu.pcie_width", _of_gpus("pci/gpu_link_info/link_width/max")),
    Fact("gpu.pcie_gen", _of_gpus("pci/gpu_link_info/pcie_generation/max")),
    Fact("driver.version", _driver, Merge.ALL),
    Fact("driver.cuda", _cuda, Merge.ALL),
    Fact("nvswitch.count", _switches),
    Fact("nvlink.links", _link_count),
    Fact("nvlink.speed_gbps", _link_speed, Merge.LEAST),
    Fact("ib.hcas", _hcas),
    Fact("ib.rate_gbps", _rate),
    Fact("ib.link_layer", _layer),
    Fact("ib.firmware", _firmware, Merge.ALL),
    Fact("host.cpus", _count(host_cpus.PRESENT.id)),
    Fact("host.numa_nodes", _count(host_numa.NODES.id)),
    Fact("host.memory_min_kb", _memory, Merge.LEAST),
    Fact("host.dimms", _dimms),
    Fact("host.dimm_gib", _dimm_gib),
    Fact("host.swap", _swap),
    Fact("os.releases", _release, Merge.ALL),
    Fact("kernel.versions", _kernel, Merge.ALL),
    Fact("kernel.modules", _modules),
    Fact("disk.mounts", _mounts),
    Fact("disk.drives", _drives),
)
