"""A boot under watch: the console is recorded, and what it says becomes the reason for a failure."""

from __future__ import annotations

import asyncio
import re
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress

from bmc.console.causes import Cause
from bmc.console.record import Recorder
from bmc.errors import BmcError
from provision.errors import NodeFailed
from provision.stages.job import NodeJob

# These are worth knowing and do not by themselves stop a boot.
_LOGIN = re.compile(rb"\blogin: ")
_LOGIN_S = 15.0
_NOT_STOPPING = frozenset({"disk-errors", "machine-check", "wrong-time"})


class BootWatch:
    """The recording of one boot, or the knowledge that there is none.

    `patience_s`: how long a cause must stand on the console before the boot is given up. Firmware
    retries, and a kernel that panics may restart by itself.
    """

    def __init__(
        self, recorder: Recorder | None, patience_s: float, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._recorder = recorder
        self._patience_s = patience_s
        self._clock = clock
        self._standing: tuple[str, float] | None = None

    def cause(self) -> Cause | None:
        """Return the named cause that the console shows so far, if any."""
        return self._recorder.cause() if self._recorder else None

    def raise_if_doomed(self, stage: str) -> None:
        """Raise NodeFailed when a cause that stops a boot has stood on the console for too long."""
        cause = self.cause()
        if cause is None or cause.id in _NOT_STOPPING:
            self._standing = None
            return
        if self._standing is None or self._standing[0] != cause.id:
            self._standing = (cause.id, self._clock())
        if self._clock() - self._standing[1] >= self._patience_s:
            raise _failure(stage, cause)

    def explain(self, stage: str, code: str, reason: str, *, why: str = "") -> NodeFailed:
        """Return the failure of `stage`: the console's cause where it has one, else `code` and `reason`."""
        cause = self.cause()
        if cause is None:
            return NodeFailed(stage, code, reason, why=why)
        return _failure(stage, cause, reason)

    async def see_login(self) -> None:
        """Wait a little for the login prompt, so that the record of a good boot ends with it.

        A console that shows none (no getty on the serial line) is no fault of the boot.
        """
        if self._recorder is None:
            return
        with suppress(BmcError):
            await self._recorder.wait_for(_LOGIN, _LOGIN_S)


def _failure(stage: str, cause: Cause, reason: str = "") -> NodeFailed:
    seen = f'console: "{cause.line.strip()}"' + (f", {cause.count} times" if cause.count > 1 else "")
    why = f"{reason}; {seen}" if reason else seen
    return NodeFailed(stage, cause.id, cause.title, why=why)


@asynccontextmanager
async def watch_boot(job: NodeJob) -> AsyncIterator[BootWatch]:
    """Record the node's console while the body runs.

    A console that cannot be had (held by somebody, not offered, disk full) is noted and does not
    stop the boot: MAAS's events remain. It is never taken from whoever holds it.
    """
    folder = job.access.settings.console_folder(job.node.name)
    patience = job.deadline("console")
    recorder = Recorder(job.access.bmc(job.node), folder)
    try:
        await recorder.start()
    except BmcError as error:
        job.note(f"console not recorded: {error}")
        yield BootWatch(None, patience)
        return
    recorder.mark(f"muster {job.run}")
    try:
        yield BootWatch(recorder, patience)
    finally:
        await _stop(job, recorder)


async def _stop(job: NodeJob, recorder: Recorder) -> None:
    """Close the recording; what broke it is noted, and does not hide what happened to the boot."""
    stopping = asyncio.ensure_future(recorder.stop())
    try:
        await asyncio.shield(stopping)
    except BmcError as error:
        job.note(f"console recording broke off: {error}")
    except asyncio.CancelledError:
        # The session must be given back even when the stage is called off.
        with suppress(BmcError):
            await stopping
        raise
