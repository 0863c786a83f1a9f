"""Why a play did not end well. The node is named by whoever runs the play."""

from __future__ import annotations


class PlayError(Exception):
    """Base: a play on one node did not end well."""


class PlayFailed(PlayError):
    """A task failed. `role` is None for a task outside roles or a playbook that could not be read."""

    def __init__(self, role: str | None, task: str | None, message: str) -> None:
        where = " : ".join(part for part in (role, task) if part) or "the playbook"
        super().__init__(f"{where} failed: {message}")
        self.role = role
        self.task = task
        self.message = message


class PlayUnreachable(PlayError):
    """The node could not be reached, or was lost, by SSH."""

    def __init__(self, task: str | None, message: str) -> None:
        during = f" during {task}" if task else ""
        super().__init__(f"not reachable by SSH{during}: {message}")
        self.task = task
        self.message = message


class PlayTimeout(PlayError):
    """The play ran past its limit and was ended; `task` is what it was doing."""

    def __init__(self, seconds: float, role: str | None, task: str | None) -> None:
        where = " : ".join(part for part in (role, task) if part) or "its first task"
        super().__init__(f"not finished after {seconds:.0f} s, in {where}")
        self.seconds = seconds
        self.role = role
        self.task = task


class PlayCanceled(PlayError):
    """The play was called off before its end."""


class AnsibleMissing(PlayError):
    """There is no ansible-playbook beside this Python or on PATH."""
