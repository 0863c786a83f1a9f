"""What can keep a ticket from being made. A collector that fails does not: its failure is in the ticket."""

from __future__ import annotations

from provision.errors import ProvisionError


class TicketError(ProvisionError):
    """Base: one node's ticket was not made, and nothing of it was left behind."""

    def __init__(self, node: str, what: str) -> None:
        super().__init__(f"{node}: no ticket was made: {what}")
        self.node = node


class SecretInTicket(TicketError):
    """A file of the finished ticket holds a secret. `secret` is its reference, never its value."""

    def __init__(self, node: str, file: str, secret: str) -> None:
        super().__init__(node, f"{file} holds {secret}")
        self.file = file
        self.secret = secret


class TicketTooLarge(TicketError):
    """Even with every log cut the ticket is above its limit, in bytes."""

    def __init__(self, node: str, size: int, limit: int) -> None:
        super().__init__(node, f"it has {size} bytes with every log cut, and may have {limit}")
        self.size = size
        self.limit = limit
