"""Storage layouts: what is put on a machine's disks."""

from __future__ import annotations

from lab.maas.errors import Refusal
from lab.maas.life.conductor import Conductor
from lab.maas.model.machine import Disk, Filesystem, Machine, Partition
from lab.maas.model.status import Status
from lab.maas.render.storage import partition_room

LAYOUTS = ("custom", "vmfs7", "bcache", "lvm", "flat", "vmfs6", "blank")
_UNIT = 4 * 1024 * 1024


def set_layout(ctl: Conductor, machine: Machine, name: str) -> None:
    """Lay the disks out anew. Raises Refusal for an unknown layout or a machine in use."""
    if name not in LAYOUTS:
        known = ", ".join(f"'{one}'" for one in LAYOUTS)
        text = f"'{name}' is not a valid storage_layout.  It should be one of: {known}."
        raise Refusal(400, {"storage_layout": [text]})
    if machine.status not in {Status.READY, Status.ALLOCATED}:
        text = "Cannot change the storage layout on a machine that is not Ready or Allocated."
        raise Refusal(409, text)
    if machine.boot_disk is None:
        raise Refusal(400, "Cannot set layout, because the machine has no storage attached.")
    if name == "lvm":
        clear(machine)
        _lvm(ctl, machine)
    elif name == "blank":
        clear(machine)
    else:
        flat(ctl, machine)


def flat(ctl: Conductor, machine: Machine) -> None:
    """Put one root partition on the boot disk."""
    clear(machine)
    disk = machine.boot_disk
    if disk is None:
        return
    root = Filesystem("ext4", ctl.region.fresh_uuid(), "root", "/")
    _partition(ctl, disk, root, "ext4 formatted filesystem mounted at /")


def root_is_mounted(machine: Machine) -> bool:
    """Say whether some layout provides a root file system."""
    return any(
        (disk.filesystem and disk.filesystem.mount_point == "/")
        or (disk.partition and disk.partition.filesystem and disk.partition.filesystem.mount_point == "/")
        for disk in machine.disks
    )


def clear(machine: Machine) -> None:
    """Take everything off the disks."""
    machine.disks = [one for one in machine.disks if not one.virtual]
    machine.volume_group = None
    for one in machine.disks:
        one.partition = one.filesystem = None


def _lvm(ctl: Conductor, machine: Machine) -> None:
    disk = machine.boot_disk
    if disk is None:
        return
    volume = Filesystem("lvm-pv", ctl.region.fresh_uuid())
    _partition(ctl, disk, volume, "LVM volume for vgroot")
    machine.volume_group = ctl.region.number("volume_group")
    root = Disk(
        ctl.region.number("disk"),
        "vgroot-lvroot",
        partition_room(disk) - _UNIT,
        virtual=True,
        block_size=4096,
        uuid=ctl.region.fresh_uuid(),
        filesystem=Filesystem("ext4", ctl.region.fresh_uuid(), "root", "/"),
    )
    machine.disks.append(root)


def _partition(ctl: Conductor, disk: Disk, holds: Filesystem, used_for: str) -> None:
    disk.partition = Partition(
        ctl.region.number("partition"), ctl.region.fresh_uuid(), partition_room(disk), holds, used_for
    )
