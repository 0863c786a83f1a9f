"""The kernel's ring buffer."""

from __future__ import annotations

from provision.ticket.host_command import Command, host_collector

HOST_DMESG = host_collector("host.dmesg", Command("host/dmesg.txt", ("dmesg",), timeout_s=30))
