"""A boot under watch: the console is recorded, and what it says becomes the reason for a failure."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from bmc.console.causes import Cause
from bmc.console.record import Recorder

from bmc.errors import BmcError
from provision.errors import NodeFailed
from provision.stages.job import NodeJob


class BootWatch:
    """The recording of one boot, or the knowledge that there is none."""

    def __init__(self, recorder: Recorder | None) -> None:
        self._recorder = recorder

    def cause(self) -> Cause | None:
        """Return the named cause that the console shows so far, if any."""
        return self._recorder.cause() if self._recorder else None

    def raise_if_doomed(self, stage: str) -> None:
        """Raise NodeFailed when the console names a cause that no waiting will cure."""
        cause = self.cause()
        if cause is not None and cause.fatal:
            raise NodeFailed(stage, cause.code, cause.summary, why=f"console: {cause.line}")

    def explain(self, stage: str, code: str, reason: str, *, why: str = "") -> NodeFailed:
        """Return the failure of `stage`: the console's cause where it has one, else `code` and `reason`."""
        cause = self.cause()
        if cause is None:
            return NodeFailed(stage, code, reason, why=why)
        return NodeFailed(stage, cause.code, cause.summary, why=f"{reason}; console: {cause.line}")


@asynccontextmanager
async def watch_boot(job: NodeJob) -> AsyncIterator[BootWatch]:
    """Record the node's console while the body runs.

    A console that cannot be had (held by somebody, not offered) is noted and does not stop the
    boot: MAAS's events remain. It is never taken from whoever holds it.
    """
    folder = job.access.settings.console_folder(job.node.name)
    recorder = Recorder(job.access.bmc(job.node), folder)
    try:
        await recorder.start()
    except BmcError as error:
        job.note(f"console not recorded: {error}")
        yield BootWatch(None)
        return
    try:
        yield BootWatch(recorder)
    finally:
        await recorder.stop()
