"""Measures how well odd boots are told from healthy ones.

    python -m benchmarks.bootlog [--json] [--trials N]

Learns 30 boots of 10 nodes, then judges boots of other nodes: healthy ones, and ones that were broken in
one way each. A broken boot counts as found when a card names the line that was broken, not merely some
line.
"""

from __future__ import annotations

import argparse
import json
import random
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import cache

from benchmarks import boot_generator as generator
from benchmarks import boot_other as other
from benchmarks.boot_forms import as_console, as_ring
from benchmarks.mutation import catalogue_lines
from benchmarks.recorded_nodes import load
from health.bootlog.anomalies import Anomaly, find_anomalies
from health.bootlog.boot import Boot, Witness, cohort_of, read_boot
from health.bootlog.console import Console, read_console
from health.bootlog.learn import learn
from health.bootlog.masks import mask
from health.bootlog.model import BootModel
from health.checks.kernel_source import KMSG, kernel_log
from health.evidence import Evidence
from health.readers.kernel import KernelLine, read_kernel
from health.rules.kernel import judge_lines
from health.rules.xid import events, judge_events

TRAINING = [(node, boot) for node in range(10) for boot in range(3)]
_OTHERS = range(100, 150)
Make = Callable[[int, int], generator.Boot]


def main() -> int:
    """Learn, break, judge and print the table."""
    options = argparse.ArgumentParser(description="tell odd boots from healthy ones")
    options.add_argument("--json", action="store_true", help="print one JSON object")
    options.add_argument("--trials", type=int, default=300, help="broken boots of each kind")
    chosen = options.parse_args()
    trials = chosen.trials
    result = measure(trials) | measure_console(trials) | measure_other(trials) | measure_certain()
    if chosen.json:
        sys.stdout.write(json.dumps(result) + "\n")
    else:
        for name, value in result.items():
            sys.stdout.write(f"{name:28} {value}\n")
    return 0


def measure(trials: int, nodes: range = _OTHERS) -> dict[str, float]:
    """Return recall by kind of fault, false lines a healthy boot, truncated logs passed, and the cost."""
    model = trained()
    healthy = [as_boot(generator.make_boot(node, 0)) for node in nodes]
    began = time.process_time()
    false = sum(len(find_anomalies(model, boot)) for boot in healthy)
    seconds = (time.process_time() - began) / len(healthy)
    result = {f"recall_{kind}": recall(model, change, trials) for kind, change in generator.BREAKS.items()}
    result["false_lines_a_boot"] = false / len(healthy)
    result["seconds_a_boot"] = round(seconds, 4)
    return result


def measure_certain(nodes: range = _OTHERS) -> dict[str, float]:
    """Return what must hold without exception: the catalogue, and logs that lost something."""
    return {
        "recall_catalogued": recall_of_catalogue(),
        "truncated_passed": float(truncated_passed(trained(), nodes)),
        "console_truncated_passed": float(console_truncated_passed(console_model(), nodes)),
    }


def measure_other(trials: int) -> dict[str, float]:
    """Return the same for a kind of node that the detector has never been looked at with."""
    model = trained(other.make_boot)
    healthy = [as_boot(other.make_boot(node, 0)) for node in _OTHERS]
    result = {
        f"other_recall_{kind}": recall(model, change, trials, make=other.make_boot)
        for kind, change in generator.BREAKS.items()
    }
    false = sum(len(find_anomalies(model, boot)) for boot in healthy)
    return {**result, "other_false_lines_a_boot": false / len(healthy)}


def trained(make: Make = generator.make_boot) -> BootModel:
    """Learn the training boots, each as it came through a kernel's ring."""
    boots = [as_boot(make(node, boot), node) for node, boot in TRAINING]
    return learn(cohort_of("xe9680-h100", boots[0]), boots, reliable=frozenset(one.node for one in boots))


def as_boot(lines: generator.Boot, node: int = 0) -> Boot:
    """Read generated lines as a kernel's log."""
    return read_boot(f"n{node:03d}", read_kernel(as_ring(lines)))


def recall(
    model: BootModel,
    change: generator.Break,
    trials: int,
    read: Callable[[generator.Boot], Boot] = as_boot,
    make: Make = generator.make_boot,
) -> float:
    """Return the share of broken boots whose cards name what was broken."""
    found = 0
    for trial in range(trials):
        chance = random.Random(trial)
        whole = make(_OTHERS[trial % len(_OTHERS)], trial)
        broken = change(whole, chance)
        before = {one.id for one in find_anomalies(model, read(whole))}
        fresh = [one for one in find_anomalies(model, read(broken)) if one.id not in before]
        found += any(_names(one, whole, broken) for one in fresh)
    return found / trials


def _names(card: Anomaly, whole: generator.Boot, broken: generator.Boot) -> bool:
    """Say whether a card is about a line that differs between the two."""
    changed = [line.text for line in _difference(whole, broken)]
    return any(card.line == text or mask(text).template in (card.template, card.line) for text in changed)


def _difference(whole: generator.Boot, broken: generator.Boot) -> Iterator[generator.Said]:
    """Give the lines at which two boots part."""
    at = next((n for n, (one, other) in enumerate(zip(whole, broken, strict=False)) if one != other), 0)
    shorter = min(len(whole), len(broken))
    tail = next(
        (n for n, (one, other) in enumerate(zip(whole[::-1], broken[::-1], strict=False)) if one != other),
        shorter,
    )
    tail = min(tail, shorter - at)
    yield from (*whole[at : len(whole) - tail], *broken[at : len(broken) - tail])


def recall_of_catalogue() -> float:
    """Return the share of catalogued codes that the deny list finds in a boot's log."""
    found = total = 0
    for text in catalogue_lines():
        lines = tuple(KernelLine(line, float(n * 60)) for n, line in enumerate(text))
        total += 1
        found += bool(judge_events(events(lines)) or judge_lines(lines))
    return found / total


def console_model() -> BootModel:
    """Learn the training boots as a serial console showed them."""
    boots = [_on_console(node, boot, node) for node, boot in TRAINING]
    cohort = cohort_of("xe9680-h100", boots[0], Witness.CONSOLE)
    return learn(cohort, boots, reliable=frozenset(one.node for one in boots))


def _on_console(number: int, boot: int, node: int) -> Boot:
    text = as_console(generator.make_boot(number, boot), random.Random(f"{number}/{boot}"))
    seen = read_console(Console(text))
    return read_boot(f"n{node:03d}", seen.lines, seen.gap)


def measure_console(trials: int) -> dict[str, float]:
    """Return the same for boots that only a console has seen."""
    model = console_model()
    healthy = [_on_console(node, 0, node) for node in _OTHERS]
    result = {
        f"console_recall_{kind}": recall(model, change, trials, _through_console)
        for kind, change in generator.BREAKS.items()
    }
    result["console_false_lines_a_boot"] = sum(len(find_anomalies(model, boot)) for boot in healthy) / len(
        healthy
    )
    result["console_healthy_doubted"] = float(sum(boot.gap is not None for boot in healthy))
    return result


def _through_console(lines: generator.Boot) -> Boot:
    seen = read_console(Console(as_console(lines, random.Random(len(lines)))))
    return read_boot("n", seen.lines, seen.gap)


def console_truncated_passed(model: BootModel, nodes: range) -> int:
    """Count consoles that lost bytes and were taken for whole, with nothing odd in them."""
    passed = 0
    for name, cut in CONSOLE_CUTS.items():
        for node in nodes:
            chance = random.Random(f"{name}{node}")
            seen = read_console(Console(cut(as_console(generator.make_boot(node, 7), chance), chance)))
            passed += seen.gap is None and not find_anomalies(model, read_boot("n", seen.lines))
    return passed


def truncated_passed(model: BootModel, nodes: range) -> int:
    """Count logs that lost lines on their way and were taken for whole."""
    passed = 0
    for name, cut in _CUTS.items():
        for node in nodes:
            text = cut(as_ring(generator.make_boot(node, 7)), random.Random(f"{name}{node}"))
            log = kernel_log(_evidence(text))
            boot = read_boot("n", log.lines, log.gap)
            passed += boot.gap is None and not find_anomalies(model, boot)
    return passed


@cache
def _recorded() -> Evidence:
    return load("xe9680-h100").evidence()


def _evidence(ring: str) -> Evidence:
    whole = _recorded()
    kept = {id: item for id, item in whole.items.items() if id != "kernel.journal"}
    return replace(whole, items={**kept, KMSG.id: replace(whole.items[KMSG.id], text=ring)})


def _without_middle(text: str, chance: random.Random) -> str:
    lines = text.splitlines(keepends=True)
    at = chance.randrange(1, len(lines) - 30)
    return "".join(lines[:at] + lines[at + chance.randint(1, 20) :])


_CUTS: dict[str, Callable[[str, random.Random], str]] = {
    "end": lambda text, chance: text[: chance.randrange(100, len(text) - 20)],
    "begin": lambda text, chance: text[text.index("\n", chance.randrange(50, 20000)) + 1 :],
    "middle": _without_middle,
    "empty": lambda _, __: "",
}


def _kept_share(low: float, high: float) -> Callable[[str, random.Random], str]:
    return lambda text, chance: text[: int(len(text) * chance.uniform(low, high))]


def _without_bytes(text: str, chance: random.Random) -> str:
    """Lose up to 2,000 bytes somewhere in what the kernel says."""
    first = text.index("Linux version")
    at = chance.randrange(first, len(text) - 3000)
    return text[:at] + text[at + chance.randint(150, 2000) :]


def _with_dropped(text: str, chance: random.Random) -> str:
    """Say, as a kernel does, that lines were too many for its console."""
    at = text.index("\n[", text.index("Linux version") + chance.randrange(20000)) + 1
    return f"{text[:at]}** {chance.randint(1, 90)} printk messages dropped **\r\n{text[at:]}"


CONSOLE_CUTS: dict[str, Callable[[str, random.Random], str]] = {
    "end": _kept_share(0.1, 0.97),
    "begin": lambda text, chance: text[text.index("Linux version") + chance.randint(20, 20000) :],
    "middle": _without_bytes,
    "empty": lambda _, __: "",
    "dropped": _with_dropped,
}


if __name__ == "__main__":
    sys.exit(main())
