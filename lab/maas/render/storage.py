"""Disks, partitions and volumes as API answers."""

from __future__ import annotations

from lab.maas.model.machine import Disk, Filesystem, Machine, Partition
from lab.maas.model.status import Status
from lab.maas.render import API

Json = dict[str, object]

# Partitions begin and end on whole units; the first and the last one belong to the partition table.
_UNIT = 4 * 1024 * 1024
_ALLOCATED_VIEW = frozenset({
    Status.TESTING, Status.FAILED_TESTING, Status.ENTERING_RESCUE_MODE, Status.RESCUE_MODE,
    Status.FAILED_ENTERING_RESCUE_MODE, Status.EXITING_RESCUE_MODE, Status.FAILED_EXITING_RESCUE_MODE,
})  # fmt: skip


def partition_room(disk: Disk) -> int:
    """Return how many bytes a single partition may take."""
    return (disk.size // _UNIT - 2) * _UNIT


def filesystem(one: Filesystem | None) -> Json | None:
    """Render a file system."""
    if one is None:
        return None
    return {
        "fstype": one.fstype,
        "label": one.label,
        "uuid": one.uuid,
        "mount_point": one.mount_point,
        "mount_options": None,
    }


def _partition(machine: Machine, disk: Disk, one: Partition) -> Json:
    # A machine that is tested or rescued without having been allocated shows no file system:
    # MAAS then looks for the one that allocation would have made.
    hidden = machine.status in _ALLOCATED_VIEW and not machine.acquired
    return {
        "uuid": one.uuid,
        "size": one.size,
        "bootable": False,
        "tags": [],
        "filesystem": None if hidden else filesystem(one.filesystem),
        "system_id": machine.system_id,
        "type": "partition",
        "id": one.id,
        "used_for": one.used_for,
        "device_id": disk.id,
        "path": f"/dev/disk/by-dname/{disk.name}-part2",
        "resource_uri": f"{API}/nodes/{machine.system_id}/blockdevices/{disk.id}/partition/{one.id}",
    }


def disk(machine: Machine, one: Disk) -> Json:
    """Render a physical disk or a logical volume."""
    return _virtual(machine, one) if one.virtual else _physical(machine, one)


def listed_disk(machine: Machine, one: Disk) -> Json:
    """Render a disk as its own address does: without the firmware, which only machines show."""
    shown = disk(machine, one)
    shown.pop("firmware_version", None)
    return shown


def _physical(machine: Machine, one: Disk) -> Json:
    parts = [_partition(machine, one, one.partition)] if one.partition else []
    used = partition_room(one) + _UNIT if one.partition else 0
    return {
        "firmware_version": None,
        "filesystem": filesystem(one.filesystem),
        "numa_node": 0,
        "tags": list(one.tags),
        "system_id": machine.system_id,
        "partitions": parts,
        "type": "physical",
        "storage_pool": None,
        "block_size": one.block_size,
        "uuid": one.uuid,
        "name": one.name,
        "available_size": 0 if one.partition else partition_room(one),
        "used_size": used,
        "partition_table_type": "GPT" if one.partition else None,
        "id": one.id,
        "used_for": "GPT partitioned with 1 partition" if one.partition else "Unused",
        "size": one.size,
        "serial": one.serial,
        "id_path": f"/dev/{one.name}",
        "path": f"/dev/disk/by-dname/{one.name}",
        "model": one.model,
        "resource_uri": f"{API}/nodes/{machine.system_id}/blockdevices/{one.id}/",
    }


def _virtual(machine: Machine, one: Disk) -> Json:
    mounted = one.filesystem.mount_point if one.filesystem else None
    return {
        "filesystem": filesystem(one.filesystem),
        "numa_node": None,
        "tags": [],
        "system_id": machine.system_id,
        "partitions": [],
        "type": "virtual",
        "storage_pool": None,
        "block_size": one.block_size,
        "uuid": one.uuid,
        "name": one.name,
        "available_size": 0,
        "used_size": one.size,
        "partition_table_type": None,
        "id": one.id,
        "used_for": f"ext4 formatted filesystem mounted at {mounted}" if mounted else "Unused",
        "size": one.size,
        "serial": None,
        "id_path": None,
        "path": f"/dev/disk/by-dname/{one.name}",
        "model": None,
        "resource_uri": f"{API}/nodes/{machine.system_id}/blockdevices/{one.id}/",
    }
