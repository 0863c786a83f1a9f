"""Starts the agent on every node, follows it, and ends it when all have the file."""

from __future__ import annotations

import asyncio
import contextlib
import json
import shlex
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from provision.mirror.client import File

_AGENT = Path(__file__).with_name("agent.py")
# Reads the agent's length and the agent, and leaves the rest of standard input to it.
_BOOT = (
    "import sys;r=sys.stdin.buffer.raw;n=int(r.readline());d=b''\n"
    "while len(d)<n:d+=r.read(n-len(d)) or exit('cut')\n"
    "exec(compile(d,'agent','exec'))"
)
_LINE = 1 << 20
_END_WITHIN_S = 10.0


class Source(StrEnum):
    """Where nodes get a file from."""

    PEERS = "peers"
    HTTP = "http"


@dataclass(frozen=True, slots=True)
class Receiver:
    """One node, and the command that runs a program on it: `ssh ... USER@NODE` for most."""

    node: str
    rack: str
    command: tuple[str, ...]
    python: tuple[str, ...] = ("python3",)
    remote: bool = True  # the command takes one string for a shell, as ssh does


@dataclass(frozen=True, slots=True)
class Wish:
    """Which file goes where. Times are in seconds."""

    url: str  # the mirror as nodes see it
    file: File
    dest: str
    source: Source = Source.PEERS
    port: int = 6881
    stall_s: float = 20.0
    silence_s: float = 180.0
    linger_s: float = 3600.0
    starting_at_once: int = 64


@dataclass(frozen=True, slots=True)
class Arrival:
    """How a node ended: `source` is peers, http or there; `why` says why it failed, or fell back.

    `fetched` is how many bytes it took from the mirror itself.
    """

    node: str
    ok: bool
    source: str = ""
    seconds: float = 0.0
    fetched: int = 0
    why: str = ""


Progress = Callable[[str, int], None]


async def spread(
    receivers: Sequence[Receiver], wish: Wish, progress: Progress = lambda _node, _have: None
) -> Mapping[str, Arrival]:
    """Bring a file to all receivers; return how each ended. Nodes serve each other until the last has it."""
    everyone = asyncio.Event()
    starting = asyncio.Semaphore(wish.starting_at_once)
    arrivals: dict[str, Arrival] = {}

    async def one(number: int, receiver: Receiver) -> None:
        job = _job(wish, number, len(receivers))
        async with _Agent(receiver, job, starting) as agent:
            arrivals[receiver.node] = await agent.follow(wish, progress)
            if len(arrivals) == len(receivers):
                everyone.set()
            await agent.serve(everyone)

    await asyncio.gather(*(one(number, receiver) for number, receiver in enumerate(receivers)))
    return arrivals


def _job(wish: Wish, number: int, of: int) -> bytes:
    job = {
        "url": wish.url,
        "sha256": wish.file.sha256,
        "size": wish.file.size,
        "dest": wish.dest,
        "source": str(wish.source),
        "share": [number, of],
        "port": wish.port,
        "stall_s": wish.stall_s,
        "linger_s": wish.linger_s,
    }
    agent = _AGENT.read_bytes()
    return b"%d\n%s%s\n" % (len(agent), agent, json.dumps(job).encode())


class _Agent:
    """The agent on one node, over a pipe. It ends when its standard input closes."""

    def __init__(self, receiver: Receiver, job: bytes, starting: asyncio.Semaphore) -> None:
        self._receiver = receiver
        self._job = job
        self._starting = starting
        self._process: asyncio.subprocess.Process | None = None

    async def __aenter__(self) -> _Agent:
        words = [*self._receiver.python, "-c", _BOOT]
        if self._receiver.remote:
            words = [" ".join(shlex.quote(word) for word in words)]
        async with self._starting:
            self._process = await asyncio.create_subprocess_exec(
                *self._receiver.command,
                *words,
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.PIPE,
                limit=_LINE,
            )
        return self

    async def __aexit__(self, *_: object) -> None:
        process = self._open
        if process.stdin:
            process.stdin.close()
        try:
            async with asyncio.timeout(_END_WITHIN_S):
                await process.wait()
        except TimeoutError:
            with contextlib.suppress(ProcessLookupError):
                process.kill()
            await process.wait()

    async def follow(self, wish: Wish, progress: Progress) -> Arrival:
        """Send the agent and its job, and read what it tells until it has the file or fails."""
        node = self._receiver.node
        process = self._open
        try:
            if process.stdin is None or process.stdout is None:
                raise RuntimeError("the agent is spoken to over pipes")
            with contextlib.suppress(ConnectionError):
                process.stdin.write(self._job)
                await process.stdin.drain()
            while line := await asyncio.wait_for(process.stdout.readline(), wish.silence_s):
                told = json.loads(line)
                if "have" in told:
                    progress(node, int(told["have"]))
                elif "failed" in told:
                    return Arrival(node, ok=False, why=str(told["failed"]))
                elif "done" in told:
                    progress(node, wish.file.size)
                    return _arrived(node, told)
        except TimeoutError:
            return Arrival(node, ok=False, why=f"nothing was heard of it for {wish.silence_s:.0f} s")
        except (ValueError, KeyError) as error:
            return Arrival(node, ok=False, why=f"what runs there is not the agent: {error}")
        return Arrival(node, ok=False, why=await self._last_words())

    async def serve(self, everyone: asyncio.Event) -> None:
        """Keep the agent giving pieces to others until everyone has the file; throw away what it tells."""
        reading = asyncio.ensure_future(self._drain())
        try:
            await everyone.wait()
        finally:
            reading.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await reading

    async def _drain(self) -> None:
        stdout = self._open.stdout
        while stdout and await stdout.read(65536):
            pass

    async def _last_words(self) -> str:
        stderr = self._open.stderr
        text = (await stderr.read()).decode("utf-8", "replace") if stderr else ""
        lines = text.strip().splitlines()
        return lines[-1].strip() if lines else "the agent ended without a word"

    @property
    def _open(self) -> asyncio.subprocess.Process:
        if self._process is None:
            raise RuntimeError("an agent is used inside `async with`")
        return self._process


def _arrived(node: str, told: Mapping[str, object]) -> Arrival:
    return Arrival(
        node,
        ok=True,
        source=str(told["source"]),
        seconds=float(str(told["seconds"])),
        fetched=int(str(told.get("fetched", 0))),
        why=str(told.get("why", "")),
    )
