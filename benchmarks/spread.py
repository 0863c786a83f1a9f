"""How many copies the mirror sends and how long it takes: mirror.spread beside direct HTTP, in the same run.

Every host is a network namespace on one bridge whose egress is limited (tc tbf), the mirror's as well.
The floor is the time that one copy takes through the mirror's line. Copies are the bytes that left the
mirror's interface, headers and all, by the size of the file. All files are verified by the agents.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import hashlib
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

# Python puts this file's folder first, where this file would hide the package of its name.
sys.path[:] = [entry for entry in sys.path if Path(entry or ".").resolve() != Path(__file__).resolve().parent]

from provision.mirror.client import File  # noqa: E402
from provision.mirror.store import Limits, Store  # noqa: E402
from provision.spread.spreading import Arrival, Receiver, Source, Wish, spread  # noqa: E402

ROOT = Path(__file__).resolve().parents[1]
NET = "10.65.0"
PORT = 8480
TOKEN = "bench"
_UP_S = 30.0
_TELL_TORRENT = (
    "import sys,urllib.request as u;"
    'u.urlopen(u.Request(sys.argv[1],b\'{"url":"%s"}\'%sys.argv[2].encode(),'
    "{'Authorization':'Bearer bench'},method='POST'),timeout=60)"
)


@dataclass(frozen=True, slots=True)
class Took:
    """One way to bring the file to `hosts`. `over_floor` is wall time by the time of one copy."""

    way: str
    hosts: int
    wall_s: float
    over_floor: float
    copies: float
    from_peers: int  # hosts


def ip(*words: str) -> str:
    return subprocess.run(["ip", *words], check=True, capture_output=True, text=True).stdout


def inside(space: str, *words: str) -> list[str]:
    return ["ip", "netns", "exec", space, *words]


@contextlib.contextmanager
def network(hosts: int, mbit: int) -> Iterator[list[str]]:
    """Make namespaces on one bridge; the first is the mirror's."""
    prefix = f"spread{os.getpid()}"
    bridge, spaces = f"{prefix}-b", [f"{prefix}-{number}" for number in range(hosts + 1)]
    try:
        ip("netns", "add", bridge)
        ip("-n", bridge, "link", "add", "br0", "type", "bridge")
        ip("-n", bridge, "link", "set", "br0", "up")
        for number, space in enumerate(spaces):
            ip("netns", "add", space)
            peer = ("peer", "name", "eth0", "netns", space)
            ip("-n", bridge, "link", "add", f"v{number}", "type", "veth", *peer)
            ip("-n", bridge, "link", "set", f"v{number}", "master", "br0", "up")
            ip("-n", space, "link", "set", "lo", "up")
            ip("-n", space, "addr", "add", f"{NET}.{number + 1}/24", "dev", "eth0")
            ip("-n", space, "link", "set", "eth0", "up")
            shape = ("rate", f"{mbit}mbit", "burst", "64kb", "latency", "50ms")
            subprocess.run(
                ["tc", "-n", space, "qdisc", "add", "dev", "eth0", "root", "tbf", *shape], check=True
            )
        yield spaces
    finally:
        for space in [*spaces, bridge]:
            subprocess.run(["ip", "netns", "del", space], check=False, stderr=subprocess.DEVNULL)


@contextlib.contextmanager
def mirror(space: str, folder: Path, size: int) -> Iterator[File]:
    """Serve one file of random bytes: the service and nginx, in the mirror's namespace."""
    store = Store(folder / "root", Limits(reserve=0))
    part = folder / "root" / "partial" / "file"
    digest = hashlib.sha256()
    with part.open("wb") as out:
        for _ in range(size >> 20):
            block = os.urandom(1 << 20)
            digest.update(block)
            out.write(block)
    store.publish(part, digest.hexdigest(), "bench")
    store.close()
    (folder / "tokens").write_text(f"bench sha256:{hashlib.sha256(TOKEN.encode()).hexdigest()}\n")
    config = folder / "mirror.yaml"
    socket = folder / "service.sock"
    config.write_text(
        f"root: {folder}/root\nlisten: unix:{socket}\ntokens: {folder}/tokens\nreserve_bytes: 0\n"
    )
    service = [sys.executable, "-m", "provision.mirror.serve", "--config", str(config)]
    site = subprocess.run(
        [*service, "--print-nginx", f"{NET}.1:{PORT}"], cwd=ROOT, check=True, capture_output=True, text=True
    ).stdout.replace("/var/log/nginx/muster-mirror.log muster_mirror", "off")
    temporary = "".join(
        f"{name}_temp_path {folder}/{name};\n"
        for name in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
    )
    (folder / "nginx.conf").write_text(
        f"user root;\ndaemon off;\nworker_processes 1;\npid {folder}/pid;\nerror_log {folder}/err;\n"
        f"events {{ }}\nhttp {{\n{temporary}{site}}}\n"
    )
    running = [
        subprocess.Popen(inside(space, *service), cwd=ROOT),
        subprocess.Popen(inside(space, "nginx", "-e", f"{folder}/err", "-c", f"{folder}/nginx.conf")),
    ]
    try:
        deadline = time.monotonic() + _UP_S
        while not (socket.exists() and (folder / "pid").exists()):
            if time.monotonic() > deadline:
                raise SystemExit("the mirror did not come up")
            time.sleep(0.05)
        yield File(digest.hexdigest(), size)
    finally:
        for process in running:
            process.terminate()
        for process in running:
            process.wait(20)


def sent(space: str) -> int:
    return int(subprocess.check_output(inside(space, "cat", "/sys/class/net/eth0/statistics/tx_bytes")))


async def one(way: Source, hosts: int, size: int, mbit: int) -> Took:
    """Bring the file to `hosts` once."""
    with tempfile.TemporaryDirectory(dir="/dev/shm") as made, network(hosts, mbit) as spaces:
        folder = Path(made)
        url = f"http://{NET}.1:{PORT}"
        with mirror(spaces[0], folder, size) as file:
            if way is Source.PEERS:
                words = ("-c", _TELL_TORRENT, f"{url}/api/torrents/{file.sha256}", url)
                subprocess.run(inside(spaces[0], sys.executable, *words), check=True)
            receivers = [receiver(space, folder) for space in spaces[1:]]
            before, begun = sent(spaces[0]), time.monotonic()
            ends: dict[str, float] = {}

            def seen(node: str, have: int) -> None:
                if have == size:
                    ends.setdefault(node, time.monotonic())

            arrivals = await spread(
                receivers,
                Wish(url, file, "file", way, stall_s=60.0, silence_s=900.0),
                seen,
            )
            left = sent(spaces[0]) - before
    check(arrivals.values())
    wall = max(ends.values()) - begun
    floor = size * 8 / (mbit * 1e6)
    peers = sum(arrival.source == "peers" for arrival in arrivals.values())
    return Took(str(way), hosts, round(wall, 1), round(wall / floor, 2), round(left / size, 3), peers)


def receiver(space: str, folder: Path) -> Receiver:
    """A host whose agent works in a folder of its own."""
    home = folder / space
    home.mkdir()
    command = tuple(inside(space, "env", "-C", str(home)))
    return Receiver(space, "bench", command, (sys.executable,), remote=False)


def check(arrivals: Iterable[Arrival]) -> None:
    failed = [arrival for arrival in arrivals if not arrival.ok]
    if failed:
        raise SystemExit("\n".join(f"{arrival.node}: {arrival.why}" for arrival in failed))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--size", type=int, default=256, help="MiB")
    parser.add_argument("--mbit", type=int, default=100, help="egress of every host")
    parser.add_argument("--no-direct", action="store_true", help="leave direct HTTP out: it takes minutes")
    given = parser.parse_args()
    if os.geteuid() != 0:
        raise SystemExit("namespaces need root")
    ways = [(Source.PEERS, 8), (Source.PEERS, 16), *([] if given.no_direct else [(Source.HTTP, 8)])]
    took = [asyncio.run(one(way, hosts, given.size << 20, given.mbit)) for way, hosts in ways]
    if given.json:
        by = {(row.way, row.hosts): row for row in took}
        figures: dict[str, object] = {
            "seed_copies_8": by["peers", 8].copies,
            "seed_copies_16": by["peers", 16].copies,
            "wall_over_floor_8": by["peers", 8].over_floor,
            "rows": [asdict(row) for row in took],
        }
        print(json.dumps(figures))
        return 0
    floor = (given.size << 20) * 8 / (given.mbit * 1e6)
    print(f"{given.size} MiB, {given.mbit} Mbit/s egress each, one copy takes {floor:.1f} s")
    print(f"{'way':<14} {'hosts':>5} {'wall s':>7} {'x floor':>8} {'copies':>7}")
    for row in took:
        name = {"peers": "mirror.spread", "http": "direct HTTP"}[row.way]
        print(f"{name:<14} {row.hosts:>5} {row.wall_s:>7} {row.over_floor:>8} {row.copies:>7}")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
