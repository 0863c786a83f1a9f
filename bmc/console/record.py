"""Records one node's console: every byte to disk, every gap marked, through BMC resets."""

from __future__ import annotations

import asyncio
import contextlib
import re
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType

from bmc.capability import BmcTarget
from bmc.console.causes import Cause, Watch
from bmc.console.plain import Plain
from bmc.console.store import FILE_BYTES, RING_BYTES, Event, EventKind, Writer
from bmc.errors import BmcError, Busy, Occupied, PatternNotSeen, RecordingFailed, Unreachable
from bmc.ipmi.endpoint import Endpoint
from bmc.ipmi.session import Session
from bmc.ipmi.sharing import shared_endpoint
from bmc.ipmi.sol import Sol

_DIGEST_BYTES = 65_536
_TEXT_BYTES = 262_144
_MOST_EVENTS = 1000  # in memory; the file has all
_OVERLAP = 4096  # a pattern that spans more than this may be missed
_THIEF_S = 0.3  # whoever ended our console to take it is given the time to
_FIRST_PAUSE_S, _LAST_PAUSE_S = 0.2, 5.0


@dataclass(frozen=True, slots=True)
class Limits:
    """How much is kept, and how long silence lasts before the BMC is asked."""

    file_bytes: int = FILE_BYTES
    ring_bytes: int = RING_BYTES
    keepalive_s: float = 5.0


class Recorder:
    """Keeps `target`'s console in `folder` (one ring a node) from `start` to `stop`.

    Takes the console from another session only with `steal`, and only at the start.
    """

    def __init__(
        self,
        target: BmcTarget,
        folder: Path,
        *,
        steal: bool = False,
        clock: Callable[[], float] = time.time,
        endpoint: Endpoint | None = None,
        limits: Limits | None = None,
    ) -> None:
        self.target = target
        self.folder = folder
        self.bytes_kept = 0
        self.gaps = 0  # times the console was lost or taken
        self._limits = limits or Limits()
        self._steal = steal
        self._clock = clock
        self._endpoint = endpoint
        self._writer = Writer(
            folder, target.name, file_bytes=self._limits.file_bytes, ring_bytes=self._limits.ring_bytes
        )
        self._events: deque[Event] = deque(maxlen=_MOST_EVENTS)
        self._task: asyncio.Task[None] | None = None
        self._stopping = asyncio.Event()
        self._active = asyncio.Event()
        self._arrived = asyncio.Event()
        self._failure: OSError | None = None
        self._was_active = False
        self._sol: Sol | None = None
        self._overruns = 0
        self._lost_at: float | None = None
        self._fresh: list[tuple[float, bytes]] = []
        self._fresh_bytes = 0
        self._plain = Plain()
        self._watch = Watch()
        self._text = bytearray()  # what `wait_for` has not passed yet

    async def __aenter__(self) -> Recorder:
        await self.start()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, exc: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.stop()

    @property
    def events(self) -> tuple[Event, ...]:
        return tuple(self._events)

    @property
    def active(self) -> bool:
        """Whether bytes flow now."""
        return self._active.is_set()

    async def start(self) -> None:
        """Return once the console is open. Raises what kept it from opening."""
        now = self._clock()
        try:
            self._writer.open(now)
            self._note(EventKind.STARTED, self.target.host)
        except OSError as exc:
            raise self._failed(exc) from exc
        self._task = asyncio.get_running_loop().create_task(self._run())
        active = asyncio.ensure_future(self._active.wait())
        try:
            await asyncio.wait({self._task, active}, return_when=asyncio.FIRST_COMPLETED)
        except BaseException:
            await self.stop()
            raise
        finally:
            active.cancel()
        if not self._active.is_set():
            await self.stop()

    async def stop(self) -> None:
        """Log out and close the file. Raises what broke the recording, if anything did."""
        self._stopping.set()
        if self._sol is not None:
            self._sol.ended.set()
        task, self._task = self._task, None
        if task is None:
            return
        try:
            await asyncio.shield(task)
        finally:
            if self._failure is None:
                self._note(EventKind.STOPPED)
            self._writer.close()

    async def ended(self) -> None:
        """Return when the recording has ended by itself. Raises what broke it."""
        if self._task is not None:
            await asyncio.shield(self._task)

    def mark(self, text: str) -> None:
        """Write what the caller did into the record, for example "power cycle"."""
        self._note(EventKind.MARK, text)

    async def wait_for(self, pattern: bytes | re.Pattern[bytes], timeout_s: float) -> bytes:
        """Return the first text since `start`, or since the last match, that fits `pattern`.

        Terminal control is taken out first. Raises PatternNotSeen, RecordingFailed.
        """
        regex = re.compile(re.escape(pattern)) if isinstance(pattern, bytes) else pattern
        searched = 0
        try:
            async with asyncio.timeout(timeout_s):
                while True:
                    self._arrived.clear()
                    trimmed = self._digest()
                    found = regex.search(self._text, max(0, searched - trimmed - _OVERLAP))
                    if found:
                        text, end = bytes(found.group()), found.end()
                        del self._text[:end]
                        return text
                    if self._failure is not None:
                        raise self._failed(self._failure)
                    searched = len(self._text)
                    await self._arrived.wait()
        except TimeoutError as exc:
            shown = regex.pattern.decode("utf-8", "replace")
            raise PatternNotSeen(self.target.name, self.target.host, shown, timeout_s) from exc

    def cause(self) -> Cause | None:
        """Return what stopped the boot, as far as the console told."""
        self._digest()
        return self._watch.cause()

    # --- the session

    async def _run(self) -> None:
        pause, own = _FIRST_PAUSE_S, b""
        async with shared_endpoint(self._endpoint) as endpoint:
            while not self._stopping.is_set():
                session = Session(endpoint, self.target)
                self._sol = sol = Sol(session, self._keep)
                self._overruns = 0
                try:
                    await session.open()
                    await sol.activate(steal=self._steal and not self._was_active, own=own)
                    own, pause = sol.owner, _FIRST_PAUSE_S
                    self._is_active()
                    await self._hold(sol, session, own)
                except BmcError as exc:
                    if not self._was_active or isinstance(exc, RecordingFailed):
                        raise
                    self._is_lost(exc, session.heard_at)
                finally:
                    await self._leave(session, sol)
                await self._nap(pause)
                pause = min(pause * 2, _LAST_PAUSE_S)

    async def _hold(self, sol: Sol, session: Session, own: bytes) -> None:
        """Stay while the console is ours; raises BmcError when it no longer is."""
        loop = asyncio.get_running_loop()
        while True:
            quiet_until = session.heard_at + self._limits.keepalive_s
            try:
                async with asyncio.timeout_at(max(quiet_until, loop.time() + 0.1)):
                    await sol.ended.wait()
            except TimeoutError:
                if loop.time() < session.heard_at + self._limits.keepalive_s:
                    continue
                if await sol.still_ours():
                    continue
            if self._stopping.is_set():
                return
            if self._failure is not None:
                raise self._failed(self._failure)
            sol.ended.clear()
            await self._nap(_THIEF_S)
            await sol.activate(own=own)  # some BMCs end the console at each power cycle
            own = sol.owner
            self._note(EventKind.RECOVERED, "the BMC had ended the console and gave it back")

    async def _leave(self, session: Session, sol: Sol) -> None:
        with contextlib.suppress(OSError):  # `_keep` remembers it
            sol.keep_tail()
        if self._stopping.is_set() and self._active.is_set():
            with contextlib.suppress(BmcError):
                await sol.deactivate()
        self._active.clear()
        await session.close()

    async def _nap(self, seconds: float) -> None:
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._stopping.wait()

    # --- the record

    def _keep(self, data: bytes) -> None:
        now = self._clock()
        try:
            if self._sol is not None and self._sol.overruns != self._overruns:
                self._overruns = self._sol.overruns
                self._note(EventKind.OVERRUN, "the BMC dropped bytes of the node")
            self._writer.data(now, data)
        except OSError as exc:
            self._failure = exc
            if self._sol is not None:
                self._sol.ended.set()
            self._arrived.set()
            raise
        self.bytes_kept += len(data)
        self._fresh.append((now, data))
        self._fresh_bytes += len(data)
        if self._fresh_bytes > _DIGEST_BYTES:
            self._digest()
        self._arrived.set()

    def _digest(self) -> int:
        """Read what came since the last time; return by how much the text was cut at the front."""
        pieces = [(when, self._plain.feed(data)) for when, data in self._fresh]
        self._watch.feed_all(pieces)
        self._text += b"".join(text for _, text in pieces)
        self._fresh.clear()
        self._fresh_bytes = 0
        trimmed = max(0, len(self._text) - _TEXT_BYTES)
        del self._text[:trimmed]
        return trimmed

    def _note(self, kind: EventKind, text: str = "") -> None:
        event = Event(self._clock(), kind, text)
        self._events.append(event)
        self._writer.event(event)

    def _is_active(self) -> None:
        if self._lost_at is None:
            self._note(EventKind.ACTIVE)
        else:
            self._note(
                EventKind.RECOVERED, f"after {self._clock() - self._lost_at:.1f} s without the console"
            )
        self._lost_at = None
        self._was_active = True
        self._active.set()

    def _is_lost(self, exc: BmcError, heard_at: float) -> None:
        self._active.clear()
        if self._lost_at is None:
            self.gaps += 1
            silent_s = asyncio.get_running_loop().time() - heard_at
            self._lost_at = self._clock() - silent_s
            stolen = isinstance(exc, Busy) and exc.occupied is Occupied.CONSOLE
            kind = EventKind.STOLEN if stolen else EventKind.LOST
            self._note(kind, f"{exc.what()}; last heard {silent_s:.1f} s ago")
        elif not isinstance(exc, Unreachable) and self._events[-1].text != exc.what():
            self._note(EventKind.WAITING, exc.what())

    def _failed(self, exc: OSError) -> RecordingFailed:
        return RecordingFailed(self.target.name, self.target.host, str(self.folder), exc.strerror or "")
