"""The runner: the one process that executes runs of a state folder.

Started in the background by the first command that needs it, it outlives the terminal, goes on
with whatever an earlier runner left, and ends by itself when nothing has been pending for a while.
`python -m provision.runner` runs it in the foreground, for a service manager.
"""

from __future__ import annotations

import asyncio
import fcntl
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager
from pathlib import Path

from provision.errors import RunnerBusy, RunnerStartFailed
from provision.settings import Settings

_READY = "ready"
_QUIET_S = 20.0


@contextmanager
def lock(state: Path) -> Iterator[None]:
    """Hold the runner lock of a state folder. Raises RunnerBusy, naming the holder's pid.

    The kernel drops the lock with its holder, so a lock file left behind by a killed runner is
    no obstacle.
    """
    path = state / "runner.lock"
    with path.open("a+", encoding="ascii") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            file.seek(0)
            raise RunnerBusy(f"process {file.read().split(' ')[0] or 'unknown'}") from error
        file.truncate(0)
        file.write(f"{os.getpid()} ")
        file.flush()
        yield
        file.truncate(0)


def running(state: Path) -> bool:
    """Whether a runner holds the lock now, and has said that it is ready."""
    path = state / "runner.lock"
    try:
        with path.open("r+", encoding="ascii") as file:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError:
                return _READY in file.read()
            return False
    except FileNotFoundError:
        return False


def ensure(settings: Settings, *, patience_s: float = 30.0) -> None:
    """Start a runner in the background unless one runs. Raises RunnerStartFailed."""
    if running(settings.state):
        return
    log = settings.state / "runner.log"
    with log.open("ab") as out:
        process = subprocess.Popen(
            [sys.executable, "-m", "provision.runner"],
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=out,
            cwd=Path(__file__).resolve().parent.parent,
            env={**os.environ, "MUSTER_SITE": str(settings.site), "MUSTER_STATE": str(settings.state)},
            start_new_session=True,
        )
    deadline = time.monotonic() + patience_s
    while time.monotonic() < deadline:
        if running(settings.state):
            return
        # A second command may have started one at the same moment: that one is as good.
        if process.poll() is not None and not running(settings.state):
            raise RunnerStartFailed(str(log), _last_line(log))
        time.sleep(0.05)
    raise RunnerStartFailed(str(log), f"not ready within {patience_s:.0f} s")


def _last_line(log: Path) -> str:
    lines = log.read_text(encoding="utf-8", errors="replace").strip().splitlines()
    return lines[-1] if lines else "no message"


async def _serve(settings: Settings) -> None:
    from provision import engine
    from provision.access import Access
    from provision.ansible import PlayPool

    access = Access.open(settings)
    slots = max(2, (os.cpu_count() or 2) * 3 // 2 + 1)
    await engine.start(access, PlayPool(slots), ansible_slots=slots)
    client = engine.Client(settings.engine_database)
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for name in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(name, stop.set)
    with (settings.state / "runner.lock").open("a", encoding="ascii") as file:
        file.write(_READY)
    stopped = asyncio.create_task(stop.wait())
    idle = asyncio.create_task(engine.idle(client, quiet_s=_QUIET_S))
    await asyncio.wait({stopped, idle}, return_when=asyncio.FIRST_COMPLETED)


def _event_loop() -> Callable[[Coroutine[object, object, None]], None]:
    """Return what runs a coroutine: uvloop where it is installed."""
    try:
        import uvloop
    except ImportError:
        return asyncio.run
    return uvloop.run


def main() -> int:
    """Run until idle or told to stop. Exit status 0, or 3 when another runner is at work."""
    settings = Settings.from_environment()
    settings.ensure_state()
    try:
        with lock(settings.state):
            _event_loop()(_serve(settings))
            sys.stderr.flush()
            # Threads of the engine may still wait for work; nothing is left for them.
            os._exit(0)
    except RunnerBusy as error:
        print(error, file=sys.stderr)  # noqa: T201
        return 3


if __name__ == "__main__":
    sys.exit(main())
