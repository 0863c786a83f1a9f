"""What goes wrong in the lab MAAS, and what it refuses on purpose."""

from __future__ import annotations

Refused = dict[str, list[str]] | str


class LabMaasError(Exception):
    """Base of the lab MAAS's own errors."""


class Refusal(LabMaasError):
    """An answer that is not a success: its HTTP status and the body that MAAS writes."""

    def __init__(self, status: int, body: Refused = "", *, content_type: str | None = None) -> None:
        super().__init__(f"{status}: {body}")
        self.status = status
        self.body = body
        self.content_type = content_type


class PowerError(LabMaasError):
    """A BMC did not do what it was told."""

    def __init__(self, hostname: str, action: str, reason: str) -> None:
        super().__init__(f"power {action} of {hostname}: {reason}")
        self.hostname = hostname
        self.action = action
        self.reason = reason


class BadSnapshot(LabMaasError):
    """The file with a former lab's memory cannot be read."""

    def __init__(self, file: str, what: str) -> None:
        super().__init__(f"{file} {what}")
        self.file = file


class UnknownFault(LabMaasError):
    """A fault was asked for that does not exist."""

    def __init__(self, name: str, known: tuple[str, ...]) -> None:
        super().__init__(f"no fault {name!r}; known: {', '.join(known)}")
        self.name = name


class UnknownMachine(LabMaasError):
    """A fault names a machine that MAAS does not have."""

    def __init__(self, name: str) -> None:
        super().__init__(f"no machine {name!r}")
        self.name = name
