"""The QEMU command line of one node."""

from __future__ import annotations

import uuid
from dataclasses import dataclass
from pathlib import Path

NET_ID = "net0"
SERIAL_ID = "serial0"

_MEMORY_MB = 512
_TRANSLATION_MB = 128
_NAMES = uuid.UUID("6ba7b812-9dad-11d1-80b4-00c04fd430c8")


@dataclass(frozen=True, slots=True)
class Launch:
    """Everything about a start that cannot change while QEMU runs."""

    name: str
    serial: str
    mac: str
    disk: Path
    boot_server: str
    netboot_first: bool
    ssh_forward: tuple[str, int] | None  # where this machine listens for the node's sshd; None: nowhere
    lease: bool = True  # False: the cable leads to a net without a DHCP server


@dataclass(frozen=True, slots=True)
class Lines:
    """Numbers of the sockets that QEMU inherits."""

    serial_fd: int
    monitor_fd: int


def command_line(program: str, launch: Launch, lines: Lines) -> list[str]:
    """Return the arguments that start `launch`. Always TCG: /dev/kvm may open and still abort."""
    net, disk = (0, 1) if launch.netboot_first else (1, 0)
    return [
        program,
        *("-nodefaults", "-no-user-config", "-display", "none", "-name", launch.name),
        *("-M", "q35,graphics=off", "-accel", f"tcg,thread=multi,tb-size={_TRANSLATION_MB}"),
        *("-smp", "1", "-m", str(_MEMORY_MB)),
        # Paused rather than gone: the lab decides what a reboot or a power-off from inside does.
        *("-action", "reboot=shutdown,shutdown=pause"),
        *("-chardev", f"socket,id={SERIAL_ID},fd={lines.serial_fd}"),
        *("-serial", f"chardev:{SERIAL_ID}"),
        *("-chardev", f"socket,id=monitor,fd={lines.monitor_fd}", "-mon", "chardev=monitor,mode=control"),
        *("-drive", f"file={_value(launch.disk)},format=raw,if=none,id=disk0,cache=unsafe,discard=unmap"),
        *("-device", f"virtio-blk-pci,drive=disk0,serial={launch.serial}-D0,bootindex={disk}"),
        *("-netdev", _network(launch)),
        *("-device", f"virtio-net-pci,id={NET_ID},netdev=cable0,mac={launch.mac},bootindex={net}"),
        *("-device", "virtio-rng-pci"),
        *_firmware_strings(launch),
    ]


def _network(launch: Launch) -> str:
    if not launch.lease:
        return "hubport,id=cable0,hubid=0"
    options = f"user,id=cable0,bootfile={launch.boot_server}/ipxe/{launch.mac}"
    if launch.ssh_forward is not None:
        host, port = launch.ssh_forward
        options += f",hostfwd=tcp:{host}:{port}-:22"
    return options


def _firmware_strings(launch: Launch) -> list[str]:
    identity = uuid.uuid5(_NAMES, launch.serial)
    return [
        "-smbios",
        f"type=1,manufacturer=Muster Lab,product=Virtual node,serial={launch.serial},uuid={identity}",
        "-smbios",
        f"type=3,manufacturer=Muster Lab,serial={launch.serial}",
        "-smbios",
        f"type=11,value=boot-server={launch.boot_server}",
    ]


def _value(path: Path) -> str:
    """QEMU's option lists are cut at commas; a doubled comma is one."""
    return str(path).replace(",", ",,")
