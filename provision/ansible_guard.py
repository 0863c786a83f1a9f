"""Runs one command and leaves nothing behind: no orphan when we are killed, none when it is done.

    python -I -S ansible_guard.py LIFELINE COMMAND [ARGUMENT…]

LIFELINE is a named pipe that our process holds open for writing. The kernel closes it when our
process ends, however it ends, and closing it is also how a play is called off. Ansible's workers
leave their process group and its SSH masters leave their parent, so a group signal does not reach
them; being their subreaper does. LIFELINE's folder is the play's own and is removed when our process
is gone. Stands alone: it imports nothing of ours and starts in little time.
"""

from __future__ import annotations

import ctypes
import os
import select
import shutil
import signal
import sys
import time
from pathlib import Path

_PR_SET_CHILD_SUBREAPER = 36
_GRACE_S = 3.0


def main(arguments: list[str]) -> int:
    """Return the command's exit status, 128 + signal where it died of one."""
    parent = os.getppid()
    lifeline = os.open(arguments[0], os.O_RDONLY | os.O_NONBLOCK)
    if ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0):
        raise OSError(ctypes.get_errno(), "prctl")
    wake, waker = os.pipe()
    for end in (wake, waker):
        os.set_blocking(end, False)
    stopped: list[int] = []
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, lambda got, _frame: stopped.append(got))
    signal.signal(signal.SIGCHLD, lambda _got, _frame: None)
    signal.set_wakeup_fd(waker)
    child = os.posix_spawn(arguments[1], arguments[1:], os.environ, setsigdef=[signal.SIGHUP])
    status = _watch(child, lifeline, wake, stopped)
    if status is None:
        status = _end(child)
    _reap_everything()
    if os.getppid() != parent:
        shutil.rmtree(Path(arguments[0]).parent, ignore_errors=True)  # nobody else is left to do it
    return os.waitstatus_to_exitcode(status) if os.WIFEXITED(status) else 128 + os.WTERMSIG(status)


def _watch(child: int, lifeline: int, wake: int, stopped: list[int]) -> int | None:
    """Return the child's wait status, or None when the lifeline closed or we were told to stop."""
    poll = select.poll()
    poll.register(lifeline, select.POLLIN)
    poll.register(wake, select.POLLIN)
    while True:
        for descriptor, what in poll.poll():
            if descriptor == wake:
                os.read(wake, 4096)
            elif what & select.POLLHUP:
                return None
        if stopped:
            return None
        found = _collect(child)
        if found is not None:
            return found


def _collect(child: int) -> int | None:
    """Reap what has ended; return the child's status if it is among them."""
    found = None
    while True:
        try:
            pid, status = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return found
        if pid == 0:
            return found
        if pid == child:
            found = status


def _end(child: int) -> int:
    """Ask the child to end, then make it; return its wait status."""
    os.kill(child, signal.SIGTERM)
    until = time.monotonic() + _GRACE_S
    while time.monotonic() < until:
        found = _collect(child)
        if found is not None:
            return found
        time.sleep(0.05)
    os.kill(child, signal.SIGKILL)
    return os.waitpid(child, 0)[1]


def _reap_everything() -> None:
    """Kill all that is left below us, until nothing is."""
    while True:
        for pid in _descendants(os.getpid()):
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                continue
        try:
            pid, _status = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return
        if pid == 0:
            time.sleep(0.01)


def _descendants(root: int) -> list[int]:
    parents: dict[int, list[int]] = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                fields = (entry / "stat").read_text().rpartition(")")[2].split()
            except OSError:
                continue  # ended meanwhile
            parents.setdefault(int(fields[1]), []).append(int(entry.name))
    found: list[int] = []
    ahead = [root]
    while ahead:
        children = parents.get(ahead.pop(), [])
        found += children
        ahead += children
    return found


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
