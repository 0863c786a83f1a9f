"""The site's MAAS as all stages of a process see it: two pools of connections, looks that are shared."""

from __future__ import annotations

from collections.abc import Callable
from typing import Self

from provision.maas.client import MaasClient
from provision.maas.model import Machine
from provision.maas.transport import Limits
from provision.maas.watch import MachineWatch

Connect = Callable[[Limits], MaasClient]

# A look is soon given up and repeated by whoever waits, so that a MAAS that is away is soon said.
_LOOKING = Limits(call_timeout_s=20.0, deadline_s=20.0, connections=4)
_ACTING = Limits(call_timeout_s=60.0, deadline_s=60.0)


class SiteMaas:
    """Opened once a process: `async with SiteMaas(connect) as maas`.

    A client a stage and a request a node would cost MAAS, and us, five hundred of each a round.
    """

    def __init__(
        self,
        connect: Connect,
        *,
        window_s: float = 0.25,
        looking: Limits = _LOOKING,
        acting: Limits = _ACTING,
    ) -> None:
        self._connect = connect
        self._window_s = window_s
        self._limits = (looking, acting)
        self._reader: MaasClient | None = None
        self._client: MaasClient | None = None
        self._watch: MachineWatch | None = None

    @property
    def client(self) -> MaasClient:
        """The client for acting calls and rare questions. Raises SecretMissing, MaasBadKey."""
        if self._client is None:
            # Made when first needed: a key that is missing fails the nodes that need MAAS, with its name.
            self._client = self._connect(self._limits[1])
        return self._client

    async def machine(self, system_id: str) -> Machine | None:
        """Return a machine as MAAS sees it now, None where MAAS has none. Raises MaasError."""
        if self._watch is None:
            self._reader = self._connect(self._limits[0])
            self._watch = MachineWatch(self._reader, window_s=self._window_s)
        return await self._watch.machine(system_id)

    async def close(self) -> None:
        """Close the connections; whoever still waits is cancelled."""
        if self._watch is not None:
            await self._watch.close()
        for client in (self._client, self._reader):
            if client is not None:
                await client.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_exc: object) -> None:
        await self.close()
