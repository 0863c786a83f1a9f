"""How a command is described, looked up and run."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

from lab.bmc.bmc import Bmc
from lab.bmc.ipmi.message import Completion, Refusal
from lab.bmc.ipmi.session import Session
from lab.bmc.spec import Privilege

LAN_CHANNEL = 1
THIS_CHANNEL = 0x0E


@dataclass(frozen=True, slots=True)
class Request:
    """One command; `session` is None before a login."""

    bmc: Bmc
    netfn: int
    command: int
    data: bytes
    session: Session | None

    def in_session(self) -> Session:
        if self.session is None:
            raise Refusal(Completion.INSUFFICIENT_PRIVILEGE)
        return self.session

    def channel(self, index: int = 0) -> int:
        """Return the channel that a data byte names. Raises Refusal for any but the LAN."""
        number = self.data[index] & 0x0F
        if number not in (LAN_CHANNEL, THIS_CHANNEL):
            raise Refusal(Completion.INVALID_FIELD)
        return LAN_CHANNEL


Run = Callable[[Request], bytes]


@dataclass(frozen=True, slots=True)
class Command:
    """One row: who may send it, how long its data must be, what answers it.

    `privilege` None means that it is answered outside a session too.
    """

    netfn: int
    number: int
    privilege: Privilege | None
    least: int
    run: Run


class CommandTable:
    """All commands that the BMC knows."""

    def __init__(self, commands: Iterable[Command]) -> None:
        self._rows: dict[tuple[int, int], Command] = {}
        for command in commands:
            key = command.netfn, command.number
            if key in self._rows:
                raise ValueError(f"command {command.netfn:#x} {command.number:#x} stands twice")
            self._rows[key] = command

    def __iter__(self) -> Iterator[tuple[int, int]]:
        return iter(self._rows)

    def execute(self, request: Request) -> bytes:
        """Run a command and return completion code and data."""
        try:
            row = self._admit(request)
            return bytes((Completion.OK,)) + row.run(request)
        except Refusal as refusal:
            return bytes((refusal.code,))

    def _admit(self, request: Request) -> Command:
        """Return the row of a command that may be run now."""
        row = self._rows.get((request.netfn, request.command))
        session = request.session
        if session is None and (row is None or row.privilege is not None):
            raise Refusal(Completion.INSUFFICIENT_PRIVILEGE)
        if row is None:
            raise Refusal(Completion.INVALID_COMMAND)
        if session is not None and session.privilege < (row.privilege or 0):
            raise Refusal(Completion.INSUFFICIENT_PRIVILEGE)
        if len(request.data) < row.least:
            raise Refusal(Completion.LENGTH_INVALID)
        return row
