"""Runs other programs from the event loop, at little cost to it.

uvloop forks for each, and copying the memory map of a runner of 150 MB took 6 ms of CPU and stopped
everything else for 27 (0.8 and 2 by vfork, which subprocess uses). So they are started by subprocess, and
their end is seen through a pidfd. Output goes to files that have no name: there is nothing to be read
meanwhile.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import resource
import signal
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import IO


class TooMuchOutput(Exception):
    """A program wrote more than it was allowed, and was stopped for that."""


@dataclass(frozen=True, slots=True)
class Ended:
    """What a program left: exit status (negative: the signal that ended it) and raw output."""

    status: int
    stdout: bytes
    stderr: bytes


async def run(
    argv: Sequence[str],
    *,
    stdin: bytes = b"",
    timeout_s: float,
    limit: int = 64 << 20,
    env: Mapping[str, str] | None = None,
) -> Ended:
    """Run a program to its end. Raises OSError, TimeoutError, TooMuchOutput; it never outlives this call.

    At most `limit` bytes of each output are taken; more than that is a failure, not a cut.
    """
    with (
        tempfile.TemporaryFile() as source,
        tempfile.TemporaryFile() as stdout,
        tempfile.TemporaryFile() as stderr,
    ):
        source.write(stdin)
        source.seek(0)
        process = subprocess.Popen(argv, stdin=source, stdout=stdout, stderr=stderr, env=env)
        try:
            with contextlib.suppress(ProcessLookupError):
                resource.prlimit(process.pid, resource.RLIMIT_FSIZE, (limit, limit))
            await asyncio.wait_for(_end(process), timeout_s)
        finally:
            if process.poll() is None:
                process.kill()
                await _end(process)
        # It may have written before its limit was set.
        written = max(os.fstat(file.fileno()).st_size for file in (stdout, stderr))
        if process.returncode == -signal.SIGXFSZ or written > limit:
            raise TooMuchOutput(f"more than {limit} bytes of output")
        return Ended(process.returncode, _all(stdout), _all(stderr))


async def _end(process: subprocess.Popen[bytes]) -> None:
    """Wait until a child of ours has ended, and take its status."""
    loop = asyncio.get_running_loop()
    ended = asyncio.Event()
    watched = os.pidfd_open(process.pid)
    loop.add_reader(watched, ended.set)
    try:
        await ended.wait()
    finally:
        loop.remove_reader(watched)
        os.close(watched)
    process.wait()


def _all(file: IO[bytes]) -> bytes:
    file.seek(0)
    return file.read()
