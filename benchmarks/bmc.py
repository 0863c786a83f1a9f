"""How fast a fleet of BMCs is reached: us, FreeIPMI, pyghmi and ipmitool in the same run.

Every client logs in with cipher suite 17, asks for the power state and logs out, against the lab's
BMCs in a process of their own that answer after 10 ms. Wall time counts from the first packet for
Python clients (their imports are listed apart) and from the start of the process for the others.
Then a full sweep (power, event log, every sensor record and reading, nothing cached) beside
FreeIPMI's three tools, and six Redfish requests over TLS to each beside plain aiohttp.
"""

from __future__ import annotations

import argparse
import asyncio
import concurrent.futures
import importlib
import json
import os
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

# Python puts this file's folder first, where this file would hide the package of its name.
sys.path[:] = [entry for entry in sys.path if Path(entry or ".").resolve() != Path(__file__).resolve().parent]

USER, PASSWORD = "admin", "bench-secret"
PORT = 9623
WEB_PORT = 9443
NET = "127.163"
DELAY_S = 0.010
SUITE = 17
SWEEP_AT_ONCE = 128  # enough to hide the latency, few enough not to queue at the BMCs
WEB_AT_ONCE = 64
WEB_PATHS = (
    "/redfish/v1/Systems",
    "/redfish/v1/Systems/System.Embedded.1",
    "/redfish/v1/Managers/iDRAC.Embedded.1",
)


@dataclass(frozen=True, slots=True)
class Took:
    """What one run cost: seconds of wall and of CPU, memory in MiB, how many nodes answered."""

    client: str
    wall_s: float
    cpu_s: float
    rss_mib: float
    answered: int
    start_s: float = 0.0


def hosts(count: int) -> list[str]:
    return [f"{NET}.{number // 250}.{number % 250 + 1}" for number in range(count)]


# --- the rack


async def serve(count: int, web: bool) -> None:
    """Run the lab's BMCs until the parent closes our standard input."""
    from lab.bmc import BmcSpec, BmcUser, LightChassis, start_rack

    users = (BmcUser(USER, PASSWORD),)
    specs = [
        BmcSpec(
            LightChassis(f"n{number}", f"LAB-B{number:04}", powered=True),
            host,
            users,
            port=PORT,
            delay_s=DELAY_S,
            redfish_port=WEB_PORT if web else None,
        )
        for number, host in enumerate(hosts(count))
    ]
    rack = await start_rack(specs)
    print("up", flush=True)
    await asyncio.get_running_loop().run_in_executor(None, sys.stdin.read)
    await rack.close()


@contextmanager
def rack(count: int, *, web: bool = False) -> Iterator[subprocess.Popen[str]]:
    """Start the rack in a process of its own."""
    words = [sys.executable, __file__, "--serve", str(count), *(["--web"] if web else [])]
    process = subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    assert process.stdin is not None
    try:
        if process.stdout.readline() != "up\n":
            raise SystemExit("the rack did not come up")
        yield process
    finally:
        process.stdin.close()
        process.wait(timeout=30)
        process.stdout.close()


# --- clients in Python: each runs in a process of its own and reports one line


async def ours(count: int, sweep: bool) -> int:
    from bmc.capability import BmcTarget, Credential
    from bmc.drivers import connect
    from bmc.fleet import each
    from bmc.ipmi.endpoint import Endpoint

    credential = Credential(USER, PASSWORD)
    targets = [BmcTarget(host, host, credential, port=PORT, protocol="ipmi") for host in hosts(count)]
    endpoint = Endpoint()

    async def power(target: BmcTarget) -> str:
        async with connect(target, endpoint=endpoint) as bmc:
            return await bmc.power_state()

    async def everything(target: BmcTarget) -> int:
        async with connect(target, endpoint=endpoint) as bmc:
            await bmc.power_state()
            endpoint.sdrs.clear()  # no cache: every node's own repository is read
            readings = await bmc.sensors()
            return len(readings) + len(await bmc.sel())

    try:
        at_once = min(count, SWEEP_AT_ONCE) if sweep else count
        results = await each(
            targets, everything if sweep else power, per_subnet=at_once, total=at_once, deadline_s=120
        )
    finally:
        await endpoint.aclose()
    return sum(result.ok for result in results.values())


def by_pyghmi(count: int, sweep: bool) -> int:
    from pyghmi.ipmi.command import Command  # type: ignore[import-not-found]

    def one(host: str) -> bool:
        bmc = Command(host, USER, PASSWORD, port=PORT, keepalive=False)
        bmc.get_power()
        if sweep:
            list(bmc.get_sensor_data())
            list(bmc.get_event_log())
        bmc.ipmi_session.logout()
        return True

    with concurrent.futures.ThreadPoolExecutor(64) as pool:
        return sum(pool.map(one, hosts(count)))


async def redfish_ours(count: int) -> int:
    """Root, login, three resources, logout: by our client."""
    from bmc.capability import BmcTarget, Credential
    from bmc.fleet import each
    from bmc.redfish.client import Client, logged_in

    credential = Credential(USER, PASSWORD)
    targets = [BmcTarget(host, host, credential, redfish_port=WEB_PORT) for host in hosts(count)]

    async def six(target: BmcTarget) -> int:
        async with logged_in(Client(target)) as client:
            for path in WEB_PATHS:
                await client.get(path)
        return 1

    results = await each(targets, six, per_subnet=WEB_AT_ONCE, total=WEB_AT_ONCE, deadline_s=120)
    return sum(result.ok for result in results.values())


async def redfish_plain(count: int) -> int:
    """The same six requests written by hand with aiohttp."""
    import aiohttp

    gate = asyncio.Semaphore(WEB_AT_ONCE)

    async def six(host: str) -> int:
        base = f"https://{host}:{WEB_PORT}"
        login = {"UserName": USER, "Password": PASSWORD}
        async with gate, aiohttp.ClientSession(connector=aiohttp.TCPConnector(ssl=False)) as http:
            async with http.get(f"{base}/redfish/v1") as answer:
                await answer.json()
            async with http.post(f"{base}/redfish/v1/SessionService/Sessions", json=login) as answer:
                where, token = answer.headers["Location"], {"X-Auth-Token": answer.headers["X-Auth-Token"]}
            for path in WEB_PATHS:
                async with http.get(base + path, headers=token) as answer:
                    await answer.json()
            async with http.delete(base + where, headers=token) as answer:
                return int(answer.status < 300)

    return sum(await asyncio.gather(*map(six, hosts(count))))


def run_client(name: str, count: int, sweep: bool) -> None:
    """Be a client; print what it took as JSON."""
    import aiohttp  # noqa: F401  imports are start, not work
    import uvloop

    import bmc.drivers
    import bmc.fleet  # noqa: F401

    if name == "pyghmi":
        importlib.import_module("pyghmi.ipmi.command")
    work = {
        "ours": lambda: uvloop.run(ours(count, sweep)),
        "pyghmi": lambda: by_pyghmi(count, sweep),
        "ours (https)": lambda: uvloop.run(redfish_ours(count)),
        "plain aiohttp": lambda: uvloop.run(redfish_plain(count)),
    }[name]
    cpu, wall = time.process_time(), time.perf_counter()
    answered = work()
    took = {"wall_s": time.perf_counter() - wall, "cpu_s": time.process_time() - cpu, "answered": answered}
    took["rss_mib"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(json.dumps(took), flush=True)
    os._exit(0)  # pyghmi's thread does not end by itself


def python_client(name: str, count: int, sweep: bool) -> Took:
    words = [sys.executable, __file__, "--client", name, str(count), *(["--sweep"] if sweep else [])]
    started = time.perf_counter()
    said = subprocess.run(words, check=True, capture_output=True, text=True, timeout=300).stdout
    took = json.loads(said)
    start_s = time.perf_counter() - started - took["wall_s"]
    return Took(name, took["wall_s"], took["cpu_s"], took["rss_mib"], took["answered"], start_s)


# --- clients that are programs


def program(name: str, words: Sequence[str], good: str) -> Took:
    """Run a program; `good` is what a line of success holds."""
    started = time.perf_counter()
    process = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    assert process.stdout is not None
    with process.stdout:
        said = process.stdout.read()
    _, status, used = os.wait4(process.pid, 0)
    wall = time.perf_counter() - started
    process.returncode = os.waitstatus_to_exitcode(status)
    return Took(name, wall, used.ru_utime + used.ru_stime, used.ru_maxrss / 1024, said.count(good))


def freeipmi(tool: str, count: int, folder: Path, *words: str) -> list[str]:
    config = folder / "freeipmi.conf"
    config.write_text(f"username {USER}\npassword {PASSWORD}\ncipher-suite-id {SUITE}\ndriver-type LAN_2_0\n")
    config.chmod(0o600)
    where = ",".join(f"{host}:{PORT}" for host in hosts(count))
    return [tool, "--config-file", str(config), "-h", where, *words]


def ipmipower(count: int, folder: Path) -> Took:
    return program("ipmipower", freeipmi("ipmipower", count, folder, "--stat"), ": on")


def ipmitool(count: int, folder: Path) -> Took:
    secret = folder / "password"
    secret.write_text(PASSWORD)
    listed = folder / "hosts"
    listed.write_text("\n".join(hosts(count)))
    one = f"ipmitool -I lanplus -C {SUITE} -p {PORT} -U {USER} -f {secret} -H {{}} power status"
    return program("ipmitool -P64", ["xargs", "-a", str(listed), "-P64", "-I{}", *one.split()], "is on")


def freeipmi_sweep(count: int, folder: Path) -> Took:
    """Run ipmipower, ipmi-sel and ipmi-sensors one after the other, with no SDR cache."""
    cache = folder / f"sdr-{time.monotonic_ns()}"
    cache.mkdir()
    wide = ("-F", "64", "--sdr-cache-directory", str(cache), "--quiet-cache")
    parts = [
        ipmipower(count, folder),
        program("", freeipmi("ipmi-sel", count, folder, *wide, "--sdr-cache-recreate"), " | "),
        program("", freeipmi("ipmi-sensors", count, folder, *wide), "Temperature"),
    ]
    wall, cpu = sum(part.wall_s for part in parts), sum(part.cpu_s for part in parts)
    return Took("freeipmi x3", wall, cpu, max(part.rss_mib for part in parts), parts[0].answered)


# --- the report


def middle(runs: Sequence[Took]) -> Took:
    """Return the run with the median wall time."""
    return sorted(runs, key=lambda run: run.wall_s)[len(runs) // 2]


def show(title: str, rows: Sequence[Took], baseline: Took) -> None:
    print(f"\n{title}")
    print(f"{'client':16}{'wall s':>9}{'ratio':>8}{'CPU s':>9}{'MiB':>7}{'answered':>10}{'start s':>9}")
    for row in rows:
        print(
            f"{row.client:16}{row.wall_s:9.3f}{row.wall_s / baseline.wall_s:8.2f}{row.cpu_s:9.3f}"
            f"{row.rss_mib:7.0f}{row.answered:10}{row.start_s:9.2f}"
        )


def login_power_logout(count: int, repeat: int, folder: Path, peers: bool) -> dict[str, Took]:
    rows: dict[str, list[Took]] = {}
    for _ in range(repeat):  # in turns, so that a noisy moment hits both
        rows.setdefault("ours", []).append(python_client("ours", count, False))
        if shutil.which("ipmipower"):
            rows.setdefault("ipmipower", []).append(ipmipower(count, folder))
    if peers:
        rows["pyghmi"] = [python_client("pyghmi", count, False)]
        if shutil.which("ipmitool"):
            rows["ipmitool"] = [ipmitool(count, folder)]
    found = {name: middle(runs) for name, runs in rows.items()}
    show(
        f"log in, power, log out: {count} BMCs at {DELAY_S * 1000:.0f} ms, suite {SUITE}, median of {repeat}",
        list(found.values()),
        found.get("ipmipower", found["ours"]),
    )
    return found


def sweep(count: int, repeat: int, folder: Path) -> dict[str, Took]:
    rows: dict[str, list[Took]] = {}
    for _ in range(repeat):
        rows.setdefault("ours", []).append(python_client("ours", count, True))
        if shutil.which("ipmi-sensors"):
            rows.setdefault("ipmipower", []).append(freeipmi_sweep(count, folder))
    found = {name: middle(runs) for name, runs in rows.items()}
    show(
        f"power, event log, all sensor records and readings, no cache: {count} BMCs",
        list(found.values()),
        found.get("ipmipower", found["ours"]),
    )
    return found


def redfish(count: int, repeat: int) -> dict[str, Took]:
    rows: dict[str, list[Took]] = {}
    for _ in range(repeat):
        rows.setdefault("ours", []).append(python_client("ours (https)", count, False))
        rows.setdefault("plain", []).append(python_client("plain aiohttp", count, False))
    found = {name: middle(runs) for name, runs in rows.items()}
    show(
        f"six Redfish requests each over TLS: {count} BMCs, {WEB_AT_ONCE} at once",
        list(found.values()),
        found["plain"],
    )
    return found


def ratio(found: dict[str, Took], what: str = "wall_s", peer: str = "ipmipower") -> float | None:
    if peer not in found:
        return None
    return round(getattr(found["ours"], what) / getattr(found[peer], what), 3)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--counts", type=int, nargs="+", default=[64, 512])
    parser.add_argument("--repeat", type=int, default=5)
    parser.add_argument("--quick", action="store_true", help="only log in, power, log out, beside ipmipower")
    parser.add_argument("--json", action="store_true", help="print one JSON object as the last line")
    parser.add_argument("--serve", type=int, help=argparse.SUPPRESS)
    parser.add_argument("--web", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--client", nargs=2, help=argparse.SUPPRESS)
    parser.add_argument("--sweep", action="store_true", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.serve:
        import uvloop

        uvloop.run(serve(args.serve, args.web))
        return
    if args.client:
        run_client(args.client[0], int(args.client[1]), args.sweep)
        return
    report: dict[str, object] = {"complete": True}
    with tempfile.TemporaryDirectory() as made:
        measure(args, Path(made), report)
    if args.json:
        print(json.dumps(report))


def measure(args: argparse.Namespace, folder: Path, report: dict[str, object]) -> None:
    """Run every comparison; the report's plain keys are of the largest count."""
    for count in args.counts:
        with rack(count):
            found = login_power_logout(count, args.repeat, folder, not args.quick)
            report[f"wall_ratio_to_ipmipower_{count}"] = ratio(found)
            report["wall_ratio_to_ipmipower"] = ratio(found)
            report["cpu_ratio_to_ipmipower"] = ratio(found, "cpu_s")
            report["complete"] = bool(report["complete"]) and found["ours"].answered == count
            if not args.quick and count == max(args.counts):
                swept = sweep(count, min(args.repeat, 3), folder)
                report["sweep_wall_ratio_to_freeipmi"] = ratio(swept)
                report["sweep_cpu_ratio_to_freeipmi"] = ratio(swept, "cpu_s")
    if not args.quick:
        count = max(args.counts)
        with rack(count, web=True):
            web = redfish(count, min(args.repeat, 3))
        report["redfish_cpu_ratio_to_aiohttp"] = ratio(web, "cpu_s", "plain")


if __name__ == "__main__":
    main()
