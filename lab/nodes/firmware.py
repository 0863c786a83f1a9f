"""A node's firmware: power-on self-test, boot order, network boot, as text on the serial line.

Every wait is an ordinary await, so cutting the power cancels it where it stands. Times are short
on purpose; their order and the words are those of real servers.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable
from dataclasses import dataclass

from lab.nodes.boot_service import BootService, BootServiceError, Intent, Order
from lab.spec import NodeSpec

Emit = Callable[[str], None]
CLEAR = "\x1b[2J\x1b[01;01H"


@dataclass(frozen=True, slots=True)
class Pace:
    """Seconds that firmware takes for its steps."""

    post: float = 0.3
    dhcp: float = 0.2
    retry: float = 2.0  # between rounds of a boot order in which nothing boots


async def self_test(emit: Emit, spec: NodeSpec, pace: Pace) -> None:
    """Print the power-on self-test."""
    emit(f"{CLEAR}Muster Lab System BIOS 2.4.1\nService tag {spec.serial}\n\n")
    await asyncio.sleep(pace.post / 3)
    gigabytes = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") / 1e9
    emit(f"CPU: {os.cpu_count()} threads\nConfiguring memory... {gigabytes:.0f} GB, all DIMMs trained\n")
    await asyncio.sleep(pace.post / 3)
    emit("PCIe: 8 x 3D controller [LAB H100]  8 x InfiniBand controller  2 x NVMe\n")
    emit(f"NIC 1 MAC {spec.mac.upper()}  Link up\n")
    await asyncio.sleep(pace.post / 3)
    emit("POST complete. F2 Setup  F11 Boot menu  F12 Network boot\n\n")


async def network_boot(
    emit: Emit, spec: NodeSpec, service: BootService, pace: Pace, *, lease: bool
) -> Order | None:
    """Run iPXE; return MAAS's order, or None when the firmware goes on to the next device."""
    emit("iPXE initialising devices...ok\n\n\n")
    emit("iPXE 1.21.1 -- Open Source Network Boot Firmware -- https://ipxe.org\n")
    emit("Features: DNS HTTP HTTPS iSCSI TFTP VLAN EFI Menu\n\n")
    emit(f"net0: {spec.mac} using labnic on 0000:17:00.0 (Ethernet) [open]\n")
    emit("  [Link:up, TX:0 TXE:0 RX:0 RXE:0]\n")
    emit(f"Configuring (net0 {spec.mac})...")
    for _ in range(3 if lease else 15):
        await asyncio.sleep(pace.dhcp / 3)
        emit(".")
    if not lease:
        emit(" No configuration methods succeeded (https://ipxe.org/040ee119)\n")
        emit("No more network devices\n\n")
        return None
    emit(f" ok\nnet0: {spec.address}/255.255.0.0\n")
    emit(f"Filename: {service.url}\n{service.url}... ")
    try:
        order = await service.order()
    except BootServiceError as exc:
        emit(f"{exc.text}\nCould not boot image: {exc.text}\nNo more network devices\n\n")
        return None
    emit(f"ok\n{spec.mac} : {order.intent} [script]\n")
    if order.intent is Intent.LOCAL:
        emit("Booting from local disk\n\n")
    return order


async def no_boot_device(emit: Emit, pace: Pace) -> None:
    """Say that nothing boots, and wait before the boot order starts again."""
    emit("No bootable device found.\nReboot and select proper boot device\n")
    emit("or insert boot media in selected boot device. Retrying the boot order.\n\n")
    await asyncio.sleep(pace.retry)


def setup_screen(spec: NodeSpec) -> str:
    """Return the firmware's setup program, where a node waits for a human."""
    return (
        f"{CLEAR}Muster Lab System Setup\n\n  System Summary\n  Boot Settings\n  Integrated Devices\n"
        f"  Service tag  {spec.serial}\n\nF10 Save and exit   Esc Exit\n"
    )


GPU_BUSES = ("18", "2a", "3a", "5d", "9a", "ab", "ba", "db")
