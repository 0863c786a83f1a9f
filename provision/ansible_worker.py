"""Has a node run its play itself: transmit, `ssh NODE worker`, process, each of them ansible-runner's.

One connection does it all: it brings the bundle where the node lacks it, then the play, and back come the
events. What is on the node is told apart by sha256 (`ansible_on_node`).
"""

from __future__ import annotations

import json
import os
import shlex
import shutil
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from ansible_runner.streaming import Processor, Transmitter
from ansible_runner.utils.base64io import Base64IO

from provision import ansible_on_node
from provision.ansible_bundle import CONTENTS, pack
from provision.ansible_request import PlayRequest
from provision.ssh import SshTarget

REBOOT = ansible_on_node.REBOOT
PYTHON = "/usr/bin/python3"  # on the node; every image has this one
VERSION = f"{sys.version_info.major}.{sys.version_info.minor}"
UNREACHABLE = 255  # ssh's own exit status where it got nowhere, or was cut off
_BLOCK = 1 << 20
_SKIPPED = shutil.ignore_patterns("__pycache__", "*.pyc")


class Bundle:
    """What a node needs to run plays, packed once and when first asked for.

    It is kept in a file without a name, so that nothing of it is left when we are killed.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._file: IO[bytes] | None = None
        self._digest = ""

    def close(self) -> None:
        """Let go of it."""
        if self._file is not None:
            self._file.close()

    def packed(self) -> tuple[str, int]:
        """Return its sha256 and its size in bytes. Raises OSError, PackageNotFoundError."""
        with self._lock:
            if self._file is None:
                with tempfile.TemporaryDirectory(prefix="mb-") as folder:
                    path = Path(folder) / "worker.tar"
                    self._digest = pack(CONTENTS["worker"], path)
                    self._file = path.open("rb")
            return self._digest, os.fstat(self._file.fileno()).st_size

    def send(self, sink: IO[bytes]) -> None:
        """Write it. Several may at once."""
        _, size = self.packed()
        if self._file is not None:
            for offset in range(0, size, _BLOCK):
                sink.write(os.pread(self._file.fileno(), _BLOCK, offset))
            sink.flush()


@dataclass(frozen=True, slots=True)
class Ended:
    """How the far end ended: exit status of ssh, and the last thing that was said of what went wrong."""

    status: int
    why: str = ""


def run(
    request: PlayRequest,
    private: Path,
    bundle: Bundle,
    *,
    guarded: Callable[[list[str]], list[str]],
    settings: Mapping[str, str],
    take: Callable[[Mapping[str, Any]], bool],
) -> Ended:
    """Run a play on its node and give `take` every event. Raises OSError.

    `guarded` wraps the command that must not outlive us.
    """
    job = private / "job"
    _lay_out(request, job)
    with _connected(guarded(_command(request, bundle)), private) as (process, said):
        sink, back = process.stdin, process.stdout
        if sink is None or back is None:
            raise RuntimeError("started without pipes")
        refused, broken = None, ""
        try:
            refused = _agree(sink, back, bundle)
            if refused is None:
                _transmit(request, job, sink, settings)
                broken = _process(back, private / "back", take)
        except BrokenPipeError:
            broken = "the node went away"
        if refused is None and not broken:
            process.wait()  # it ends by itself, and would end too early without us
        with suppress(BrokenPipeError):
            sink.close()  # which ends what is still there
        back.close()
        status = process.wait()
        # What the far end wrote last says more than that it ended too early.
        return Ended(status, refused or (broken and (said() or broken)) or (said() if status else ""))


def _lay_out(request: PlayRequest, job: Path) -> None:
    """Write what is sent: the playbooks, this node's inventory, and only its own variables."""
    shutil.copytree(request.playbook.parent, job / "project", ignore=_SKIPPED)
    inventory = job / "inventory"
    inventory.mkdir()
    (inventory / "hosts.json").write_text(json.dumps(request.inventory()), encoding="utf-8")
    if request.vars_folder is not None:
        for folder, names in (("group_vars", {"all", *request.groups}), ("host_vars", {request.node})):
            for path in sorted((request.vars_folder / folder).glob("*")):
                if path.name in names or path.stem in names:
                    target = inventory / folder / path.name
                    target.parent.mkdir(exist_ok=True)
                    (shutil.copytree if path.is_dir() else shutil.copy)(path, target)


def _command(request: PlayRequest, bundle: Bundle) -> list[str]:
    request.known_hosts.parent.mkdir(parents=True, exist_ok=True)
    target = SshTarget(
        request.node, request.address, request.port, request.user, request.key_file, request.known_hosts
    )
    root = request.become or request.user == "root"
    words = ["sudo", "-n"] if request.become and request.user != "root" else []
    words += [PYTHON, "-I", "-S", "-c", source()]
    words += ["/var/lib/muster-play" if root else ".cache/muster-play"]
    digest, size = bundle.packed()
    words += [digest, str(size), VERSION]
    return [*target.arguments(), shlex.join(words)]


def source() -> str:
    """Return the program that the node is sent."""
    return Path(ansible_on_node.__file__).read_text(encoding="utf-8")


@contextmanager
def _connected(
    command: list[str], private: Path
) -> Iterator[tuple[subprocess.Popen[bytes], Callable[[], str]]]:
    """Start the command; the second value tells its last line of stderr."""
    path = private / "stderr"

    def said() -> str:
        lines = path.read_text(encoding="utf-8", errors="replace").strip().splitlines()
        return lines[-1].strip() if lines else ""

    with path.open("wb") as stderr:
        process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=stderr)
        try:
            yield process, said
        finally:
            if process.poll() is None:
                process.terminate()
                process.wait()


def _agree(sink: IO[bytes], back: IO[bytes], bundle: Bundle) -> str | None:
    """Send the bundle where the node asks for it; return why it runs no plays, None where it does."""
    answer = back.readline()
    if answer == ansible_on_node.SEND:
        bundle.send(sink)
        answer = back.readline()
    if answer == ansible_on_node.HAVE:
        return None
    if answer.startswith(ansible_on_node.REFUSED):
        return answer.removeprefix(ansible_on_node.REFUSED).decode("utf-8", "replace").strip()
    # A shell there that prints something of its own, most likely.
    return f"instead of an answer came {answer[:80]!r}" if answer else ""


def _transmit(request: PlayRequest, job: Path, sink: IO[bytes], settings: Mapping[str, str]) -> None:
    Transmitter(
        _output=sink,
        private_data_dir=str(job),
        playbook=request.playbook.name,
        inventory="inventory/hosts.json",
        extravars=dict(request.extra_vars),
        cmdline=request.options() or None,
        forks=request.forks,
        envvars=dict(settings),
        settings={"pexpect_timeout": 1},
        fact_cache_type="memory",
        suppress_env_files=True,
        suppress_output_file=True,
    ).run()


class _Events(Processor):
    """Takes what a node tells and no files: it could send such as are written anywhere here."""

    def artifacts_callback(self, artifacts_data: Mapping[str, Any]) -> None:
        remaining = int(artifacts_data["zipfile"])
        with Base64IO(self._input) as source:
            while remaining > 0 and (data := source.read(min(remaining, _BLOCK))):
                remaining -= len(data)


def _process(back: IO[bytes], folder: Path, take: Callable[[Mapping[str, Any]], bool]) -> str:
    """Read events to their end; return what ansible-runner says against it."""
    told: list[str] = []

    def status(data: Mapping[str, Any], **_: object) -> None:
        if data.get("status") == "error":
            told.append(str(data.get("job_explanation") or "").partition(". ")[0])

    events = _Events(
        _input=back, private_data_dir=str(folder), event_handler=take, status_handler=status, quiet=True
    )
    try:
        events.run()
    except (AttributeError, LookupError, TypeError, ValueError) as error:  # whatever a node may send
        return f"what the node told cannot be read: {error!r}"
    return told[-1] if told else ""
