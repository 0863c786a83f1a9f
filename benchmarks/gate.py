"""How long the gate takes for a whole fleet, what judging one node costs, and what a gigabyte of dmesg does.

    python -m benchmarks.gate [--json] [--nodes 511] [--hung 0.05]

Runs the product's own `verify --level quick` for a site of emulated nodes: its ssh subprocesses, its
parsing, judging and recording are real. What stands for ssh and the node is `benchmarks/fleet_ssh.py`; it
takes as long as a node's second reading of its counters. Hung nodes hang in three ways in turn: no SSH
banner, no answer after login, a tool that cannot be killed. They must come out unknown, all others yes.

The gigabyte goes through the real collector from a pipe, as on a node, and what comes back is judged.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import stat
import subprocess
import sys
import tempfile
import time
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import yaml

from benchmarks.fleet_ssh import own_parts
from benchmarks.recorded_nodes import NONCE, RecordedNode, load
from health.catalogue import plan
from health.check import Collect, Level
from health.evidence import parse
from health.plan import make_plan
from health.verdict import Answer, verdict

ROOT = Path(__file__).resolve().parent.parent
INVOKE = str(Path(sys.executable).parent / "invoke")
_WAYS = ("no banner", "no answer", "a tool hangs")
_GIB = 1 << 30


def main() -> int:
    """Measure and print; 2 where a node got another answer than it should."""
    options = argparse.ArgumentParser(description="time the gate for a fleet of emulated nodes")
    options.add_argument("--json", action="store_true", help="print one JSON object")
    options.add_argument("--nodes", type=int, default=511)
    options.add_argument("--hung", type=float, default=0.05, help="share of nodes that hang")
    chosen = options.parse_args()
    result = {**fleet(chosen.nodes, chosen.hung), **judging(), **gigabyte()}
    if chosen.json:
        sys.stdout.write(json.dumps(result) + "\n")
    else:
        for name, value in result.items():
            sys.stdout.write(f"{name:26} {value}\n")
    return 0 if result["wrong_answers"] == 0 and result["gigabyte_answer"] != Answer.YES else 2


def fleet(count: int, share: float) -> dict[str, Any]:
    """Verify a fleet once, and return the wall time, the CPU used, and how its answers came out."""
    node = load("xe9680-h100")
    with tempfile.TemporaryDirectory(prefix="muster-gate-") as place:
        folder = Path(place)
        hung = write_site(folder, node, count, share)
        environment = {
            **os.environ,
            "MUSTER_SITE": str(folder / "site"),
            "MUSTER_STATE": str(folder / "state"),
            "MUSTER_WHO": "bench",
            "PATH": f"{folder / 'bin'}:{os.environ['PATH']}",
        }
        before, began = resource.getrusage(resource.RUSAGE_CHILDREN), time.monotonic()
        done = subprocess.run(
            [INVOKE, "verify", "--nodes", "@*", "--level", "quick", "--output", "json"],
            cwd=ROOT, env=environment, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False,
        )  # fmt: skip
        wall, after = time.monotonic() - began, resource.getrusage(resource.RUSAGE_CHILDREN)
    answers = {row["node"]: Answer(row["answer"]) for row in _rows(done)}
    wanted = {name: Answer.UNKNOWN if name in hung else Answer.YES for name in names_of(count)}
    return {
        "nodes": count,
        "hung": len(hung),
        "wall_s": round(wall, 2),
        "cpu_s": round(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime, 2),
        "cpus": os.cpu_count(),
        "answers": dict(Counter(map(str, answers.values()))),
        "wrong_answers": sum(answers.get(name) is not answer for name, answer in wanted.items()),
    }


def _rows(done: subprocess.CompletedProcess[str]) -> list[dict[str, Any]]:
    try:
        document = json.loads(done.stdout)
    except ValueError as exc:
        raise RuntimeError(f"verify ended with {done.returncode}: {done.stderr[-2000:]}") from exc
    rows: list[dict[str, Any]] = document["verdicts"]
    return rows


def judging() -> dict[str, Any]:
    """Return what it costs to read and judge one node's evidence, in milliseconds of CPU."""
    node = load("xe9680-h100")
    rounds = 40
    raws = [node.raw(lambda document, n=n: own_parts(document, f"{n:04x}")) for n in range(rounds)]
    began = time.process_time()
    for raw in raws:
        evidence = parse(raw, nonce=NONCE)
        verdict(evidence, node.profile, Level.QUICK, collected_at=node.collected_at)
    spent = time.process_time() - began
    return {"judge_ms_a_node": round(1000 * spent / rounds, 1), "evidence_kib": len(raws[0]) // 1024}


def gigabyte() -> dict[str, Any]:
    """Send a gigabyte of kernel log through the collector, and judge what comes back."""
    node = load("xe9680-h100")
    line = "6,{n},{n},-;mlx5_core 0000:9c:00.0: a line that is said too often, and says nothing at all"
    program = (
        "import sys\n"
        f"line = {line!r}\n"
        f"wanted, size, n = {_GIB}, 0, 0\n"
        "while size < wanted:\n"
        "    block = '\\n'.join(line.format(n=n + k) for k in range(20000)) + '\\n'\n"
        "    size += len(block); n += 20000\n"
        "    sys.stdout.write(block)\n"
    )
    flood = Collect(
        "kernel.kmsg", argv=(sys.executable, "-c", program), limit_bytes=16_777_216, timeout_s=300.0
    )
    # The peak of a process of its own, so that nothing else counts.
    script = make_plan([flood], 320.0).script(NONCE)
    done = subprocess.run(
        [sys.executable, "-c", _MEASURED, sys.executable], input=script, capture_output=True, check=True
    )
    peak_kib = int(done.stderr.split()[-1])
    evidence = parse(done.stdout, nonce=NONCE)
    item = evidence.items["kernel.kmsg"]
    whole = node.evidence()
    flooded = replace(whole, items={**whole.items, "kernel.kmsg": item})
    began = time.process_time()
    answer = verdict(flooded, node.profile, Level.QUICK, collected_at=node.collected_at).answer
    return {
        "gigabyte_answer": str(answer),
        "gigabyte_kept_mib": round(len(item.text) / 2**20, 1),
        "gigabyte_collector_mib": round(peak_kib / 1024, 1),
        "gigabyte_judge_s": round(time.process_time() - began, 2),
        "controller_peak_mib": round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024, 1),
    }


# Runs the collector as its only child, and says on stderr what memory that took at most.
_MEASURED = """
import resource, subprocess, sys
done = subprocess.run([sys.argv[1], "-"], stdin=sys.stdin.buffer)
sys.stderr.write(str(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss))
sys.exit(done.returncode)
"""


def names_of(count: int) -> list[str]:
    return [f"gate-n{number:03}" for number in range(1, count + 1)]


def write_site(folder: Path, node: RecordedNode, count: int, share: float) -> frozenset[str]:
    """Write the site, what stands for ssh, and what the nodes send; returns the nodes that hang."""
    site, state, programs = folder / "site", folder / "state", folder / "bin"
    for one in (site, programs):
        one.mkdir()
    state.mkdir(mode=0o700)
    for name in ("key", "password", "ssh"):
        (state / name).touch(mode=0o600)
        (state / name).write_text("a:b:c\n")
    names = names_of(count)
    address = {name: f"127.61.{number // 250}.{number % 250 + 1}" for number, name in enumerate(names)}
    (site / "site.yaml").write_text(
        'name: gate\nmaas: {url: "http://127.61.0.1:1/MAAS", key: "file:key"}\n'
        'ssh: {user: nobody, key: "file:ssh", become: false}\n'
        'credentials: {bmc: {username: admin, password: "file:password"}}\n'
    )
    profile = {
        "vendor": "Muster",
        "model": "Emulated",
        "os_image": "custom/none",
        "checks": list(node.profile.checks),
        "limits": dict(node.profile.limits),
    }
    (site / "profiles.yaml").write_text(yaml.safe_dump({"profiles": {node.profile.name: profile}}))
    rows = {name: {"bmc": address[name], "serial": f"LAB-{name}", "address": address[name]} for name in names}
    rack = {
        "controller": "rackd1",
        "profile": node.profile.name,
        "bmc": {"credential": "bmc", "protocol": "ipmi"},
        "nodes": rows,
    }
    (site / "racks.yaml").write_text(yaml.safe_dump({"racks": {"r1": rack}}))
    step = max(1, round(1 / share)) if share else count + 1
    hung = names[step - 1 :: step]
    ways = {address[name]: _WAYS[number % len(_WAYS)] for number, name in enumerate(hung)}
    (folder / "hung.json").write_text(json.dumps(ways))
    (folder / "evidence.json").write_text(json.dumps(quick(node)))
    ssh = programs / "ssh"
    ssh.write_text(
        f'#!/bin/sh\nexec {sys.executable} -IS {ROOT / "benchmarks" / "fleet_ssh.py"} {folder} "$@"\n'
    )
    ssh.chmod(ssh.stat().st_mode | stat.S_IXUSR)
    return frozenset(hung)


def quick(node: RecordedNode) -> dict[str, Any]:
    """Return what a node sends for a quick gate: the items of that level alone."""
    wanted = {item.id for item in plan(node.profile, Level.QUICK).items}
    document = node.document()
    return {**document, "items": [item for item in document["items"] if item["id"] in wanted]}


if __name__ == "__main__":
    sys.exit(main())
