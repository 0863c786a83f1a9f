"""Hundreds of consoles recorded at once: every byte, and what it costs beside conmand.

The lab's BMCs, in a process of their own, lose 1 % of packets each way and let retransmissions
grow. Nodes write numbered lines at a steady rate; one BMC is cold-reset in the middle. What is on
disk is compared with what each node wrote; where the reset is marked, only what the node wrote
while its BMC was away may be missing. conmand then records the same load from a fresh rack.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

# Python puts this file's folder first, where bmc.py would hide the package of its name.
sys.path[:] = [entry for entry in sys.path if Path(entry or ".").resolve() != Path(__file__).resolve().parent]

USER, PASSWORD = "admin", "bench-secret"
NET = "127.164"
TICK_S = 0.1
LOSS_PERCENT = 1.0
RESET_DARK_S = 5.0
RECOVER_S = 20.0
DRAIN_S = 30.0
LINE = 64


@dataclass(frozen=True, slots=True)
class Load:
    """How many consoles write how fast, for how long."""

    consoles: int
    rate: int  # bytes a second each
    seconds: float


@dataclass(frozen=True, slots=True)
class Took:
    """What recording a load cost, and what was wrong with it."""

    client: str
    cpu_s: float
    rss_mib: float
    kept: int
    wrong: int
    recovered_s: float | None = None


def name(number: int) -> str:
    return f"n{number:04}"


def host(number: int) -> str:
    return f"{NET}.{number // 250}.{number % 250 + 1}"


def text(number: int, start: int, end: int) -> bytes:
    """Return bytes `start` to `end` of what node `number` writes: numbered lines of 64 bytes."""
    first, last = start // LINE, -(-end // LINE)
    body = b"".join(
        b"%b %012d %b\n" % (name(number).encode(), line, b"x" * 44) for line in range(first, last)
    )
    return body[start - first * LINE : end - first * LINE]


# --- the rack


async def serve(load: Load) -> None:
    """Run the BMCs; on "go" write the load, then say how much each node wrote and lost."""
    from lab.bmc import BmcSpec, BmcUser, LightChassis, start_rack

    chassis = [
        LightChassis(name(number), f"LAB-{number:04}", powered=True) for number in range(load.consoles)
    ]
    users = (BmcUser(USER, PASSWORD),)
    rack = await start_rack(
        [BmcSpec(one, host(n), users, reset_s=RESET_DARK_S) for n, one in enumerate(chassis)]
    )
    say("up")
    loop = asyncio.get_running_loop()
    while (order := (await loop.run_in_executor(None, sys.stdin.readline)).strip()) not in ("", "end"):
        if order == "owners":
            say(str(sum(bmc.sol.owner is not None for bmc in rack)))
        elif order == "go":
            for bmc in rack:
                bmc.set_fault("loss", LOSS_PERCENT)
            await write_load(load, chassis, rack.bmc(name(0)).cold_reset)
            say(json.dumps({bmc.name: bmc.sol.dropped for bmc in rack}))
    await rack.close()


def say(line: str) -> None:
    print(line, flush=True)


async def write_load(load: Load, chassis: Sequence[object], reset: object) -> None:
    loop = asyncio.get_running_loop()
    started, written, total = loop.time(), 0, int(load.rate * load.seconds)
    while written < total:
        due = min(int(load.rate * (loop.time() - started)), total)
        for number, one in enumerate(chassis):
            one.print(text(number, written, due))  # type: ignore[attr-defined]
        if written < total // 2 <= due:
            reset()  # type: ignore[operator]
        written = due
        await asyncio.sleep(TICK_S)


class Rack:
    """The rack's process and how it is spoken to."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process = process

    def ask(self, order: str) -> str:
        assert self._process.stdin is not None
        self._process.stdin.write(order + "\n")
        self._process.stdin.flush()
        return self.hear()

    def hear(self) -> str:
        assert self._process.stdout is not None
        return self._process.stdout.readline().strip()


@contextmanager
def child(*words: str) -> Iterator[subprocess.Popen[str]]:
    process = subprocess.Popen(
        [sys.executable, __file__, *words], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    try:
        yield process
    finally:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.close()
        process.wait(timeout=60)
        process.stdout.close()


@contextmanager
def rack(load: Load) -> Iterator[Rack]:
    with child("--serve", *numbers(load)) as process:
        one = Rack(process)
        if one.hear() != "up":
            raise SystemExit("the rack did not come up (port 623 needs root)")
        yield one


def numbers(load: Load) -> tuple[str, str, str]:
    return str(load.consoles), str(load.rate), str(load.seconds)


# --- us


async def record(load: Load, folder: Path) -> None:
    """Record every console; say "active"; on a line of input drain, stop and report."""
    from bmc.capability import BmcTarget, Credential
    from bmc.console.record import Recorder
    from bmc.console.store import EventKind
    from bmc.ipmi.endpoint import Endpoint

    credential = Credential(USER, PASSWORD)
    endpoint = Endpoint()
    recorders = [
        Recorder(
            BmcTarget(name(n), host(n), credential, protocol="ipmi"), folder / name(n), endpoint=endpoint
        )
        for n in range(load.consoles)
    ]
    for start in range(0, load.consoles, 64):
        await asyncio.gather(*(recorder.start() for recorder in recorders[start : start + 64]))
    say("active")
    cpu = time.process_time()
    loop = asyncio.get_running_loop()
    await loop.run_in_executor(None, sys.stdin.readline)
    total, end = int(load.rate * load.seconds), loop.time() + DRAIN_S
    late = recorders[1:]
    while loop.time() < end and (late or recorders[0].events[-1].kind is not EventKind.RECOVERED):
        late = [recorder for recorder in late if recorder.bytes_kept < total]
        await asyncio.sleep(0.2)
    await asyncio.sleep(1.0)  # what the BMC that was reset still holds
    cpu = time.process_time() - cpu
    await asyncio.gather(*(recorder.stop() for recorder in recorders))
    await endpoint.aclose()
    rss = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    say(json.dumps({"cpu_s": cpu, "rss_mib": rss, "open": endpoint.counts.open}))


def ours(load: Load, folder: Path) -> Took:
    with rack(load) as bmcs, child("--record", *numbers(load), str(folder)) as process:
        us = Rack(process)
        if us.hear() != "active":
            raise SystemExit("not every console was had")
        dropped = json.loads(bmcs.ask("go"))
        said = json.loads(us.ask("stop"))
    kept = wrong = 0
    recovered: float | None = None
    for number in range(load.consoles):
        got, bad, gap_s = compare(load, number, folder / name(number), dropped[name(number)])
        kept, wrong = kept + got, wrong + bad
        recovered = gap_s if gap_s is not None else recovered
    return Took("ours", said["cpu_s"], said["rss_mib"], kept, wrong, recovered)


def compare(load: Load, number: int, folder: Path, dropped: int) -> tuple[int, int, float | None]:
    """Return bytes kept, bytes wrong, and how long the console was away where a reset is marked."""
    from bmc.console.store import Chunk, EventKind, entries

    wanted = text(number, 0, int(load.rate * load.seconds))
    before, after = bytearray(), bytearray()
    lost_at = gap_s = None
    heard_at = 0.0
    for entry in entries(folder):
        if isinstance(entry, Chunk):
            (before if lost_at is None else after).extend(entry.data)
            heard_at = entry.time
        elif entry.kind is EventKind.LOST:
            lost_at = heard_at  # the marks come later than the last byte
        elif entry.kind is EventKind.RECOVERED and lost_at is not None:
            gap_s = entry.time - lost_at
    kept = len(before) + len(after)
    if lost_at is None:
        return kept, differing(bytes(before), wanted), None
    tail = bytes(after)
    wrong = differing(bytes(before), wanted[: len(before)])
    wrong += differing(tail, wanted[len(wanted) - len(tail) :])
    missing = len(wanted) - kept
    return kept, wrong + max(0, missing - dropped), gap_s


def differing(got: bytes, wanted: bytes) -> int:
    """Return how many bytes are lost, doubled or changed: 0 only for equal texts."""
    if got == wanted:
        return 0
    same = next(
        (at for at, (a, b) in enumerate(zip(got, wanted, strict=False)) if a != b), min(len(got), len(wanted))
    )
    return max(len(got), len(wanted)) - same


# --- conmand


def conmand(load: Load, folder: Path) -> Took | None:
    if shutil.which("conmand") is None:
        return None
    config = folder / "conman.conf"
    logs = folder / "logs"
    logs.mkdir()
    rows = [
        f'server pidfile="{folder}/pid"',
        "server port=17890",
        "server loopback=on",
        f'global log="{logs}/%N"',
    ]
    rows += [
        f'console name="{name(n)}" dev="ipmi:{host(n)}" ipmiopts="U:{USER},P:{PASSWORD},C:17"'
        for n in range(load.consoles)
    ]
    config.write_text("\n".join(rows) + "\n")
    config.chmod(0o600)
    with rack(load) as bmcs:
        process = subprocess.Popen(
            ["conmand", "-c", str(config), "-F"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        try:
            end = time.monotonic() + 90
            while int(bmcs.ask("owners")) < load.consoles and time.monotonic() < end:
                time.sleep(0.5)
            before = cpu_of(process.pid)
            bmcs.ask("go")
            settle(logs, load)
            cpu, rss = cpu_of(process.pid) - before, rss_of(process.pid)
        finally:
            process.kill()  # it takes its time to leave, and has been measured
            process.wait(timeout=30)
    kept = sum(path.stat().st_size for path in logs.iterdir())
    return Took("conmand", cpu, rss, kept, -1)


def settle(logs: Path, load: Load) -> None:
    """Wait until the logs hold what the nodes wrote, but for the one whose BMC was reset."""
    wanted = int(load.rate * load.seconds) * (load.consoles - 1)
    end = time.monotonic() + DRAIN_S
    while time.monotonic() < end and sum(path.stat().st_size for path in logs.iterdir()) < wanted:
        time.sleep(0.5)


def cpu_of(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / 100


def rss_of(pid: int) -> float:
    rows = Path(f"/proc/{pid}/status").read_text().splitlines()
    return next(int(row.split()[1]) / 1024 for row in rows if row.startswith("VmHWM"))


# --- the report


def run(load: Load, with_conmand: bool) -> list[Took]:
    rows = []
    with tempfile.TemporaryDirectory() as made:
        rows.append(ours(load, Path(made)))
    if with_conmand:
        with tempfile.TemporaryDirectory() as made:
            other = conmand(load, Path(made))
        rows += [other] if other else []
    what = f"{load.consoles} consoles at {load.rate} B/s for {load.seconds:.0f} s"
    print(f"\n{what}, {LOSS_PERCENT:g} % loss each way")
    print(f"{'client':10}{'CPU s':>8}{'MiB':>7}{'bytes kept':>13}{'wrong':>8}{'reset recovered':>17}")
    for row in rows:
        wrong = "-" if row.wrong < 0 else str(row.wrong)
        back = "-" if row.recovered_s is None else f"{row.recovered_s:.1f} s"
        print(f"{row.client:10}{row.cpu_s:8.2f}{row.rss_mib:7.0f}{row.kept:13}{wrong:>8}{back:>17}")
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--consoles", type=int, default=512, help="how many at 1 kB/s")
    parser.add_argument("--fast-consoles", type=int, default=64, help="how many at 11.5 kB/s")
    parser.add_argument("--json", action="store_true", help="print one JSON object as the last line")
    parser.add_argument("--serve", nargs=3, help=argparse.SUPPRESS)
    parser.add_argument("--record", nargs=4, help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.serve:
        import uvloop

        uvloop.run(serve(Load(int(args.serve[0]), int(args.serve[1]), float(args.serve[2]))))
        return
    if args.record:
        import uvloop

        load = Load(int(args.record[0]), int(args.record[1]), float(args.record[2]))
        uvloop.run(record(load, Path(args.record[3])))
        return
    loads = [Load(args.consoles, 1000, args.seconds), Load(args.fast_consoles, 11_500, args.seconds)]
    results = [run(load, with_conmand=True) for load in loads if load.consoles]
    mine = [rows[0] for rows in results]
    first = results[0]
    report = {
        "bytes_wrong": sum(row.wrong for row in mine),
        "bytes_kept": sum(row.kept for row in mine),
        "reset_recovered_s": max((row.recovered_s or 0.0) for row in mine),
        "all_resets_recovered": all(
            row.recovered_s is not None and row.recovered_s < RECOVER_S for row in mine
        ),
        "cpu_ratio_to_conmand": round(first[0].cpu_s / first[1].cpu_s, 3) if len(first) > 1 else None,
        "rss_mib": round(mine[0].rss_mib, 1),
    }
    if args.json:
        print(json.dumps(report))


if __name__ == "__main__":
    main()
