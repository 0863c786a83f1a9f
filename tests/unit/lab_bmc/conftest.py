"""A bench for one BMC: its endpoint on a wire of memory, a clock set by hand, a console that logs in."""

from __future__ import annotations

import asyncio
import hmac
import struct
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import pytest
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes

from lab.bmc import Bmc, BmcSpec, BmcUser, LightChassis, Privilege
from lab.bmc.endpoint import Endpoint

ADDRESS = ("127.0.0.9", 40_000)
USERS = (
    BmcUser("admin", "correct horse batter"),  # twenty bytes, the most there is
    BmcUser("operator", "operator-pw", Privilege.OPERATOR),
    BmcUser("viewer", "viewer-pw", Privilege.USER),
)
ALGORITHMS = {
    1: (1, 0, 0, "sha1", 12),
    2: (1, 1, 0, "sha1", 12),
    3: (1, 1, 1, "sha1", 12),
    15: (3, 0, 0, "sha256", 16),
    16: (3, 4, 0, "sha256", 16),
    17: (3, 4, 1, "sha256", 16),
}


@dataclass
class Clock:
    """Monotonic and wall time, moved by the test."""

    seconds: float = 1000.0
    since_1970: float = 1_790_000_000.0

    def now(self) -> float:
        return self.seconds

    def wall(self) -> float:
        return self.since_1970 + self.seconds

    def pass_by(self, seconds: float) -> None:
        self.seconds += seconds


class Wire(asyncio.DatagramTransport):
    """A transport that keeps what was sent."""

    def __init__(self) -> None:
        super().__init__({"sockname": ("127.0.0.1", 9623)})
        self.sent: list[bytes] = []

    def get_extra_info(self, name: str, default: Any = None) -> Any:
        return self if name == "socket" else super().get_extra_info(name, default)

    def setsockopt(self, *args: int) -> None:
        pass

    def sendto(self, data: bytes | bytearray | memoryview, addr: object = None) -> None:
        self.sent.append(bytes(data))

    def is_closing(self) -> bool:
        return False

    def close(self) -> None:
        pass

    def take(self) -> list[bytes]:
        taken, self.sent = self.sent, []
        return taken


class Refused(Exception):
    """A handshake step ended with a status code."""

    def __init__(self, status: int) -> None:
        super().__init__(hex(status))
        self.status = status


@dataclass
class Console:
    """The remote console's side of the protocol, written from the specification on its own."""

    endpoint: Endpoint
    wire: Wire
    user: str = "admin"
    password: str = "correct horse batter"
    suite: int = 17
    role: int = 4
    kg: str = ""
    session: int = 0
    own: int = 0xA1A2A3A4
    sequence: int = 0
    request: int = 0
    keys: tuple[bytes, bytes] = (b"", b"")
    sol: list[bytes] = field(default_factory=list)

    def exchange(self, datagram: bytes) -> list[bytes]:
        self.wire.take()
        self.endpoint.datagram_received(datagram, ADDRESS)
        return self.wire.take()

    # Logging in, step by step.

    def setup(self, payload_type: int, payload: bytes) -> list[bytes]:
        head = b"\x06\x00\xff\x07\x06" + bytes((payload_type,)) + bytes(8) + struct.pack("<H", len(payload))
        return [answer[16:] for answer in self.exchange(head + payload)]

    def open_request(self, algorithms: tuple[int, int, int] | None = None) -> bytes:
        chosen = algorithms or ALGORITHMS[self.suite][:3]
        records = b"".join(struct.pack("<BxxBBxxx", kind, 8, number) for kind, number in enumerate(chosen))
        return bytes((7, 0, 0, 0)) + struct.pack("<I", self.own) + records

    def open(self) -> None:
        (answer,) = self.setup(0x10, self.open_request())
        if answer[1]:
            raise Refused(answer[1])
        self.session = struct.unpack_from("<I", answer, 8)[0]

    def rakp1(self, random: bytes = b"R" * 16) -> bytes:
        name = self.user.encode()
        head = bytes((8, 0, 0, 0)) + struct.pack("<I", self.session) + random
        (answer,) = self.setup(0x12, head + bytes((self.role, 0, 0, len(name))) + name)
        if answer[1]:
            raise Refused(answer[1])
        return answer

    def rakp3(self, rakp2: bytes, random: bytes = b"R" * 16) -> bytes:
        digest, size = ALGORITHMS[self.suite][3:]
        key, name = self.password.encode(), self.user.encode()
        theirs, guid = rakp2[8:24], rakp2[24:40]
        who = bytes((self.role, len(name))) + name
        ids = struct.pack("<I", self.own), struct.pack("<I", self.session)
        code = hmac.digest(key, ids[0] + ids[1] + random + theirs + guid + who, digest)
        if rakp2[40:] != code:
            raise Refused(0x0F)
        sik = hmac.digest(self.kg.encode() or key, random + theirs + who, digest)
        self.keys = hmac.digest(sik, b"\x01" * 20, digest), hmac.digest(sik, b"\x02" * 20, digest)
        payload = bytes((9, 0, 0, 0)) + ids[1] + hmac.digest(key, theirs + ids[0] + who, digest)
        (answer,) = self.setup(0x14, payload)
        if answer[1]:
            raise Refused(answer[1])
        assert answer[8:] == hmac.digest(sik, random + ids[1] + guid, digest)[:size]
        return payload

    def login(self) -> Console:
        """Log in and raise the session's privilege to the role."""
        self.open()
        self.rakp3(self.rakp1())
        if self.role > 2:
            assert self.command(0x06, 0x3B, bytes((self.role,))) == bytes((0, self.role))
        return self

    # In the session.

    def seal(self, payload_type: int, payload: bytes, sequence: int | None = None) -> bytes:
        _, integrity, confidentiality, digest, size = ALGORITHMS[self.suite]
        if sequence is None:
            self.sequence += 1
            sequence = self.sequence
        if confidentiality:
            pad = -(len(payload) + 1) % 16
            payload += bytes(range(1, pad + 1)) + bytes((pad,))
            encryptor = Cipher(algorithms.AES(self.keys[1][:16]), modes.CBC(b"I" * 16)).encryptor()
            payload = b"I" * 16 + encryptor.update(payload) + encryptor.finalize()
        flags = payload_type | (0x80 if confidentiality else 0) | (0x40 if integrity else 0)
        part = b"\x06" + bytes((flags,)) + struct.pack("<IIH", self.session, sequence, len(payload)) + payload
        if integrity:
            pad = -(len(part) + 2) % 4
            part += b"\xff" * pad + bytes((pad, 7))
            part += hmac.digest(self.keys[0], part, digest)[:size]
        return b"\x06\x00\xff\x07" + part

    def unseal(self, datagram: bytes) -> tuple[int, bytes]:
        _, integrity, confidentiality, digest, size = ALGORITHMS[self.suite]
        kind, number, _sequence, length = struct.unpack_from("<BIIH", datagram, 5)
        assert number == self.own
        if integrity:
            assert datagram[-size:] == hmac.digest(self.keys[0], datagram[4:-size], digest)[:size]
        payload = datagram[16 : 16 + length]
        if confidentiality:
            decryptor = Cipher(algorithms.AES(self.keys[1][:16]), modes.CBC(payload[:16])).decryptor()
            payload = decryptor.update(payload[16:]) + decryptor.finalize()
            payload = payload[: -payload[-1] - 1]
        return kind & 0x3F, payload

    def message(self, netfn: int, command: int, data: bytes = b"", *, fresh: bool = True) -> bytes:
        if fresh:
            self.request = (self.request + 1) % 64
        head, rest = bytes((0x20, netfn << 2)), bytes((0x81, self.request << 2, command)) + data
        return head + bytes((-sum(head) & 0xFF,)) + rest + bytes((-sum(rest) & 0xFF,))

    def command(self, netfn: int, command: int, data: bytes = b"") -> bytes:
        """Return completion code and data of one command."""
        answers = self.exchange(self.seal(0, self.message(netfn, command, data)))
        bodies = [payload for kind, payload in map(self.unseal, answers) if kind == 0]
        assert len(bodies) == 1, f"{len(bodies)} answers"
        assert not sum(bodies[0][:3]) & 0xFF
        assert not sum(bodies[0][3:]) & 0xFF
        return bodies[0][6:-1]

    # The console's serial line.

    def activate(self) -> bytes:
        return self.command(0x06, 0x48, b"\x01\x01\xc0\x00\x00\x00")

    def send_sol(
        self, sequence: int, acknowledges: int = 0, count: int = 0, status: int = 0, text: bytes = b""
    ) -> None:
        packet = bytes((sequence, acknowledges, count, status)) + text
        self.endpoint.datagram_received(self.seal(1, packet), ADDRESS)

    def collect_sol(self) -> list[bytes]:
        """Return the SOL packets that came since the last call."""
        return [payload for kind, payload in map(self.unseal, self.wire.take()) if kind == 1]

    async def next_sol(self, within_s: float = 5.0) -> bytes:
        """Wait for the next SOL packet."""
        if not self.sol:
            await until(lambda: bool(self.wire.sent), within_s)
            self.sol = self.collect_sol()
        return self.sol.pop(0)


@dataclass
class Bench:
    """One BMC on a wire, and a console beside it."""

    bmc: Bmc
    endpoint: Endpoint
    wire: Wire
    chassis: LightChassis
    clock: Clock

    def console(self, **changes: Any) -> Console:
        return Console(self.endpoint, self.wire, **changes)

    def login(self, **changes: Any) -> Console:
        return self.console(**changes).login()


@pytest.fixture
def make_bench() -> Callable[..., Bench]:
    def make(**changes: Any) -> Bench:
        clock = Clock()
        chassis = LightChassis("node-a", "LAB-A0001")
        spec = BmcSpec(chassis, "127.0.0.1", changes.pop("users", USERS), port=9623, **changes)
        bmc = Bmc(spec, now=clock.now, wall=clock.wall)
        endpoint, wire = Endpoint(bmc), Wire()
        endpoint.connection_made(wire)
        return Bench(bmc, endpoint, wire, chassis, clock)

    return make


@pytest.fixture
def bench(make_bench: Callable[..., Bench]) -> Bench:
    return make_bench()


async def until(condition: Callable[[], bool], within_s: float = 5.0) -> None:
    """Return when `condition` holds; fail when it does not in time."""
    deadline = time.monotonic() + within_s
    while not condition():
        assert time.monotonic() < deadline, "the awaited state did not come"
        await asyncio.sleep(0.005)
