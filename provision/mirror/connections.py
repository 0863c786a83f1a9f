"""Which TCP connections of this host have ended, by the kernel's own list."""

from __future__ import annotations

import sys
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from ipaddress import IPv6Address, ip_address
from pathlib import Path

_TABLES = (Path("/proc/net/tcp"), Path("/proc/net/tcp6"))
# Established, and CLOSE_WAIT: a client may close its half once it has sent everything.
_OPEN = frozenset({"01", "08"})
_LISTENING = "0A"


@dataclass(frozen=True, slots=True)
class Connection:
    """A client's address and port, and the port here that it is connected to."""

    address: str
    port: int
    here: int

    @classmethod
    def read(cls, text: str) -> Connection:
        """Read `ADDRESS PORT OUR-PORT`. Raises ValueError."""
        address, port, here = text.split()
        return cls(_plain(address), int(port), int(here))


def gone(connections: Collection[Connection], tables: Sequence[Path] = _TABLES) -> frozenset[Connection]:
    """Return those that have ended. Raises OSError.

    Where nothing listens on a connection's port here, it may be one of another network namespace, which
    the list does not show: it is not said to have ended.
    """
    listening: set[int] = set()
    there: set[Connection] = set()
    for state, connection in _listed(tables, {f"{one.here:04X}" for one in connections}):
        if state == _LISTENING:
            listening.add(connection.here)
        elif state in _OPEN:
            there.add(connection)
    return frozenset(one for one in connections if one.here in listening and one not in there)


def _listed(tables: Sequence[Path], ports: set[str]) -> Iterator[tuple[str, Connection]]:
    for table in tables:
        if not table.exists():  # a kernel without IPv6
            continue
        for line in table.read_text().splitlines()[1:]:
            _, local, remote, state, *_ = line.split()
            if local.rpartition(":")[2] in ports:
                address, _, port = remote.partition(":")
                yield state, Connection(_unpacked(address), int(port, 16), int(local.rpartition(":")[2], 16))


def _unpacked(text: str) -> str:
    """Read an address as the kernel prints it: words of 32 bits, each in this machine's byte order."""
    words = (int(text[at : at + 8], 16) for at in range(0, len(text), 8))
    return _plain(str(ip_address(b"".join(word.to_bytes(4, sys.byteorder) for word in words))))


def _plain(text: str) -> str:
    """Return an address in its one spelling; an IPv4 one as such, whatever socket it came in by."""
    address = ip_address(text)
    mapped = address.ipv4_mapped if isinstance(address, IPv6Address) else None
    return str(mapped or address)
