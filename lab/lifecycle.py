"""Starting the lab's daemon in the background, and stopping it whatever state it is in."""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from lab.control import RemoteError, ask
from lab.errors import LabError, NoService
from lab.ownership import owned_net
from lab.plan import Plan
from lab.spec import LabNet, LabPaths, cache_folder

_STOP_S = 30.0
_LOCK_POLL_S = 0.02


def take_up(net: LabNet, paths: LabPaths, plan: Plan, say: Callable[[str], None]) -> bool:
    """Make sure that a lab with at least `plan` is up; True when it had to be started.

    Two that ask at once start one lab. Raises LabError with the daemon's own reason.
    """
    paths.state.mkdir(parents=True, exist_ok=True)
    with _turn(paths.state / "up.lock"):
        with contextlib.suppress(NoService):
            ask(paths.socket, {"op": "grow", "plan": plan.document()}, timeout_s=None)
            return False
        remembered = _remembered(paths)
        _start(net, paths, plan.with_all_of(remembered) if remembered else plan, say)
        return True


def take_down(net: LabNet, paths: LabPaths, *, wipe: bool) -> None:
    """Stop the lab and remove all that it left on this machine, also after its daemon was killed.

    Raises Refused when the net is another lab's, LabError when something cannot be removed.
    """
    from lab.nodes.house import tear_down  # `up` of a lab that is up starts without it

    with contextlib.suppress(NoService, RemoteError):
        ask(paths.socket, {"op": "down"}, timeout_s=5.0)
    _await_end(paths)
    paths.socket.unlink(missing_ok=True)
    paths.plan.unlink(missing_ok=True)
    with owned_net(net, paths):
        gone = tear_down(net)
    if not gone:
        raise LabError(
            "lab.down",
            "a process of a node does not die",
            follow="look for processes in state D: ps axo stat,args",
        )
    if wipe:
        shutil.rmtree(paths.state, ignore_errors=True)


def _start(net: LabNet, paths: LabPaths, plan: Plan, say: Callable[[str], None]) -> None:
    say(f"starting the lab ({paths.log} has its log)")
    if plan.nodes and not _rootfs_is_there():
        say("making the nodes' root file system first, which happens once on this machine")
    ours, theirs = os.pipe()
    command = [sys.executable, "-m", "lab", "serve", "--ready-fd", str(theirs), *_arguments(plan)]
    environ = {**os.environ, "MUSTER_STATE": str(paths.state.parent), "MUSTER_LAB_NET": f"127.{net.octet}"}
    with paths.log.open("ab") as output:
        process = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            pass_fds=(theirs,),
            start_new_session=True,
            cwd=Path(__file__).resolve().parent.parent,
            env=environ,
        )
    os.close(theirs)
    with os.fdopen(ours, "rb") as ready:
        raw = ready.readline()
    if not raw:
        raise NoService(
            "lab",
            f"its daemon ended at once with code {process.wait()}",
            follow=f"read the end of {paths.log}",
        )
    answer = json.loads(raw)
    if "error" in answer:
        raise RemoteError(answer["error"])


def _rootfs_is_there() -> bool:
    from lab.nodes.rootfs import rootfs_folder  # `up` of a lab that is up starts without them
    from lab.nodes.sources import machine_archive

    return rootfs_folder(machine_archive(), cache_folder()).is_dir()


def _arguments(plan: Plan) -> list[str]:
    racks = [name for name, count in (("lab", plan.nodes), ("lab-real", plan.real)) if count]
    numbers = {"--nodes": plan.nodes, "--real": plan.real, "--light": plan.light}
    return ["--racks", ",".join(racks), *(word for name, n in numbers.items() for word in (name, str(n)))]


def _remembered(paths: LabPaths) -> Plan | None:
    """Return what a lab that was killed had held; one that was stopped in order has left none."""
    with contextlib.suppress(OSError, ValueError, KeyError):
        return Plan.read(json.loads(paths.plan.read_text())["plan"])
    return None


def _await_end(paths: LabPaths) -> None:
    """Wait until the daemon's lock is free, killing a daemon that does not let go of it."""
    if not paths.lock.exists():
        return
    end = time.monotonic() + _STOP_S
    with paths.lock.open("r+") as lock:
        while not _try_lock(lock.fileno()):
            if time.monotonic() > end:
                os.kill(int(lock.read().split()[0]), signal.SIGKILL)
                end = time.monotonic() + _STOP_S
                lock.seek(0)
            time.sleep(_LOCK_POLL_S)


def _try_lock(descriptor: int) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    return True


@contextmanager
def _turn(path: Path) -> Iterator[None]:
    with path.open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield
