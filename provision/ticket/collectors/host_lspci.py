"""PCI devices, their links and their error registers."""

from __future__ import annotations

from provision.ticket.host_command import Command, host_collector

HOST_LSPCI = host_collector("host.lspci", Command("host/lspci-vv.txt", ("lspci", "-vv"), timeout_s=60))
