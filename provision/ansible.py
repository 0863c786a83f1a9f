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
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self

from ansible_runner.config.runner import RunnerConfig
from ansible_runner.runner import Runner

from provision import ansible_guard
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

__all__ = ["PlayEvent", "PlayEventKind", "PlayOutcome", "PlayPool", "PlayRequest", "PlayResult", "PlayStats"]

_log = logging.getLogger(__name__)

# What of our environment Ansible gets. The rest may hold secrets, or an operator's own settings.
_KEPT = ("PATH", "HOME", "USER", "LOGNAME", "LANG", "LC_ALL", "TZ", "TMPDIR", "SSH_AUTH_SOCK", "VIRTUAL_ENV")
_KEPT_OF_RUNNER = ("ANSIBLE_", "AWX_", "RUNNER_")


@dataclass(frozen=True, slots=True)
class PlayRequest:
    """One play on one node. `extra_vars` are written to disk: no secrets in them.

    `known_hosts` is the file that pins the node's host key: the first key seen is kept and another
    is refused, so whoever re-images the node gives a new file. `artifacts` is a folder that gets
    `ansible.log`. `vars_folder` is where the site keeps its `group_vars` and `host_vars`.
    """

    playbook: Path
    node: str
    address: str
    key_file: Path
    known_hosts: Path
    artifacts: Path
    port: int = 22
    user: str = "root"
    become: bool = True
    extra_vars: Mapping[str, object] = field(default_factory=dict)
    groups: tuple[str, ...] = ()
    vars_folder: Path | None = None
    tags: tuple[str, ...] = ()
    timeout_s: float = 1800.0
    check: bool = False
    forks: int = 1


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

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_exc: object) -> None:
        await self.close()

    async def close(self) -> None:
        """Wait for running plays and end the threads."""
        await asyncio.get_running_loop().run_in_executor(None, self._threads.shutdown)

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
        play = _Play(request, lambda event: loop.call_soon_threadsafe(on_event, event))
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

    def __init__(self, request: PlayRequest, tell: Callable[[PlayEvent], object]) -> None:
        self._request = request
        self._tell = tell
        self._course = Course()
        self._lock = threading.Lock()
        self._lifeline: int | None = None
        self._stopped: PlayOutcome | None = None

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
        # Short: the path of an SSH control socket must fit 108 bytes.
        with tempfile.TemporaryDirectory(prefix="mp-", ignore_cleanup_errors=True) as folder:
            private = Path(folder)
            self._request.artifacts.mkdir(parents=True, exist_ok=True)
            with (self._request.artifacts / "ansible.log").open("a", encoding="utf-8") as log:
                exit_status = self._run_in(private, log.write)
        return self._result(time.monotonic() - started, exit_status)

    def _run_in(self, private: Path, write: Callable[[str], object]) -> int | None:
        lifeline = private / "lifeline"
        os.mkfifo(lifeline, 0o600)
        config = _config(self._request, private)
        config.prepare()
        config.env = _environment(config.env) | _settings(self._request, private)
        config.command = _guarded(config.command, lifeline)
        with self._lock:
            if self._stopped:
                return None
            self._lifeline = os.open(lifeline, os.O_RDWR)
        timer = threading.Timer(self._request.timeout_s, self.stop, [PlayOutcome.TIMED_OUT])
        timer.daemon = True
        timer.start()
        try:
            runner = Runner(config, event_handler=lambda raw: self._take(raw, write))
            runner.run()
        finally:
            timer.cancel()
            with self._lock:
                if self._lifeline is not None:
                    os.close(self._lifeline)
                    self._lifeline = None
        return runner.rc

    def _take(self, raw: Mapping[str, Any], write: Callable[[str], object]) -> bool:
        """Handle one event of ansible-runner; False: it writes none of its own files."""
        text = str(raw.get("stdout") or "")
        if text.strip():
            write(text.replace("\r\n", "\n") + "\n")
        self._course.stats = read_stats(raw) or self._course.stats
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
        if stats.unreachable or (failure and failure.kind is PlayEventKind.UNREACHABLE):
            return PlayOutcome.UNREACHABLE, failure, failure.message if failure else "no SSH"
        if stats.failed:
            return PlayOutcome.FAILED, failure, failure.message if failure else "no message"
        if stats.ignored:
            # Nothing of ours ignores errors; a playbook that does must not make a node look configured.
            return PlayOutcome.FAILED, course.ignored, "failed, and the play ignored it"
        if exit_status != 0 or not (stats.ok or stats.skipped):
            notes = [note for note in course.notes if "ERROR" in note] or course.notes
            what = f"ansible-playbook exited with {exit_status}" if exit_status else "the node was not played"
            return PlayOutcome.FAILED, failure, one_line(": ".join([what, *notes]))
        return PlayOutcome.OK, None, ""


def _config(request: PlayRequest, private: Path) -> RunnerConfig:
    (private / "inventory.json").write_text(json.dumps(_inventory(request)), encoding="utf-8")
    for name in ("group_vars", "host_vars"):
        # Ansible looks for them beside the inventory.
        if request.vars_folder is not None and (request.vars_folder / name).is_dir():
            (private / name).symlink_to((request.vars_folder / name).resolve())
    variables = private / "vars.json"
    variables.touch(0o600)
    variables.write_text(json.dumps(dict(request.extra_vars)), encoding="utf-8")
    words = [word for word, on in (("--check", request.check),) if on]
    words += ["--tags", ",".join(request.tags)] if request.tags else []
    return RunnerConfig(
        str(private),
        playbook=str(request.playbook.resolve()),
        inventory=str(private / "inventory.json"),
        extravars=str(variables) if request.extra_vars else None,
        forks=request.forks,
        cmdline=" ".join(words) or None,
        settings={"pexpect_timeout": 1},
        fact_cache_type="memory",
        quiet=True,
        suppress_env_files=True,
        suppress_output_file=True,
    )


def _inventory(request: PlayRequest) -> dict[str, object]:
    host = {
        "ansible_host": request.address,
        "ansible_port": request.port,
        "ansible_user": request.user,
        "ansible_ssh_private_key_file": str(request.key_file.resolve()),
        "ansible_become": request.become,
        # Asking the node for its Python costs a round trip; every image has this one.
        "ansible_python_interpreter": "/usr/bin/python3",
    }
    groups: dict[str, object] = {name: {"hosts": {request.node: {}}} for name in request.groups}
    return {"all": {"hosts": {request.node: host}, "children": groups}}


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
    return {
        "ANSIBLE_CONFIG": str(own),
        "ANSIBLE_HOME": str(private / "home"),
        "ANSIBLE_LOCAL_TEMP": str(private / "tmp"),
        "ANSIBLE_SSH_ARGS": ssh,
        "ANSIBLE_SSH_CONTROL_PATH_DIR": str(private / "cp"),
        "ANSIBLE_PIPELINING": "True",
        "ANSIBLE_HOST_KEY_CHECKING": "True",
        "ANSIBLE_TIMEOUT": "15",
        "ANSIBLE_REMOTE_TMP": "/tmp",  # noqa: S108 - on the node, where Ansible makes a folder of its own in it
        "ANSIBLE_GATHERING": "explicit",
        "ANSIBLE_CACHE_PLUGIN": "memory",
        "ANSIBLE_NOCOWS": "True",
        "ANSIBLE_NOCOLOR": "True",
        "ANSIBLE_LOCALHOST_WARNING": "False",
        "ANSIBLE_DEPRECATION_WARNINGS": "False",
        "ANSIBLE_SHOW_CUSTOM_STATS": "False",
    }


def _environment(prepared: Mapping[str, str]) -> dict[str, str]:
    """Keep what Ansible needs and what the runner added; an operator's own ANSIBLE_* stay out."""
    return {
        name: value
        for name, value in prepared.items()
        if name in _KEPT or (name.startswith(_KEPT_OF_RUNNER) and os.environ.get(name) != value)
    }


def _guarded(command: list[str], lifeline: Path) -> list[str]:
    beside = Path(sys.executable).with_name(command[0])
    program = str(beside) if beside.exists() else shutil.which(command[0])
    if program is None:
        raise AnsibleMissing(f"no {command[0]} beside {sys.executable} or on PATH")
    guard = str(Path(ansible_guard.__file__).resolve())
    return [sys.executable, "-I", "-S", guard, str(lifeline), program, *command[1:]]
