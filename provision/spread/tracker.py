"""A tracker for the files of one mirror (BEP 3 and 23): it introduces nodes to each other, no one else."""

from __future__ import annotations

import ipaddress
import random
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from urllib.parse import unquote_to_bytes

from provision.spread.torrent import bencode

_INTERVAL_S = 20
_FORGET_S = 75.0
_GIVEN = 50


@dataclass(frozen=True, slots=True)
class Peer:
    """Where a node gives pieces, and whether it has them all."""

    address: str
    port: int
    complete: bool
    seen: float


@dataclass(slots=True)
class Tracker:
    """Knows the peers of each file that it was told of."""

    clock: Callable[[], float] = time.monotonic
    choose: random.Random = field(default_factory=random.Random)
    _swarms: dict[bytes, dict[bytes, Peer]] = field(default_factory=dict)

    def allow(self, info_hash: bytes) -> None:
        """Introduce peers of this file from now on."""
        self._swarms.setdefault(info_hash, {})

    def forget(self, info_hash: bytes) -> None:
        """Introduce nobody any more."""
        self._swarms.pop(info_hash, None)

    def peers(self, info_hash: bytes) -> int:
        """Return how many peers were seen lately."""
        return len(self._alive(info_hash))

    def announce(self, query: str, address: str) -> bytes:
        """Answer one announce, whose query string holds raw bytes. `address` is where it came from."""
        asked = _parse(query)
        swarm = self._swarms.get(asked.get("info_hash", b""))
        if swarm is None:
            return bencode({b"failure reason": b"this file is not being spread"})
        who = asked.get("peer_id", b"")
        port = _number(asked.get("port", b""))
        if len(who) != 20 or not 0 < port < 65536:
            return bencode({b"failure reason": b"peer_id and port are needed"})
        if asked.get("event") == b"stopped":
            swarm.pop(who, None)
        else:
            swarm[who] = Peer(address, port, asked.get("left") == b"0", self.clock())
        others = [peer for other, peer in self._alive(asked["info_hash"]).items() if other != who]
        given = self.choose.sample(others, min(_GIVEN, len(others)))
        return bencode(
            {
                b"complete": sum(peer.complete for peer in others),
                b"incomplete": sum(not peer.complete for peer in others),
                b"interval": _INTERVAL_S,
                b"min interval": 5,
                b"peers": b"".join(_packed(peer, 4) for peer in given),
                b"peers6": b"".join(_packed(peer, 6) for peer in given),
            }
        )

    def _alive(self, info_hash: bytes) -> dict[bytes, Peer]:
        oldest = self.clock() - _FORGET_S
        swarm = self._swarms.get(info_hash, {})
        for who in [who for who, peer in swarm.items() if peer.seen < oldest]:
            del swarm[who]
        return swarm


def _parse(query: str) -> dict[str, bytes]:
    pairs = (part.partition("=") for part in query.split("&"))
    return {key: unquote_to_bytes(value.replace("+", " ")) for key, _, value in pairs}


def _number(text: bytes) -> int:
    return int(text) if text.isdigit() and len(text) < 6 else 0


def _packed(peer: Peer, version: int) -> bytes:
    try:
        address = ipaddress.ip_address(peer.address)
    except ValueError:
        return b""
    return address.packed + peer.port.to_bytes(2, "big") if address.version == version else b""
