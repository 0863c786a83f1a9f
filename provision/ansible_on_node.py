"""Runs one play on the node itself: what the other end of `ansible_worker` starts there.

    python3 -I -S -c SOURCE FOLDER SHA256 SIZE PYTHON

It comes as source, in the command, because nothing of ours is on a fresh node; so it stands alone and
imports only Python's own. In stdin and stdout it says whether it has the bundle of that sha256, is sent it
where it has not, and is from then on `ansible-runner worker`. When stdin ends, whoever asked is gone, and
the play ends with all its processes.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import os
import shutil
import signal
import stat
import struct
import subprocess
import sys
import tarfile
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import IO

HAVE, SEND, REFUSED = b"have\n", b"send\n", b"refused "
REBOOT = 75  # exit status: the play left off where the node has to be rebooted
_REBOOT_NOW = Path("/run/muster-reboot/.now")
_BLOCK = 1 << 20
_TAKEN_OVER_S = 20.0
_FLOCK = "hhqqi"  # struct flock: type, whence, start, length, process
_PLAYBOOK = "#!{python}\nimport sys\nfrom ansible.cli.playbook import main\nsys.exit(main())\n"


class Refused(Exception):
    """The play can't be run here; the text says why."""


def main(arguments: list[str]) -> int:
    """Return the exit status of the play's worker, REBOOT, or 1 where it was refused."""
    base, digest, size, python = Path(arguments[0]).absolute(), arguments[1], int(arguments[2]), arguments[3]
    try:
        _be_python(python)
        base.mkdir(mode=0o700, parents=True, exist_ok=True)
        _be_alone(base)
        _prune(base, digest)
        if not (base / digest).is_dir():
            _say(SEND)
            _unpack(base, digest, size)
        _say(HAVE)
        return _work(base, base / digest)
    except (Refused, OSError) as error:
        _say(REFUSED + str(error).encode() + b"\n")
        return 1


def _say(line: bytes) -> None:
    sys.stdout.buffer.write(line)
    sys.stdout.buffer.flush()


def _be_python(wanted: str) -> None:
    here = f"{sys.version_info.major}.{sys.version_info.minor}"
    if here != wanted:
        raise Refused(f"the node has Python {here}, and what runs plays there is for {wanted}")


def _be_alone(base: Path) -> None:
    """Hold the node's lock to our end. Whoever holds it lost its connection, most likely: it is ended.

    The kernel says who that is; a number in a file could be another process's by now.
    """
    lock = os.open(base / "lock", os.O_RDWR | os.O_CREAT, 0o600)
    until = time.monotonic() + _TAKEN_OVER_S
    while True:
        with contextlib.suppress(OSError):
            fcntl.lockf(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return
        if time.monotonic() > until:
            raise Refused("another play runs on the node, and did not end when told to")
        asked = struct.pack(_FLOCK, fcntl.F_WRLCK, os.SEEK_SET, 0, 0, 0)
        kind, _, _, _, holder = struct.unpack(_FLOCK, fcntl.fcntl(lock, fcntl.F_GETLK, asked))
        if kind != fcntl.F_UNLCK and holder > 0:
            with contextlib.suppress(ProcessLookupError):
                os.kill(holder, signal.SIGTERM)
        time.sleep(0.2)


def _prune(base: Path, digest: str) -> None:
    """Remove older bundles, and what a run left that was killed."""
    for path in base.iterdir():
        if path.name not in {"lock", digest}:
            shutil.rmtree(path) if path.is_dir() else path.unlink()


def _unpack(base: Path, digest: str, size: int) -> None:
    """Take the bundle from stdin. It is there whole, or not at all."""
    part = base / "part.tar"
    running = hashlib.sha256()
    with part.open("wb") as file:
        while size and (data := os.read(0, min(size, _BLOCK))):
            file.write(data)
            running.update(data)
            size -= len(data)
    if running.hexdigest() != digest:
        part.unlink()
        raise Refused("what was sent to run plays with has another sha256 than was said")
    folder = base / "part"
    with tarfile.open(part) as tar:
        tar.extractall(folder)  # noqa: S202 - ours, by its sha256
    part.unlink()
    os.sync()
    folder.rename(base / digest)


def _work(base: Path, code: Path) -> int:
    folder = Path(tempfile.mkdtemp(prefix="run-", dir=base))
    try:
        return _worker(folder, code)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _worker(folder: Path, code: Path) -> int:
    with contextlib.suppress(FileNotFoundError):
        _REBOOT_NOW.unlink()
    lifeline, job, programs = folder / "lifeline", folder / "job", folder / "bin"
    os.mkfifo(lifeline, 0o600)
    job.mkdir()
    programs.mkdir()
    playbook = programs / "ansible-playbook"
    playbook.write_text(_PLAYBOOK.format(python=sys.executable))
    playbook.chmod(stat.S_IRWXU)
    (folder / "ansible.cfg").write_text("[defaults]\n")
    held = [os.open(lifeline, os.O_RDWR)]

    def let_go(*_: object) -> None:
        while held:
            os.close(held.pop())

    # Whoever takes over from us says so by this signal, and waits until all has ended.
    signal.signal(signal.SIGTERM, let_go)
    guard = code / "provision" / "ansible_guard.py"
    worker = subprocess.Popen(
        [sys.executable, "-I", "-S", str(guard), str(lifeline),
         sys.executable, "-s", "-m", "ansible_runner", "worker", "--private-data-dir", str(job)],
        stdin=subprocess.PIPE,
        cwd=folder,
        env=_environment(folder, code),
    )  # fmt: skip
    if worker.stdin is None:
        raise RuntimeError("started without a pipe")
    threading.Thread(target=_feed, args=(worker.stdin, let_go), daemon=True).start()
    status = worker.wait()
    return REBOOT if status == 0 and _REBOOT_NOW.exists() else status


def _feed(sink: IO[bytes], let_go: Callable[[], None]) -> None:
    """Pass stdin on to its end, which is also the play's."""
    while data := os.read(0, _BLOCK):
        with contextlib.suppress(BrokenPipeError):
            sink.write(data)
            sink.flush()
    let_go()


def _environment(folder: Path, code: Path) -> dict[str, str]:
    return {
        "PATH": f"{folder}/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
        "PYTHONPATH": str(code),
        "HOME": str(folder),
        "LC_ALL": "C.UTF-8",
        "ANSIBLE_CONFIG": f"{folder}/ansible.cfg",
        "ANSIBLE_HOME": f"{folder}/home",
        "ANSIBLE_LOCAL_TEMP": f"{folder}/local",
        "ANSIBLE_REMOTE_TMP": f"{folder}/remote",
    }


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
