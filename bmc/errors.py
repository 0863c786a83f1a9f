"""What can go wrong with one BMC. Facts are attributes; no message holds a secret.

Every leaf passes its own arguments to `Exception`, so errors survive pickling.
"""

from __future__ import annotations

from enum import StrEnum


class BmcError(Exception):
    """Base: something went wrong at, or on the way to, one BMC."""

    def __init__(self, node: str, host: str, *facts: object) -> None:
        super().__init__(node, host, *facts)
        self.node = node
        self.host = host

    def __str__(self) -> str:
        return f"{self.node}: BMC {self.host}: {self.what()}"

    def what(self) -> str:
        """Say what happened, without the node and the address."""
        return "failed"


class Unreachable(BmcError):
    """No answer, or none any more. `reason` says more where more is known."""

    def __init__(self, node: str, host: str, waited_s: float, reason: str = "") -> None:
        super().__init__(node, host, waited_s, reason)
        self.waited_s = waited_s
        self.reason = reason

    def what(self) -> str:
        tail = f" ({self.reason})" if self.reason else ""
        return f"no answer within {self.waited_s:.1f} s{tail}"


class Rejection(StrEnum):
    """Why a login was refused, as far as the BMC tells."""

    UNKNOWN_USER = "unknown user"
    WRONG_PASSWORD = "wrong password"  # noqa: S105  a reason, not a password
    WRONG_KG = "wrong BMC key (K_g)"
    USERNAME_TOO_LONG = "user name longer than the protocol's 16 bytes"
    PASSWORD_TOO_LONG = "password longer than the protocol's 20 bytes"  # noqa: S105  the same
    NOT_TOLD = "user name or password"


class AuthRejected(BmcError):
    """The login was refused. `rejection` tells an unknown user from a wrong password."""

    def __init__(self, node: str, host: str, username: str, rejection: Rejection) -> None:
        super().__init__(node, host, username, rejection)
        self.username = username
        self.rejection = rejection

    def what(self) -> str:
        return f"login as {self.username!r} refused: {self.rejection}"


class PrivilegeTooLow(BmcError):
    """The user exists but may not do this. `wanted` is a privilege level or an action."""

    def __init__(self, node: str, host: str, username: str, wanted: str) -> None:
        super().__init__(node, host, username, wanted)
        self.username = username
        self.wanted = wanted

    def what(self) -> str:
        return f"user {self.username!r} lacks the privilege for {self.wanted}"


class WrongSuite(BmcError):
    """No cipher suite in common. `answered` is what the BMC insisted on, where it said so."""

    def __init__(self, node: str, host: str, asked: tuple[int, ...], answered: str = "") -> None:
        super().__init__(node, host, asked, answered)
        self.asked = asked
        self.answered = answered

    def what(self) -> str:
        asked = ", ".join(str(suite) for suite in self.asked)
        tail = f"; it answered with {self.answered}" if self.answered else ""
        return f"none of the cipher suites {asked} accepted{tail}"


class Occupied(StrEnum):
    """What there is none left of."""

    SESSIONS = "no free session"
    CONSOLE = "console in use by another session"
    BMC = "BMC is busy or starting"
    TASK = "another task of this kind is running"


class Busy(BmcError):
    """Come back later. `retry_after_s` is the BMC's own word, where it gave one."""

    def __init__(self, node: str, host: str, occupied: Occupied, retry_after_s: float | None = None) -> None:
        super().__init__(node, host, occupied, retry_after_s)
        self.occupied = occupied
        self.retry_after_s = retry_after_s

    def what(self) -> str:
        return str(self.occupied)


class Unsupported(BmcError):
    """The BMC does not offer this: an answer, not a fault."""

    def __init__(self, node: str, host: str, feature: str) -> None:
        super().__init__(node, host, feature)
        self.feature = feature

    def what(self) -> str:
        return f"does not support {self.feature}"


class BadAnswer(BmcError):
    """The BMC answered with something that makes no sense."""

    def __init__(self, node: str, host: str, problem: str) -> None:
        super().__init__(node, host, problem)
        self.problem = problem

    def what(self) -> str:
        return f"answer makes no sense: {self.problem}"


class CommandRefused(BmcError):
    """A command came back with an error. `code` is IPMI's completion code or HTTP's status."""

    def __init__(self, node: str, host: str, command: str, code: int, text: str = "") -> None:
        super().__init__(node, host, command, code, text)
        self.command = command
        self.code = code
        self.text = text

    def what(self) -> str:
        tail = f": {self.text}" if self.text else ""
        code = f"{self.code:#04x}" if self.code < 0x100 else str(self.code)
        return f"refused {self.command} with {code}{tail}"


class PowerNotReached(BmcError):
    """The power command was taken but the wanted state did not come."""

    def __init__(self, node: str, host: str, action: str, wanted: str, waited_s: float) -> None:
        super().__init__(node, host, action, wanted, waited_s)
        self.action = action
        self.wanted = wanted
        self.waited_s = waited_s

    def what(self) -> str:
        return f"power {self.action} accepted, but not {self.wanted} after {self.waited_s:.0f} s"


class CertificateRefused(BmcError):
    """The TLS certificate is not the pinned one. Fingerprints are SHA-256, hex."""

    def __init__(self, node: str, host: str, expected: str, seen: str) -> None:
        super().__init__(node, host, expected, seen)
        self.expected = expected
        self.seen = seen

    def what(self) -> str:
        return f"TLS certificate has fingerprint {self.seen}, expected {self.expected}"


class TaskFailed(BmcError):
    """A task that the BMC ran for us ended badly."""

    def __init__(self, node: str, host: str, task: str, state: str, text: str = "") -> None:
        super().__init__(node, host, task, state, text)
        self.task = task
        self.state = state
        self.text = text

    def what(self) -> str:
        tail = f": {self.text}" if self.text else ""
        return f"task {self.task} ended {self.state}{tail}"


class PatternNotSeen(BmcError):
    """The console did not show what was waited for."""

    def __init__(self, node: str, host: str, pattern: str, waited_s: float) -> None:
        super().__init__(node, host, pattern, waited_s)
        self.pattern = pattern
        self.waited_s = waited_s

    def what(self) -> str:
        return f"console did not show {self.pattern!r} within {self.waited_s:.0f} s"


class DeadlinePassed(BmcError):
    """An action on one BMC took longer than it was given."""

    def __init__(self, node: str, host: str, deadline_s: float) -> None:
        super().__init__(node, host, deadline_s)
        self.deadline_s = deadline_s

    def what(self) -> str:
        return f"not done after {self.deadline_s:.0f} s"


class ActionFailed(BmcError):
    """An action on one BMC broke in a way that nobody foresaw; the cause is chained."""

    def __init__(self, node: str, host: str, kind: str) -> None:
        super().__init__(node, host, kind)
        self.kind = kind

    def what(self) -> str:
        return f"action broke with {self.kind}"


class RecordingFailed(BmcError):
    """The console could not be kept on our side, for example because the disk is full."""

    def __init__(self, node: str, host: str, folder: str, reason: str) -> None:
        super().__init__(node, host, folder, reason)
        self.folder = folder
        self.reason = reason

    def what(self) -> str:
        return f"console not kept in {self.folder}: {self.reason}"
