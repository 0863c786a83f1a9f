"""The ways to a node that collectors share: a login at its BMC, and SSH."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from typing import Generic, Protocol, TypeVar

from bmc.errors import BmcError
from inventory.errors import SecretMissing
from inventory.model import Node
from provision import ssh
from provision.access import Access
from provision.errors import BadRequest, SshFailed
from provision.ssh import SshResult

T = TypeVar("T")

_PROBE_S = 20.0


class Login(Generic[T]):
    """A login that is made when first needed, and made again after one was lost.

    One that was refused or not answered is not tried again: each collector is told the same.
    """

    def __init__(self, open_: Callable[[], AbstractAsyncContextManager[T]]) -> None:
        self._open = open_
        self._entered: AbstractAsyncContextManager[T] | None = None
        self._driver: T | None = None
        self._failure: BmcError | SecretMissing | None = None
        self._turn = asyncio.Lock()

    async def get(self) -> T:
        """Return the driver. Raises BmcError, SecretMissing."""
        async with self._turn:
            if self._failure is not None:
                raise self._failure
            if self._driver is None:
                try:
                    entering = self._open()
                    self._driver = await entering.__aenter__()
                except (BmcError, SecretMissing) as exc:
                    self._failure = exc
                    raise
                self._entered = entering
            return self._driver

    async def close(self) -> None:
        """Log out where logged in."""
        async with self._turn:
            entered, self._entered, self._driver = self._entered, None, None
            if entered is not None:
                with contextlib.suppress(BmcError, OSError):  # what was learned counts, not how it ended
                    await entered.__aexit__(None, None, None)


class HostDead(Exception):
    """The node's operating system cannot be asked. `reason` says how that shows."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


class Host(Protocol):
    """A way to run commands on the node."""

    async def run(self, command: list[str], *, timeout_s: float, limit: int = ...) -> SshResult:
        """Run a command as root. Raises HostDead, SshFailed."""
        ...


class SshHost:
    """SSH to a node; whether it answers at all is found out once."""

    def __init__(self, access: Access, node: Node) -> None:
        self._access = access
        self._node = node
        self._probe: asyncio.Task[str] | None = None

    async def run(self, command: list[str], *, timeout_s: float, limit: int = 64 << 20) -> SshResult:
        if self._probe is None:
            self._probe = asyncio.create_task(self._ask())
        dead = await asyncio.shield(self._probe)
        if dead:
            raise HostDead(dead)
        words = ["sudo", "-n", *command] if self._access.site.ssh.become else command
        return await ssh.run(self._access.ssh(self._node), words, timeout_s=timeout_s, limit=limit)

    async def _ask(self) -> str:
        """Return why the node cannot be asked, or nothing where it can."""
        try:
            await ssh.run(self._access.ssh(self._node), ["true"], timeout_s=_PROBE_S)
        except SshFailed as exc:
            return f"ssh: {exc.reason.removeprefix('ssh: ')}"
        except (BadRequest, SecretMissing) as exc:
            return str(exc)
        return ""
