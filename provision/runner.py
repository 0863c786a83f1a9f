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
from contextlib import AbstractContextManager, closing, contextmanager, nullcontext, suppress
from pathlib import Path
from typing import TYPE_CHECKING, TextIO

from inventory.errors import InventoryError
from provision.errors import RunnerBusy, RunnerStartFailed
from provision.settings import Settings

if TYPE_CHECKING:
    from provision.access import Access

_READY = "ready"
_QUIET_S = 20.0
_OWED_S = 3600.0
_TAKE_S = 1.0  # whoever looks at the lock holds it for a moment; that is not a runner
_BUSY = 3  # exit status of a runner that found another one


@contextmanager
def lock(state: Path) -> Iterator[Callable[[bool], None]]:
    """Hold the runner lock of a state folder. Raises RunnerBusy, naming the holder's pid.

    Yields a function that says, to those who look, whether new runs are taken up. The kernel
    drops the lock with its holder, so a lock file left behind by a killed runner is no obstacle.
    """
    path = state / "runner.lock"
    with path.open("a+", encoding="ascii") as file:
        deadline = time.monotonic() + _TAKE_S
        while not _take(file):
            if time.monotonic() > deadline:
                file.seek(0)
                raise RunnerBusy(f"process {file.read().split(' ')[0] or 'unknown'}")
            time.sleep(0.02)

        def say(ready: bool) -> None:
            file.truncate(0)
            file.write(f"{os.getpid()} {_READY if ready else ''}")
            file.flush()

        say(False)
        try:
            yield say
        finally:
            file.truncate(0)


def _take(file: TextIO) -> bool:
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    return True


def _held(file: TextIO) -> bool:
    """Whether a runner holds the lock. Those who look share it, so that none takes another for one."""
    try:
        fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except OSError:
        return True
    return False


def running(state: Path) -> bool:
    """Whether a runner holds the lock now and takes up new runs."""
    try:
        with (state / "runner.lock").open("r", encoding="ascii") as file:
            return _held(file) and _READY in file.read()
    except FileNotFoundError:
        return False


def ensure(settings: Settings, *, patience_s: float = 90.0) -> None:
    """Start a runner in the background unless one takes up runs. Raises RunnerStartFailed.

    Call it after a run was enqueued: a runner that is about to end says so before it looks for
    the last time, so either it sees the run, or its successor is started here.
    """
    if settings.shared:
        from provision import workers

        if workers.any_alive(settings.engine_database):
            return  # a worker of this or of another host
    deadline = time.monotonic() + patience_s
    log = settings.state / "runner.log"
    process: subprocess.Popen[bytes] | None = None
    while not running(settings.state):
        status = process.poll() if process else _BUSY
        if status == _BUSY:
            # None yet, or it met another one: one that starts is as good, one that ends makes room.
            process = _spawn(settings, log)
        elif status is not None and not running(settings.state):
            raise RunnerStartFailed(str(log), _last_line(log))
        if time.monotonic() > deadline:
            raise RunnerStartFailed(str(log), f"not ready within {patience_s:.0f} s")
        time.sleep(0.05)


def _spawn(settings: Settings, log: Path) -> subprocess.Popen[bytes]:
    with log.open("ab") as out:
        return subprocess.Popen(
            [sys.executable, "-m", "provision.runner"],
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=out,
            cwd=Path(__file__).resolve().parent.parent,
            env={**os.environ, "MUSTER_SITE": str(settings.site), "MUSTER_STATE": str(settings.state)},
            start_new_session=True,
        )


def _last_line(log: Path) -> str:
    lines = log.read_text(encoding="utf-8", errors="replace").strip().splitlines()
    return lines[-1] if lines else "no message"


async def serve(settings: Settings, say: Callable[[bool], None], *, quiet_s: float | None = _QUIET_S) -> None:
    """Execute runs until a signal comes, or until nothing was pending for `quiet_s`. None: for ever."""
    from provision import engine, flow
    from provision.access import Access
    from provision.ansible import PlayPool
    from provision.stages.site_maas import SiteMaas

    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for name in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(name, stop.set)
    access = Access.open(settings)
    slots = max(2, (os.cpu_count() or 2) * 3 // 2 + 1)
    hands = flow.Hands(access, SiteMaas(access.maas_within), flow.works(PlayPool(slots)))
    await engine.start(hands, executor=settings.executor, ansible_slots=slots)
    say(True)
    showing = asyncio.create_task(_show_pools(access))
    try:
        await _until_idle(settings, say, stop, quiet_s)
    finally:
        showing.cancel()
        await engine.stop()


async def _show_pools(access: Access, *, every_s: float = 30.0) -> None:
    """Show MAAS the pools that it could not be shown while it was away."""
    from provision.pools.mirror import make_up

    while True:
        with suppress(InventoryError):  # the store is away; the next round finds it
            await make_up(access)
        await asyncio.sleep(every_s)


async def _until_idle(
    settings: Settings, say: Callable[[bool], None], stop: asyncio.Event, quiet_s: float | None
) -> None:
    from provision import engine
    from provision.pools import owed

    with closing(engine.Client(settings.engine_database)) as client:
        # A MAAS that is away is waited for, but not for ever: what it is owed stays written down.
        patience = time.monotonic() + _OWED_S
        while await engine.quiet(client, stop, quiet_s=quiet_s) and not stop.is_set():
            if owed.load(settings.state) and time.monotonic() < patience:
                continue
            # From here on a command starts our successor; what was enqueued before is still ours.
            say(False)
            if not await asyncio.to_thread(client.busy):
                return
            say(True)


def event_loop() -> Callable[[Coroutine[object, object, None]], None]:
    """Return what runs a coroutine: uvloop where it is installed."""
    try:
        import uvloop
    except ImportError:
        return asyncio.run
    return uvloop.run


def run_here(settings: Settings, *, quiet_s: float | None = _QUIET_S) -> None:
    """Be the runner of a state folder until idle or told to stop. Raises RunnerBusy."""
    settings.ensure_state()
    with lock(settings.state) as say, _alone(settings):
        event_loop()(serve(settings, say, quiet_s=quiet_s))


def _alone(settings: Settings) -> AbstractContextManager[None]:
    """Where several hosts share a database, a lock in it: another state folder may bear the same name."""
    if not settings.shared:
        return nullcontext()
    from provision.workers import presence

    return presence(settings.engine_database, settings.executor)


def main() -> int:
    """Run until idle or told to stop. Exit status 0, or 3 when another runner is at work."""
    settings = Settings.from_environment()
    try:
        # Where hosts share a database, commands elsewhere may rely on us.
        run_here(settings, quiet_s=None if settings.shared else _QUIET_S)
    except RunnerBusy as error:
        print(error, file=sys.stderr)  # noqa: T201
        return _BUSY
    sys.stderr.flush()
    # Threads of the engine may still wait for work; nothing is left for them.
    os._exit(0)


if __name__ == "__main__":
    sys.exit(main())
