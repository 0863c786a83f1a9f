"""How fast the mirror takes and gives a file, beside plain nginx, in the same run.

Plain nginx takes the file by WebDAV PUT and checks nothing; the mirror is nginx and the service, which
resumes, hashes and makes every file durable before it answers. So that both are measured to the same
point, plain nginx's file is made durable by the benchmark (fsync) within its time; the figure without
that stands beside it. The client is curl in both cases, and in the last row our own. Each figure is the
median of several files, taken in turns; the share is the median of the turns' shares.
"""

from __future__ import annotations

import argparse
import asyncio
import hashlib
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path

# Python puts this file's folder first, where this file would hide the package of its name.
sys.path[:] = [entry for entry in sys.path if Path(entry or ".").resolve() != Path(__file__).resolve().parent]

from inventory.secrets import Secret  # noqa: E402
from provision.mirror.client import Credentials, Mirror  # noqa: E402

ROOT = Path(__file__).resolve().parents[1]
HOST = "127.65.0.1"
PLAIN, OURS = f"http://{HOST}:8481", f"http://{HOST}:8480"
TOKEN = "bench"
_UP_S = 30.0
_GETS = 5  # a round


@dataclass(frozen=True, slots=True)
class Took:
    """One way to move a file, in MB a second, and as a share of plain nginx in the same run."""

    what: str
    plain_mb_s: float
    ours_mb_s: float
    share: float


@contextmanager
def serving(folder: Path) -> Iterator[None]:
    """Run one nginx: plain WebDAV on one port, the mirror behind the other."""
    (folder / "plain").mkdir()
    (folder / "root").mkdir()
    (folder / "tokens").write_text(f"bench sha256:{hashlib.sha256(TOKEN.encode()).hexdigest()}\n")
    config = folder / "mirror.yaml"
    config.write_text(
        f"root: {folder}/root\nlisten: unix:{folder}/service.sock\n"
        f"tokens: {folder}/tokens\nreserve_bytes: 0\n"
    )
    service = [sys.executable, "-m", "provision.mirror.serve", "--config", str(config)]
    front = subprocess.run(
        [*service, "--print-nginx", f"{HOST}:8480"], cwd=ROOT, check=True, capture_output=True, text=True
    ).stdout.replace("/var/log/nginx/muster-mirror.log muster_mirror", "off")
    temporary = "".join(
        f"{name}_temp_path {folder}/{name};\n"
        for name in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
    )
    user = "user root;\n" if os.geteuid() == 0 else ""
    plain = (
        f"server {{ listen {HOST}:8481; root {folder}/plain; dav_methods PUT; client_max_body_size 0;\n"
        "  client_body_buffer_size 1m; access_log off; sendfile on; tcp_nopush on; sendfile_max_chunk 2m; }\n"
    )
    (folder / "nginx.conf").write_text(
        f"{user}daemon off;\nworker_processes 1;\npid {folder}/pid;\nerror_log {folder}/err;\n"
        f"events {{ }}\nhttp {{\n{temporary}{front}{plain}}}\n"
    )
    running = [
        subprocess.Popen(service, cwd=ROOT),
        subprocess.Popen(["nginx", "-e", f"{folder}/err", "-c", f"{folder}/nginx.conf"]),
    ]
    try:
        deadline = time.monotonic() + _UP_S
        while not ((folder / "service.sock").exists() and (folder / "pid").exists()):
            if time.monotonic() > deadline:
                raise SystemExit("the mirror did not come up")
            time.sleep(0.05)
        yield
    finally:
        for process in running:
            process.terminate()
        for process in running:
            process.wait(20)


def fresh(path: Path, size: int) -> str:
    """Write a file that nobody has seen, have it on the disk, and return its sha256."""
    with path.open("wb") as file:
        for _ in range(size >> 20):
            file.write(os.urandom(1 << 20))
        file.flush()
        os.fsync(file.fileno())
    os.sync()
    return hashlib.sha256(path.read_bytes()).hexdigest()


def curl(*words: str) -> float:
    """Run curl and return its own time, in seconds. Whatever is not a success ends the benchmark."""
    done = subprocess.run(
        ["curl", "-sS", "-f", "-o", "/dev/null", "-w", "%{time_total}", *words],
        check=True, capture_output=True, text=True,
    )  # fmt: skip
    return float(done.stdout)


def put_plain(path: Path, sha256: str) -> float:
    return curl("-H", "Expect:", "-T", str(path), f"{PLAIN}/{sha256}")


def make_durable(path: Path) -> float:
    begun = time.monotonic()
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
    return time.monotonic() - begun


def put_ours(path: Path, sha256: str) -> float:
    headers = ("-H", "Expect:", "-H", f"X-Sha256: {sha256}", "-H", f"Authorization: Bearer {TOKEN}")
    return curl(*headers, "-T", str(path), f"{OURS}/api/files/f-{sha256[:12]}")


async def _put_client(path: Path, name: str) -> float:
    async with Mirror(OURS, Credentials(Secret(TOKEN))) as mirror:
        begun = time.monotonic()
        await mirror.put(path, name)
        return time.monotonic() - begun


def put_client(path: Path, sha256: str) -> float:
    return asyncio.run(_put_client(path, f"c-{sha256[:12]}"))


def measure(folder: Path, size: int, rounds: int) -> list[Took]:
    """Move a new file each time, every way in turn, so that none has the quieter half of the machine."""
    times: dict[str, list[float]] = {}

    def note(what: str, work: Callable[[Path, str], float], path: Path, sha256: str) -> None:
        times.setdefault(what, []).append(work(path, sha256))

    path, plain, ours = folder / "file", folder / "plain", folder / "root" / "sha256"
    for number in range(rounds + 1):
        # Every put is of a file of its own: the mirror would not take one twice.
        there = {}
        for what, work in (("plain", put_plain), ("ours", put_ours), ("client", put_client)):
            sha256 = there[what] = fresh(path, size)
            note(what, work, path, sha256)
            if what == "plain":
                durable = times["plain"][-1] + make_durable(plain / sha256)
                times.setdefault("durable", []).append(durable)
        # One get takes a tenth of a second, and the next one three times as long: many, in turns.
        for _ in range(_GETS):
            note("get plain", lambda _, sha: curl(f"{PLAIN}/{sha}"), path, there["plain"])
            note("get ours", lambda _, sha: curl(f"{OURS}/sha256/{sha}"), path, there["ours"])
        for file in (plain / there["plain"], ours / there["ours"], ours / there["client"]):
            file.unlink()
        if number == 0:
            times.clear()  # the first round warms everybody up
    return [
        _took("put, durable", size, times["durable"], times["ours"]),
        _took("get", size, times["get plain"], times["get ours"]),
        _took("put, mirror.put", size, times["durable"], times["client"]),
        _took("put, not durable", size, times["plain"], times["ours"]),
    ]


def _took(what: str, size: int, plain: list[float], ours: list[float]) -> Took:
    # The share within a turn: the disk of a virtual machine is twice as fast in one minute as in the next.
    share = statistics.median(one / other for one, other in zip(plain, ours, strict=True))
    rates = (round(size / 1e6 / statistics.median(taken)) for taken in (plain, ours))
    return Took(what, *rates, round(share, 2))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--size", type=int, default=256, help="MiB")
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--folder", default="/var/tmp", help="disk to measure on")
    given = parser.parse_args()
    for tool in ("curl", "nginx"):
        if shutil.which(tool) is None:
            raise SystemExit(f"{tool} is not installed")
    with tempfile.TemporaryDirectory(dir=given.folder) as made, serving(Path(made)):
        rows = measure(Path(made), given.size << 20, given.rounds)
    if given.json:
        print(
            json.dumps(
                {"put_share": rows[0].share, "get_share": rows[1].share, "rows": list(map(asdict, rows))}
            )
        )
        return 0
    print(f"files of {given.size} MiB, median of {given.rounds}, MB/s")
    print(f"{'':<17} {'plain nginx':>12} {'mirror':>8} {'share':>6}")
    for row in rows:
        print(f"{row.what:<17} {row.plain_mb_s:>12.0f} {row.ours_mb_s:>8.0f} {row.share:>6}")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
