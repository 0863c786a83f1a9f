"""Kill -9 one of two workers at random moments; the other adopts what it had. Does every node end right?

    python -m tests.real.kill_workers --kills 20 --nodes 16 --seed 7

As `tests/real/kill.py`, on a PostgreSQL server of its own: each killed worker is adopted by the one that
lives, and started again.
"""

from __future__ import annotations

import functools
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from pathlib import Path

from benchmarks.light_site import LightSite
from provision import engine, workers
from tests import postgresql
from tests.real.kill import INVOKE, ROOT, Pass, invoke, rehearse, report, under_way, wanted

_UP_S = 120.0
_NOTHING_TO_ADOPT = 5


class Workers:
    """Two workers of one site, each with a state folder of its own."""

    def __init__(self, environment: Mapping[str, str], folder: Path) -> None:
        self._environment = environment
        self._url = environment["MUSTER_DATABASE_URL"]
        self._folder = folder
        self._running = {host: self._start(host) for host in ("alpha", "beta")}

    def kill(self, host: str) -> None:
        """Kill -9, have the other adopt what it had, and start it again."""
        self._running[host].kill()
        self._running[host].wait()
        _wait(lambda: not workers.alive(self._url, host), f"{host} dead")
        words = ("adopt", "--host", host, "--reason", "rehearsal", "--yes")
        invoke(self._environment, *words, ok=(0, _NOTHING_TO_ADOPT))
        self._running[host] = self._start(host)

    def end(self) -> None:
        for process in self._running.values():
            process.send_signal(signal.SIGTERM)
            process.wait()

    def _start(self, host: str) -> subprocess.Popen[bytes]:
        state = self._folder / host
        if not state.exists():
            shutil.copytree(self._environment["MUSTER_STATE"], state)
        with (self._folder / f"{host}.log").open("ab") as log:
            process = subprocess.Popen(
                [INVOKE, "worker"], cwd=ROOT, stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                env={**self._environment, "MUSTER_HOST": host, "MUSTER_STATE": str(state)},
            )  # fmt: skip
        _wait(lambda: workers.alive(self._url, host), f"{host} alive")
        return process


def _wait(seen: Callable[[], bool], what: str) -> None:
    deadline = time.monotonic() + _UP_S
    while not seen():
        if time.monotonic() > deadline:
            raise RuntimeError(f"never {what}")
        time.sleep(0.1)


def one_pass(
    environment: Mapping[str, str],
    pair: Workers,
    chance: random.Random,
    longest_s: float,
    start: list[str],
    kills: int,
) -> Pass:
    """Start a run, kill workers at most `kills` times, and see it to its end."""
    done = Pass(invoke(environment, *start, "--yes", "--no-wait").strip())
    while len(done.kills) < kills:
        time.sleep(chance.uniform(0.05, longest_s))
        going, what = under_way(environment, done.run)
        if not going:
            break
        host = chance.choice(["alpha", "beta"])
        done.killed(f"{host}: {what}")
        pair.kill(host)
    invoke(environment, "watch", "--run", done.run, ok=(0, 2))
    return done


def main() -> int:
    """Kill, adopt, judge, print."""
    want = wanted(__doc__, 95)
    chance = random.Random(want.seed)
    programs = postgresql.programs()
    if programs is None:
        sys.stderr.write("no PostgreSQL server is installed (Debian: postgresql)\n")
        return 5
    with (
        tempfile.TemporaryDirectory(prefix="muster-kill-") as made,
        postgresql.serving(programs) as server,
        LightSite(want.nodes, Path(made) / "site", net=want.net) as site,
    ):
        url = postgresql.fresh(server)
        environment = {**site.environment, "MUSTER_DATABASE_URL": url, "MUSTER_HOST": "desk"}
        engine.migrate(url)
        pair = Workers(environment, Path(made))
        go = functools.partial(one_pass, environment, pair, chance, want.longest)
        passes = rehearse(site, environment, want.kills, go)
        pair.end()
    return report(passes, want.nodes, want.seed)


if __name__ == "__main__":
    sys.exit(main())
