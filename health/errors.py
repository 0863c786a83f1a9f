"""What can go wrong while evidence is read."""

from __future__ import annotations

from pathlib import Path


class HealthError(Exception):
    """Base of all errors of this package."""


class EvidenceBroken(HealthError):
    """The bytes are not the whole, unchanged evidence that was asked for."""

    def __init__(self, reason: str) -> None:
        super().__init__(f"evidence cannot be used: {reason}")
        self.reason = reason


class UnknownCheck(HealthError):
    """A check was asked for by an id that the catalogue does not hold."""

    def __init__(self, check: str) -> None:
        super().__init__(f"no check is called {check}")
        self.check = check


class Unreadable(HealthError):
    """A tool's output is not of the form that tool prints when it works."""

    def __init__(self, what: str, reason: str) -> None:
        super().__init__(f"{what} cannot be read: {reason}")
        self.what = what
        self.reason = reason


class NotCollected(HealthError):
    """An item that a check needs did not come back whole."""

    def __init__(self, item: str, reason: str) -> None:
        super().__init__(reason)
        self.item = item
        self.reason = reason


class SamplesUnreadable(HealthError):
    """A folder of samples has no usable index."""

    def __init__(self, path: Path, reason: str) -> None:
        super().__init__(f"samples cannot be read from {path}: {reason}")
        self.path = path
        self.reason = reason
