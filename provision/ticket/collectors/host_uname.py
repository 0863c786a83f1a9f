"""Which kernel runs."""

from __future__ import annotations

from provision.ticket.host_command import Command, host_collector

HOST_UNAME = host_collector("host.uname", Command("host/uname.txt", ("uname", "-a"), timeout_s=10))
