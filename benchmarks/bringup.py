"""What a bring-up costs the controller: wall, CPU, memory and requests to MAAS, with few nodes and with many.

    python -m benchmarks.bringup --nodes 64,512 --json

Every stage runs but the play (Ansible's own cost is its own): BMC logins, console recordings, MAAS,
SSH and the gate, on the imaginary nodes of `benchmarks/light_site.py`, which live in a process of their
own. Own CPU is the runner process; what it starts (ssh, and here, in the nodes' stead, the collector)
is told apart. The last line of `--json` has `own_cpu_s_512` where 512 nodes were asked for.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path

from benchmarks.light_site import LightSite
from provision import engine, flow, runner
from provision.access import Access
from provision.ansible import PlayPool
from provision.settings import Settings
from provision.stages.job import NodeJob, Reached
from provision.stages.site_maas import SiteMaas

ROOT = Path(__file__).resolve().parent.parent
INVOKE = str(Path(sys.executable).parent / "invoke")


@dataclass(frozen=True)
class Cost:
    """What one bring-up cost."""

    nodes: int
    wall_s: float
    own_cpu_s: float
    started_cpu_s: float
    rss_mib: float
    maas_requests_per_node: float
    admitted: int


async def _no_play(_: NodeJob) -> Reached:
    return Reached("left out: Ansible is measured elsewhere")


async def _serve(settings: Settings) -> dict[str, float]:
    """Execute one run and return what this process used from its submission to its end."""
    access = Access.open(settings)
    works = {**flow.works(PlayPool(1)), "configured": _no_play}
    with runner.lock(settings.state) as say:
        # Plays that are left out take no time: no queue of theirs may slow the others down.
        hands = flow.Hands(access, SiteMaas(access.maas_within), works)
        await engine.start(hands, ansible_slots=64)
        say(True)
        while not access.store.going():
            await asyncio.sleep(0.05)
        before, began = resource.getrusage(resource.RUSAGE_SELF), time.monotonic()
        while access.store.going():
            await asyncio.sleep(2.0)
        after, wall = resource.getrusage(resource.RUSAGE_SELF), time.monotonic() - began
        children = resource.getrusage(resource.RUSAGE_CHILDREN)
        await engine.stop()
    return {
        "wall_s": wall,
        "own_cpu_s": after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime,
        "started_cpu_s": children.ru_utime + children.ru_stime,
        "rss_mib": after.ru_maxrss / 1024,
    }


def _measured(settings: Settings) -> dict[str, float]:
    """Serve on the loop that the runner uses."""
    told: dict[str, float] = {}

    async def serve() -> None:
        told.update(await _serve(settings))

    runner.event_loop()(serve())
    return told


def measure(nodes: int, *, seconds: float, net: int) -> Cost:
    """Bring `nodes` imaginary nodes up once."""
    with (
        tempfile.TemporaryDirectory(prefix="muster-bench-") as folder,
        LightSite(nodes, Path(folder) / "site", net=net, seconds=seconds) as site,
        (Path(folder) / "runner.log").open("wb") as log,
    ):
        settings = Settings.from_environment(site.environment)
        engine.migrate(settings.engine_database)
        serving = subprocess.Popen(
            [sys.executable, "-m", "benchmarks.bringup", "--serve"],
            cwd=ROOT, env=site.environment, stdout=subprocess.PIPE, stderr=log,
        )  # fmt: skip
        while not runner.running(settings.state):
            if serving.poll() is not None:
                raise RuntimeError((Path(folder) / "runner.log").read_text())
            time.sleep(0.05)
        _invoke(site.environment, "bringup", "--nodes", "@*", "--yes", "--no-wait")
        told, _ = serving.communicate()
        requests = sum(site.report()["maas"].values())
        with Access.open(settings).store as store:
            admitted = sum(str(state.pool) == "reliable" for state in store.nodes().values())
        return Cost(
            nodes=nodes, maas_requests_per_node=requests / nodes, admitted=admitted, **json.loads(told)
        )


def _invoke(environment: Mapping[str, str], *words: str) -> None:
    subprocess.run(
        [INVOKE, *words], cwd=ROOT, env=dict(environment), stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=True,
    )  # fmt: skip


def main() -> int:
    """Measure and print; 1 where not every node was admitted."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--nodes", default="64,512", help="numbers of nodes, one bring-up each")
    parser.add_argument("--seconds", type=float, default=3.0, help="what MAAS takes for its part of a stage")
    parser.add_argument("--net", type=int, default=92)
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--serve", action="store_true", help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.serve:
        sys.stdout.write(json.dumps(_measured(Settings.from_environment())))
        sys.stdout.flush()
        os._exit(0)  # threads of the engine may still wait for work
    costs = [measure(int(number), seconds=asked.seconds, net=asked.net) for number in asked.nodes.split(",")]
    if asked.json:
        named = {f"own_cpu_s_{cost.nodes}": round(cost.own_cpu_s, 2) for cost in costs}
        print(json.dumps({"schema": 1, "runs": [asdict(cost) for cost in costs], **named}))
    else:
        print("NODES   WALL s   OWN CPU s   PER NODE ms   STARTED CPU s   RSS MiB   MAAS REQUESTS A NODE")
        for cost in costs:
            print(
                f"{cost.nodes:>5} {cost.wall_s:>8.1f} {cost.own_cpu_s:>11.2f}"
                f" {1000 * cost.own_cpu_s / cost.nodes:>13.1f} {cost.started_cpu_s:>15.1f}"
                f" {cost.rss_mib:>9.0f} {cost.maas_requests_per_node:>22.1f}"
            )
    return 0 if all(cost.admitted == cost.nodes for cost in costs) else 1


if __name__ == "__main__":
    sys.exit(main())
