"""Bodies of plain PUTs, which nginx writes to files of its own and hands over when they are whole.

nginx asks before it takes a byte, and is let in with a ticket: from then on the body counts as promised.
It counts until nginx hands the file over, or says that it failed, or the connection of the client has
ended; of a client that went away in the middle, nginx tells nobody.
"""

from __future__ import annotations

import fcntl
import os
import re
import signal
import stat
import time
from collections.abc import Callable, Collection, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path

from provision.mirror import connections
from provision.mirror.connections import Connection
from provision.mirror.follower import Follower
from provision.mirror.promise import Promise
from provision.mirror.refusals import Refusal, Why

Gone = Callable[[Collection[Connection]], Collection[Connection]]
_NAME = re.compile(r"[0-9]+")  # as nginx numbers its files
_SETTLED_S = 10.0  # age from which a file that nobody writes to was not just being opened


@dataclass(slots=True)
class _Admitted:
    """A PUT that was let in."""

    promise: Promise
    connection: Connection
    handed_over: bool = False


class HandOver:
    """The folder that nginx writes bodies to, and who was let in. What lies there at the start is removed."""

    def __init__(
        self, folder: Path, gone: Gone = connections.gone, clock: Callable[[], float] = time.time
    ) -> None:
        self._folder = folder
        self._gone = gone
        self._clock = clock
        self._admitted: dict[str, _Admitted] = {}
        self.follower = Follower(folder)
        for path in folder.iterdir():
            if not path.is_dir():  # left by an nginx that was killed, or let in by a service that was
                path.unlink()

    def close(self) -> None:
        """End the thread that follows."""
        self.follower.close()

    def promises(self) -> Sequence[Promise]:
        """Return what all PUTs under way are to become."""
        return [one.promise for one in self._admitted.values()]

    def admit(self, ticket: str, promise: Promise, connection: Connection) -> None:
        """Let a PUT in. The one before on its connection, if any, has ended."""
        for old in [old for old, one in self._admitted.items() if one.connection == connection]:
            self._admitted.pop(old)
        self._admitted[ticket] = _Admitted(promise, connection)
        self.follower.expect(files=True)

    def forget(self, ticket: str) -> bool:
        """Let go of a PUT that has ended; say whether there was one."""
        known = self._admitted.pop(ticket, None) is not None
        self.follower.expect(files=bool(self._admitted))
        return known

    def forget_gone(self) -> bool:
        """Let go of PUTs whose client is no longer there; say whether there were any."""
        gone: Collection[Connection] = ()
        waiting = {one.connection: ticket for ticket, one in self._admitted.items() if not one.handed_over}
        with suppress(OSError):  # nobody can tell: then they count on
            gone = self._gone(waiting) if waiting else ()
        return any([self.forget(waiting[connection]) for connection in gone])

    def to_come(self) -> int:
        """Return how many bytes of bodies have still to be written."""
        whole = sum(one.promise.length for one in self._admitted.values() if not one.handed_over)
        return max(whole - self._written(), 0) if whole else 0

    def take(self, ticket: str, promise: Promise, body: Path, target: Path) -> int:
        """Give the file that nginx wrote for a PUT the name `target` too, and return its inode number.

        nginx removes its own name itself; until then it uses it for no other file. Raises Refusal, OSError.
        """
        one = self._admitted.get(ticket)
        if one is None or replace(promise, created=one.promise.created) != one.promise:
            raise Refusal(
                Why.AGAIN, "the service was not asked for this file, or was started anew; send it again"
            )
        if body.parent != self._folder or not _NAME.fullmatch(body.name):
            raise Refusal(Why.NOT_WRITTEN, "nginx keeps bodies elsewhere than in the mirror's own folder")
        try:
            os.link(body, target, follow_symlinks=False)
        except FileNotFoundError:
            raise Refusal(Why.AGAIN, "the body is there no more; send it again") from None
        except PermissionError:
            raise Refusal(Why.NOT_WRITTEN, "nginx must run as the user of the service") from None
        one.handed_over = True
        # Looked at under the name that is ours alone.
        found = target.lstat()
        if not stat.S_ISREG(found.st_mode) or found.st_size != promise.length:
            raise Refusal(Why.BAD_REQUEST, "the body is not as long as its length")
        return found.st_ino

    def _written(self) -> int:
        """Return the size of all bodies that nginx is writing; what nobody writes any longer is removed."""
        size = 0
        with os.scandir(self._folder) as entries:
            for entry in entries:
                with suppress(FileNotFoundError):
                    found = entry.stat(follow_symlinks=False)
                    old = found.st_ctime < self._clock() - _SETTLED_S
                    if found.st_nlink != 1:
                        continue  # handed over
                    if old and _abandoned(Path(entry.path)):
                        Path(entry.path).unlink()
                    else:
                        size += found.st_size
        return size


def _abandoned(path: Path) -> bool:
    """Say whether nobody has a file open for writing: then, and only then, the kernel grants a read lease."""
    try:
        handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    except PermissionError:
        return False
    try:
        # Whoever opens it in between is told by a signal, which by default would end us.
        fcntl.fcntl(handle, fcntl.F_SETSIG, signal.SIGURG)
        fcntl.fcntl(handle, fcntl.F_SETLEASE, fcntl.F_RDLCK)
        fcntl.fcntl(handle, fcntl.F_SETLEASE, fcntl.F_UNLCK)
    except OSError:
        return False  # it is written to, or this file system cannot tell
    finally:
        os.close(handle)
    return True
