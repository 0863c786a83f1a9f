"""The table of all checks, and the plan that collects for them. Adding a check adds one row."""

from __future__ import annotations

import re
from dataclasses import replace

from health import limits
from health.check import Check, Collect, Level
from health.checks import (
    bmc_events,
    bmc_sensors,
    container_runtime,
    disk_arrays,
    disk_drives,
    disk_pools,
    disk_speed,
    driver_version,
    fabric_manager_service,
    gdr_path,
    gpu_bus,
    gpu_clocks,
    gpu_copy,
    gpu_count,
    gpu_diag,
    gpu_ecc,
    gpu_fabric,
    gpu_firmware,
    gpu_gemm,
    gpu_model,
    gpu_modes,
    gpu_pcie,
    gpu_power,
    gpu_recovery,
    gpu_remap,
    gpu_retired,
    gpu_temperature,
    gpu_throttle,
    gpu_xid,
    host_boot,
    host_clocksource,
    host_cpus,
    host_dimms,
    host_disk_space,
    host_edac,
    host_failed_units,
    host_governor,
    host_hugepages,
    host_iommu,
    host_limits,
    host_memory,
    host_memory_speed,
    host_mounts,
    host_numa,
    host_os,
    host_processes,
    host_services,
    host_stragglers,
    host_swap,
    host_thermal,
    host_time,
    host_time_sync,
    ib_counters,
    ib_devices,
    ib_loopback,
    ib_partition,
    ib_ports,
    kernel_boot_log,
    kernel_cmdline,
    kernel_log,
    kernel_modules,
    kernel_taint,
    kernel_version,
    nccl_allreduce,
    net_flaps,
    net_links,
    nvlink_errors,
    nvlink_links,
    nvswitch_count,
    nvswitch_sxid,
    pcie_acs,
    pcie_errors,
    pcie_links,
    site_mirror,
    site_registry,
)
from health.errors import UnknownCheck
from health.plan import CollectPlan, make_plan
from inventory.model import Profile

CHECKS: tuple[Check, ...] = (
    host_boot.CHECK,
    host_time.CHECK,
    host_time_sync.CHECK,
    host_os.CHECK,
    host_cpus.CHECK,
    host_numa.CHECK,
    host_memory.CHECK,
    host_dimms.CHECK,
    host_edac.CHECK,
    host_thermal.CHECK,
    host_governor.CHECK,
    host_clocksource.CHECK,
    host_hugepages.CHECK,
    host_swap.CHECK,
    host_iommu.CHECK,
    host_limits.CHECK,
    host_mounts.CHECK,
    host_disk_space.CHECK,
    host_processes.CHECK,
    host_failed_units.CHECK,
    host_services.CHECK,
    kernel_version.CHECK,
    kernel_cmdline.CHECK,
    kernel_modules.CHECK,
    kernel_taint.CHECK,
    kernel_log.CHECK,
    kernel_boot_log.CHECK,
    disk_drives.CHECK,
    disk_arrays.CHECK,
    disk_pools.CHECK,
    pcie_links.CHECK,
    pcie_errors.CHECK,
    pcie_acs.CHECK,
    gpu_count.CHECK,
    gpu_bus.CHECK,
    gpu_model.CHECK,
    gpu_firmware.CHECK,
    driver_version.CHECK,
    gpu_ecc.CHECK,
    gpu_remap.CHECK,
    gpu_retired.CHECK,
    gpu_xid.CHECK,
    gpu_recovery.CHECK,
    gpu_throttle.CHECK,
    gpu_temperature.CHECK,
    gpu_power.CHECK,
    gpu_clocks.CHECK,
    gpu_pcie.CHECK,
    gpu_modes.CHECK,
    gpu_fabric.CHECK,
    nvswitch_count.CHECK,
    nvswitch_sxid.CHECK,
    nvlink_links.CHECK,
    nvlink_errors.CHECK,
    fabric_manager_service.CHECK,
    gdr_path.CHECK,
    ib_devices.CHECK,
    ib_ports.CHECK,
    ib_partition.CHECK,
    ib_counters.CHECK,
    net_links.CHECK,
    net_flaps.CHECK,
    container_runtime.CHECK,
    site_registry.CHECK,
    site_mirror.CHECK,
    bmc_sensors.CHECK,
    bmc_events.CHECK,
    host_stragglers.CHECK,
    host_memory_speed.CHECK,
    disk_speed.CHECK,
    gpu_copy.CHECK,
    gpu_gemm.CHECK,
    nccl_allreduce.CHECK,
    ib_loopback.CHECK,
    gpu_diag.CHECK,
)

_LIMIT = re.compile(r"\$\{([\w.]+)\}")
# Seconds for the whole collection of a level; a profile may state its own, for example
# "collect.quick.total_s".
_TOTAL_S = {Level.QUICK: 25.0, Level.FULL: 1800.0, Level.BURNIN: 14400.0}


def check(id: str) -> Check:
    """Return the check called `id`. Raises UnknownCheck."""
    for row in CHECKS:
        if row.id == id:
            return row
    raise UnknownCheck(id)


def required_checks(profile: Profile, level: Level) -> tuple[Check, ...]:
    """Return the checks that a gate of `level` runs for `profile`, in the table's order."""
    return tuple(
        row for row in CHECKS if level.holds(row.level) and (not profile.checks or row.id in profile.checks)
    )


def shadowed(profile: Profile) -> frozenset[str]:
    """Return the ids that report without gating: new checks that the profile does not let gate, and others
    that it names.
    """
    named = limits.optional_words(profile, "shadow.checks")
    trusted = limits.optional_words(profile, "gate.checks")
    return frozenset(row.id for row in CHECKS if row.id in named or (not row.gates and row.id not in trusted))


def plan(profile: Profile, level: Level) -> CollectPlan:
    """Return what to collect for a gate of `level`."""
    total = limits.optional_number(profile, f"collect.{level}.total_s", _TOTAL_S[level])
    wanted = (item for row in required_checks(profile, level) for item in row.collects)
    filled = (_filled(item, profile) for item in wanted)
    return make_plan((item for item in filled if item is not None), total)


def _filled(item: Collect, profile: Profile) -> Collect | None:
    """Put the profile's limits where an item names them; None where one is not stated."""
    named = {name for word in item.argv for name in _LIMIT.findall(word)}
    values = {name: profile.limit(name) for name in named}
    if None in values.values():
        return None
    words = (_LIMIT.sub(lambda name: str(values[name[1]]), word) for word in item.argv)
    return replace(item, argv=tuple(words))
