"""Runs plays on nodes with ansible-runner, one run a node. The only module that knows that library."""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import os
import shutil
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Self

from ansible_runner.config.runner import RunnerConfig
from ansible_runner.runner import Runner

from provision import ansible_guard, ansible_worker
from provision.ansible_errors import (
    AnsibleMissing,
    PlayCanceled,
    PlayFailed,
    PlayTimeout,
    PlayUnreachable,
)
from provision.ansible_events import (
    Course,
    PlayEvent,
    PlayEventKind,
    PlayOutcome,
    PlayStats,
    one_line,
    read_event,
    read_stats,
)
from provision.ansible_request import PlayRequest, Transport
from provision.ansible_worker import Bundle

__all__ = [
    "PlayEvent",
    "PlayEventKind",
    "PlayOutcome",
    "PlayPool",
    "PlayRequest",
    "PlayResult",
    "PlayStats",
    "Transport",
]

_log = logging.getLogger(__name__)

# What of our environment Ansible gets. The rest may hold secrets, or an operator's own settings.
_KEPT = ("PATH", "HOME", "USER", "LOGNAME", "LANG", "LC_ALL", "TZ", "TMPDIR", "SSH_AUTH_SOCK", "VIRTUAL_ENV")
_REBOOT = Path(__file__).resolve().parent.parent / "playbooks" / "reboot.yml"
_KEPT_OF_RUNNER = ("ANSIBLE_", "AWX_", "RUNNER_")

# Settings of every play, wherever it runs.
_COMMON = {
    "ANSIBLE_GATHERING": "explicit",
    "ANSIBLE_CACHE_PLUGIN": "memory",
    "ANSIBLE_NOCOWS": "True",
    "ANSIBLE_NOCOLOR": "True",
    "ANSIBLE_LOCALHOST_WARNING": "False",
    "ANSIBLE_DEPRECATION_WARNINGS": "False",
    "ANSIBLE_SHOW_CUSTOM_STATS": "False",
}


@dataclass(frozen=True, slots=True)
class PlayResult:
    """How a play went. `changed` counts changed tasks, `seconds` is wall time without the queue."""

    outcome: PlayOutcome
    changed: int
    seconds: float
    stats: PlayStats
    failed_role: str | None = None
    failed_task: str | None = None
    message: str = ""

    @property
    def ok(self) -> bool:
        """True where every task ended well and none was told not to mind."""
        return self.outcome is PlayOutcome.OK

    @property
    def unreachable(self) -> bool:
        """True where the node could not be reached or was lost."""
        return self.outcome is PlayOutcome.UNREACHABLE

    def raise_for_outcome(self) -> None:
        """Raise the PlayError that this outcome means; nothing for a good one."""
        match self.outcome:
            case PlayOutcome.FAILED:
                raise PlayFailed(self.failed_role, self.failed_task, self.message)
            case PlayOutcome.UNREACHABLE:
                raise PlayUnreachable(self.failed_task, self.message)
            case PlayOutcome.TIMED_OUT:
                raise PlayTimeout(self.seconds, self.failed_role, self.failed_task)
            case PlayOutcome.CANCELED:
                raise PlayCanceled("the play was called off")
            case PlayOutcome.OK:
                return


class PlayPool:
    """Runs plays in at most `slots` threads at once; by default one and a half a core."""

    def __init__(self, slots: int | None = None) -> None:
        self.slots = slots or max(1, (os.cpu_count() or 1) * 3 // 2)
        self._threads = ThreadPoolExecutor(self.slots, thread_name_prefix="play")
        self._bundle = Bundle()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_exc: object) -> None:
        await self.close()

    async def close(self) -> None:
        """Wait for running plays and end the threads."""
        await asyncio.get_running_loop().run_in_executor(None, self._threads.shutdown)
        self._bundle.close()

    async def run_play(
        self,
        request: PlayRequest,
        *,
        on_event: Callable[[PlayEvent], None],
        cancel: asyncio.Event | None = None,
    ) -> PlayResult:
        """Run one play. `on_event` is called on the event loop and must be quick.

        Setting `cancel`, or cancelling the task, ends the play and all its processes first.
        """
        loop = asyncio.get_running_loop()
        play = _Play(request, self._bundle, lambda event: loop.call_soon_threadsafe(on_event, event))
        running = loop.run_in_executor(self._threads, play.run)
        called_off = asyncio.ensure_future(_wait_for(cancel))
        waited_for: set[asyncio.Future[Any]] = {running, called_off}
        try:
            await asyncio.wait(waited_for, return_when=asyncio.FIRST_COMPLETED)
            if not running.done():
                play.stop(PlayOutcome.CANCELED)
            return await asyncio.shield(running)
        except asyncio.CancelledError:
            play.stop(PlayOutcome.CANCELED)
            with contextlib.suppress(Exception):
                await asyncio.shield(running)
            raise
        finally:
            called_off.cancel()


async def _wait_for(cancel: asyncio.Event | None) -> None:
    await (cancel.wait() if cancel is not None else asyncio.Event().wait())


class _Play:
    """One run, in one thread of the pool; `stop` may be called from any thread."""

    def __init__(self, request: PlayRequest, bundle: Bundle, tell: Callable[[PlayEvent], object]) -> None:
        self._request = request
        self._bundle = bundle
        self._tell = tell
        self._course = Course()
        self._lock = threading.Lock()
        self._lifeline: int | None = None
        self._stopped: PlayOutcome | None = None
        self._lost = ""

    def stop(self, why: PlayOutcome) -> None:
        """End the play by closing its lifeline; the first reason given counts."""
        with self._lock:
            self._stopped = self._stopped or why
            if self._lifeline is not None:
                os.close(self._lifeline)
                self._lifeline = None

    def run(self) -> PlayResult:
        """Run to the end. Raises AnsibleMissing and OSError; a failed play is a result."""
        started = time.monotonic()
        if self._stopped:
            return self._result(0.0, None)
        self._request.artifacts.mkdir(parents=True, exist_ok=True)
        with (self._request.artifacts / "ansible.log").open("a", encoding="utf-8") as log:
            exit_status = self._run_to_end(log.write)
        return self._result(time.monotonic() - started, exit_status)

    def _run_to_end(self, write: Callable[[str], object]) -> int | None:
        timer = threading.Timer(self._request.timeout_s, self.stop, [PlayOutcome.TIMED_OUT])
        timer.daemon = True
        timer.start()
        try:
            if self._request.transport is Transport.SSH:
                return self._run_here(self._request, write)
            exit_status = self._run_there(write)
            if exit_status != ansible_worker.REBOOT:
                return exit_status
            # A node can't wait for its own reboot: that play is ours, and then it goes on with its own.
            reboot = replace(self._request, playbook=_REBOOT, transport=Transport.SSH, tags=(), check=False)
            exit_status = self._run_here(reboot, write)
            return self._run_there(write) if exit_status == 0 else exit_status
        finally:
            timer.cancel()

    def _run_here(self, request: PlayRequest, write: Callable[[str], object]) -> int | None:
        with self._alive() as (private, lifeline):
            if self._stopped:
                return None
            config = _config(request, private)
            config.prepare()
            config.env = _environment(config.env) | _settings(request, private)
            config.command = _guarded(_playbook(config.command), lifeline)
            runner = Runner(config, event_handler=lambda raw: self._take(raw, write))
            runner.run()
            return runner.rc

    def _run_there(self, write: Callable[[str], object]) -> int | None:
        with self._alive() as (private, lifeline):
            if self._stopped:
                return None
            ended = ansible_worker.run(
                self._request,
                private,
                self._bundle,
                guarded=lambda command: _guarded(command, lifeline),
                settings=_COMMON,
                take=lambda raw: self._take(raw, write),
            )
        if ended.why:
            self._course.notes.append(f"ERROR {ended.why}")
        if ended.status == ansible_worker.UNREACHABLE:
            self._lost = ended.why or "ssh gave no reason"
        return ended.status

    @contextlib.contextmanager
    def _alive(self) -> Iterator[tuple[Path, Path]]:
        """Give a folder, and the lifeline in it, which ends what hangs on it when it is closed."""
        self._course.played = False
        # Short: the path of an SSH control socket must fit 108 bytes.
        with tempfile.TemporaryDirectory(prefix="mp-", ignore_cleanup_errors=True) as folder:
            lifeline = Path(folder) / "lifeline"
            os.mkfifo(lifeline, 0o600)
            with self._lock:
                if not self._stopped:
                    self._lifeline = os.open(lifeline, os.O_RDWR)
            try:
                yield Path(folder), lifeline
            finally:
                with self._lock:
                    if self._lifeline is not None:
                        os.close(self._lifeline)
                        self._lifeline = None

    def _take(self, raw: Mapping[str, Any], write: Callable[[str], object]) -> bool:
        """Handle one event of ansible-runner; False: it writes none of its own files."""
        text = str(raw.get("stdout") or "")
        if text.strip():
            write(text.replace("\r\n", "\n") + "\n")
        self._course.add(read_stats(raw))
        event = read_event(raw)
        if event is not None:
            self._course.take(event)
            self._tell(event)
        return False

    def _result(self, seconds: float, exit_status: int | None) -> PlayResult:
        course = self._course
        stats = course.stats or PlayStats()
        outcome, about, message = self._explain(stats, exit_status)
        return PlayResult(
            outcome=outcome,
            changed=stats.changed,
            seconds=seconds,
            stats=stats,
            failed_role=about.role if about else None,
            failed_task=about.task if about else None,
            message=message,
        )

    def _explain(
        self, stats: PlayStats, exit_status: int | None
    ) -> tuple[PlayOutcome, PlayEvent | None, str]:
        course = self._course
        if self._stopped:
            return self._stopped, course.last, "ended before the play was done"
        failure = course.failure
        cut = failure is not None and failure.kind is PlayEventKind.UNREACHABLE
        if self._lost or stats.unreachable or cut:
            message = self._lost or (failure.message if failure else "no SSH")
            return PlayOutcome.UNREACHABLE, failure or course.last, message
        if stats.failed:
            return PlayOutcome.FAILED, failure, failure.message if failure else "no message"
        if stats.ignored:
            # Nothing of ours ignores errors; a playbook that does must not make a node look configured.
            return PlayOutcome.FAILED, course.ignored, "failed, and the play ignored it"
        if exit_status == 0 and course.played:
            return PlayOutcome.OK, None, ""
        return PlayOutcome.FAILED, failure, self._no_play(exit_status)

    def _no_play(self, exit_status: int | None) -> str:
        if exit_status == ansible_worker.REBOOT:
            return "a role asks for a second reboot"
        notes = [note for note in self._course.notes if "ERROR" in note] or self._course.notes
        what = f"ansible-playbook exited with {exit_status}" if exit_status else "the node was not played"
        return one_line(": ".join([what, *notes]))


def _config(request: PlayRequest, private: Path) -> RunnerConfig:
    (private / "inventory.json").write_text(json.dumps(request.inventory()), encoding="utf-8")
    for name in ("group_vars", "host_vars"):
        # Ansible looks for them beside the inventory.
        if request.vars_folder is not None and (request.vars_folder / name).is_dir():
            (private / name).symlink_to((request.vars_folder / name).resolve())
    variables = private / "vars.json"
    variables.touch(0o600)
    variables.write_text(json.dumps(dict(request.extra_vars)), encoding="utf-8")
    return RunnerConfig(
        str(private),
        playbook=str(request.playbook.resolve()),
        inventory=str(private / "inventory.json"),
        extravars=str(variables) if request.extra_vars else None,
        forks=request.forks,
        cmdline=request.options() or None,
        settings={"pexpect_timeout": 1},
        fact_cache_type="memory",
        quiet=True,
        suppress_env_files=True,
        suppress_output_file=True,
    )


def _settings(request: PlayRequest, private: Path) -> dict[str, str]:
    request.known_hosts.parent.mkdir(parents=True, exist_ok=True)
    own = private / "ansible.cfg"
    own.write_text("[defaults]\n", encoding="utf-8")
    ssh = (
        "-o ControlMaster=auto -o ControlPersist=60s -o BatchMode=yes -o IdentitiesOnly=yes"
        " -o ServerAliveInterval=10 -o ServerAliveCountMax=3"
        " -o StrictHostKeyChecking=accept-new -o HashKnownHosts=no"
        f" -o UserKnownHostsFile={request.known_hosts.resolve()} -o GlobalKnownHostsFile=/dev/null"
    )
    return _COMMON | {
        "ANSIBLE_CONFIG": str(own),
        "ANSIBLE_HOME": str(private / "home"),
        "ANSIBLE_LOCAL_TEMP": str(private / "tmp"),
        "ANSIBLE_SSH_ARGS": ssh,
        "ANSIBLE_SSH_CONTROL_PATH_DIR": str(private / "cp"),
        "ANSIBLE_PIPELINING": "True",
        "ANSIBLE_HOST_KEY_CHECKING": "True",
        "ANSIBLE_TIMEOUT": "15",
        "ANSIBLE_REMOTE_TMP": "/tmp",  # noqa: S108 - on the node, where Ansible makes a folder of its own in it
    }


def _environment(prepared: Mapping[str, str]) -> dict[str, str]:
    """Keep what Ansible needs and what the runner added; an operator's own ANSIBLE_* stay out."""
    return {
        name: value
        for name, value in prepared.items()
        if name in _KEPT or (name.startswith(_KEPT_OF_RUNNER) and os.environ.get(name) != value)
    }


def _playbook(command: list[str]) -> list[str]:
    beside = Path(sys.executable).with_name(command[0])
    program = str(beside) if beside.exists() else shutil.which(command[0])
    if program is None:
        raise AnsibleMissing(f"no {command[0]} beside {sys.executable} or on PATH")
    return [program, *command[1:]]


def _guarded(command: list[str], lifeline: Path) -> list[str]:
    guard = str(Path(ansible_guard.__file__).resolve())
    program = shutil.which(command[0]) or command[0]
    return [sys.executable, "-I", "-S", guard, str(lifeline), program, *command[1:]]
