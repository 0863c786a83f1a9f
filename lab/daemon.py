"""The lab's one process: starts everything, answers the control socket, stops everything."""

from __future__ import annotations

import asyncio
import contextlib
import fcntl
import json
import logging
import os
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from lab.assembly import Lab, fold
from lab.control import Answer, Request, describe
from lab.errors import BadRequest, LabError, NoService
from lab.listening import listen
from lab.nodes.house import tear_down
from lab.ownership import owned_net
from lab.plan import Plan
from lab.secrets import ensure_secrets
from lab.spec import LabNet, LabPaths

log = logging.getLogger(__name__)


def serve(net: LabNet, paths: LabPaths, plan: Plan, ready: int | None) -> None:
    """Run a lab until it is told to stop. `ready` is a descriptor that hears how the start went.

    Raises LabError when it does not come up; the descriptor has heard it then.
    """
    paths.state.mkdir(parents=True, exist_ok=True)
    try:
        # The net before anything else: a start that fails removes what it finds there.
        with _only_one(paths), owned_net(net, paths):
            asyncio.run(_Daemon(net, paths).run(plan, ready))
    except LabError as exc:
        _tell(ready, describe(exc))
        raise


class _Daemon:
    def __init__(self, net: LabNet, paths: LabPaths) -> None:
        self._net = net
        self._paths = paths
        self._lab = Lab(net, paths, ensure_secrets(paths.secrets))
        self._stop = asyncio.Event()

    async def run(self, plan: Plan, ready: int | None) -> None:
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, self._stop.set)
        try:
            await self._lab.start(plan)
            server = await listen(self._paths.socket, self._answer)
            self._keep_plan()
            _tell(ready, {})
            log.info("the lab is up: %s", plan)
            await self._stop.wait()
            server.close()
        finally:
            await self._lab.close()
            self._paths.socket.unlink(missing_ok=True)
            await asyncio.to_thread(tear_down, self._net)
            log.info("the lab is down")

    async def _answer(self, request: Request) -> Answer:
        operation = str(request.get("op"))
        try:
            return await _OPERATIONS[operation](self, request)
        except KeyError as exc:
            raise BadRequest(
                "lab", f"no operation {operation!r}", follow="use `python -m lab --help`"
            ) from exc

    async def _status(self, _: Request) -> Answer:
        return self._lab.status()

    async def _grow(self, request: Request) -> Answer:
        before = self._lab.plan
        await self._lab.grow(Plan.read(request["plan"]))
        self._keep_plan()
        return {"grown": before != self._lab.plan}

    async def _fault(self, request: Request) -> Answer:
        name, nodes, value = request.get("fault"), request.get("nodes"), request.get("value")
        if request.get("clear"):
            return {"struck": fold(self._lab.clear_faults(name, nodes))}
        return {"struck": fold(self._lab.set_fault(str(name), nodes, value))}

    async def _down(self, _: Request) -> Answer:
        self._stop.set()
        return {"pid": os.getpid()}

    def _keep_plan(self) -> None:
        document: dict[str, Any] = {"pid": os.getpid(), "plan": self._lab.plan.document()}
        self._paths.plan.write_text(json.dumps(document))


_OPERATIONS = {
    "status": _Daemon._status,
    "grow": _Daemon._grow,
    "fault": _Daemon._fault,
    "down": _Daemon._down,
}


@contextmanager
def _only_one(paths: LabPaths) -> Iterator[None]:
    """Hold the lab's lock for the life of this process; the lock file names the process."""
    descriptor = os.open(paths.lock, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as exc:
        os.close(descriptor)
        raise NoService(
            "lab", f"another process already runs it ({paths.lock})", follow="invoke lab.status"
        ) from exc
    os.ftruncate(descriptor, 0)
    os.write(descriptor, f"{os.getpid()}\n".encode())
    try:
        yield
    finally:
        os.close(descriptor)


def _tell(ready: int | None, answer: Answer) -> None:
    if ready is not None:
        with contextlib.suppress(OSError):
            os.write(ready, json.dumps(answer).encode() + b"\n")
            os.close(ready)


def configure_log() -> None:
    """Write the daemon's log to standard error, which `up` points at the log file."""
    logging.basicConfig(
        stream=sys.stderr, level=logging.INFO, format="%(asctime)s %(levelname)s %(name)s: %(message)s"
    )
