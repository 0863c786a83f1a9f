"""What the firmware says of board, memory and slots."""

from __future__ import annotations

from provision.ticket.host_command import Command, host_collector

HOST_DMIDECODE = host_collector("host.dmidecode", Command("host/dmidecode.txt", ("dmidecode",), timeout_s=30))
