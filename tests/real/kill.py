"""Kill -9 of the runner at random moments, then resume, again and again: does every node end right?

    python -m tests.real.kill --kills 50 --nodes 16 --seed 7

On a light site (`benchmarks/light_site.py`): a bring-up, then re-images, until there were so many
kills. Prints one line a kill and a table a pass, and ends with 1 where something was done twice.
"""

from __future__ import annotations

import argparse
import functools
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from benchmarks.light_site import LightSite, operations
from inventory.records import RunState
from inventory.store import Store
from provision.settings import Settings

ROOT = Path(__file__).resolve().parents[2]
INVOKE = str(Path(sys.executable).parent / "invoke")
STEPS = 7  # begun once each where nothing is killed; a kill may begin the one under way again


@dataclass
class Pass:
    """One run of all nodes, killed again and again until it ended."""

    run: str
    kills: list[str] = field(default_factory=list)  # what was under way at each
    wrong: list[str] = field(default_factory=list)

    def killed(self, what: str) -> None:
        """Note a kill and what was under way, and say it."""
        self.kills.append(what)
        sys.stdout.write(f"  kill {len(self.kills):>2}  {self.run}  {what}\n")
        sys.stdout.flush()


Go = Callable[[list[str], int], Pass]


def invoke(environment: Mapping[str, str], *words: str, ok: tuple[int, ...] = (0,)) -> str:
    """Run one of the product's commands; it must end with one of `ok`."""
    done = subprocess.run(
        [INVOKE, *words], cwd=ROOT, env=dict(environment), stdin=subprocess.DEVNULL,
        capture_output=True, text=True, timeout=600, check=False,
    )  # fmt: skip
    if done.returncode not in ok:
        raise RuntimeError(f"{' '.join(words)} ended with {done.returncode}:\n{done.stderr}")
    return done.stdout


def kill_runner(state: Path) -> bool:
    """Kill -9 the runner of a state folder; False where there is none."""
    try:
        pid = int((state / "runner.lock").read_text(encoding="ascii").split()[0])
        os.kill(pid, signal.SIGKILL)
    except (FileNotFoundError, IndexError, ProcessLookupError):
        return False
    return True


def under_way(environment: Mapping[str, str], run: str) -> tuple[bool, str]:
    """Return whether the run goes on, and the stages that its nodes stand at or are in, counted."""
    with Store.open(Settings.from_environment(environment).database) as store:
        going = store.run(run).state is RunState.RUNNING
        members = store.run_progress(run).values()
    stages = Counter(f"in {one.in_stage}" if one.in_stage else str(one.reached or "-") for one in members)
    return going, " ".join(f"{stage}:{number}" for stage, number in sorted(stages.items()))


def one_pass(
    environment: Mapping[str, str], chance: random.Random, longest_s: float, start: list[str], kills: int
) -> Pass:
    """Start a run, kill its runner at most `kills` times, resuming each time, and see it to its end."""
    state = Path(environment["MUSTER_STATE"])
    done = Pass(invoke(environment, *start, "--yes", "--no-wait").strip())
    while len(done.kills) < kills:
        time.sleep(chance.uniform(0.05, longest_s))
        if not kill_runner(state):
            break
        going, what = under_way(environment, done.run)
        if not going:
            break
        done.killed(what)
        invoke(environment, "bringup", "--resume", done.run, "--no-wait")
    invoke(environment, "bringup", "--resume", done.run, ok=(0, 2))
    return done


def judge(environment: Mapping[str, str], done: Pass) -> Pass:
    """Say what is wrong with the nodes after a pass: where they stand, and what was begun too often."""
    rows = json.loads(invoke(environment, "nodes", "--nodes", "@*", "--output", "json"))["nodes"]
    for row in rows:
        if row["pool"] != "reliable":
            done.wrong.append(f"{row['node']} stands at {row['stage']} in {row['pool']}")
    told = invoke(environment, "history", "--nodes", "@*", "--limit", "100000", "--output", "json")
    begun: Counter[str] = Counter()
    reached: Counter[tuple[str, str]] = Counter()
    for event in json.loads(told)["events"]:
        if event.get("run") == done.run:
            begun[event["node"]] += event["event"].endswith(" begun")
            if " reached" in event["event"]:
                reached[event["node"], event["event"].split()[0]] += 1
    for node, times in begun.items():
        if times > STEPS + len(done.kills):
            done.wrong.append(f"{node} began {times} stages with {len(done.kills)} kills")
    for (node, stage), times in reached.items():
        # A kill between a stage's record and the engine's makes it be looked at once more.
        if times > 2:
            done.wrong.append(f"{node} reached {stage} {times} times")
    return done


def asked(site: LightSite) -> tuple[Counter[str], int]:
    """Return how often MAAS was asked to deploy each node, and power commands of ours to BMCs."""
    report = site.report()
    deploys = Counter({node: found["deploy"] for node, found in operations(report).items()})
    return deploys, sum(bmc["power"] for bmc in report["bmc"].values())


def rehearse(site: LightSite, environment: Mapping[str, str], kills: int, go: Go) -> list[Pass]:
    """Have `go` do runs of all nodes until there were so many kills, and judge each."""
    passes: list[Pass] = []
    left = kills
    while left > 0:
        start = ["bringup", "--nodes", "@*"]
        if passes:
            start = ["reimage", "--nodes", "@*", "--reason", "kill rehearsal", "--override", "in-use"]
            invoke(environment, "quarantine", "--nodes", "@*", "--reason", "kill", "--yes")
        before, _ = asked(site)
        done = judge(environment, go(start, left))
        after, power = asked(site)
        done.wrong += [
            f"{node}: MAAS was asked to deploy it {after[node] - before[node]} times"
            for node in after
            if after[node] - before[node] != 1
        ]
        if power:
            done.wrong.append(f"{power} power commands to BMCs of healthy nodes")
        passes.append(done)
        sys.stdout.write(f"  pass {done.run}: {len(done.kills)} kills, {done.wrong or 'all right'}\n")
        left -= max(1, len(done.kills))
    return passes


def wanted(description: str | None, net: int) -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--kills", type=int, default=50)
    parser.add_argument("--nodes", type=int, default=16)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--net", type=int, default=net)
    parser.add_argument("--longest", type=float, default=12.0, help="seconds between a start and a kill")
    return parser.parse_args()


def main() -> int:
    """Kill, resume, judge, print."""
    want = wanted(__doc__, 93)
    chance = random.Random(want.seed)
    with (
        tempfile.TemporaryDirectory(prefix="muster-kill-") as folder,
        LightSite(want.nodes, Path(folder) / "site", net=want.net) as site,
    ):
        go = functools.partial(one_pass, site.environment, chance, want.longest)
        passes = rehearse(site, site.environment, want.kills, go)
        kill_runner(Path(site.environment["MUSTER_STATE"]))
    return report(passes, want.nodes, want.seed)


def report(passes: list[Pass], nodes: int, seed: int) -> int:
    """Print the table; 1 where something is wrong."""
    write = sys.stdout.write
    write(f"\nseed {seed}, {nodes} nodes\n{'RUN':<18}{'KILLS':>6}{'WRONG':>7}\n")
    for one in passes:
        write(f"{one.run:<18}{len(one.kills):>6}{len(one.wrong):>7}\n")
        for line in one.wrong:
            write(f"    {line}\n")
    kills, wrong = sum(len(one.kills) for one in passes), sum(len(one.wrong) for one in passes)
    write(f"{'in all':<18}{kills:>6}{wrong:>7}\n")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
