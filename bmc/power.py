"""Power actions by level: act, then look until the wanted state is there. The same for every driver."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from bmc.capability import PowerAction, PowerState
from bmc.errors import PowerNotReached, Unreachable

_REACHES = {
    PowerAction.ON: PowerState.ON,
    PowerAction.OFF: PowerState.OFF,
    PowerAction.SOFT: PowerState.OFF,
    PowerAction.RESET: PowerState.ON,
}
_FIRST_POLL_S, _LAST_POLL_S = 0.1, 1.0


@dataclass(frozen=True, slots=True)
class Switch:
    """How one BMC is asked for its node's power and told to change it."""

    node: str
    host: str
    read: Callable[[], Awaitable[PowerState]]
    act: Callable[[PowerAction], Awaitable[None]]

    async def set(self, action: PowerAction, wait_s: float) -> PowerState:
        """Act where needed and wait. A cycle is off, seen off, then on, seen on.

        Raises PowerNotReached after `wait_s` (each half of a cycle has its own).
        """
        if action is PowerAction.CYCLE:
            await self.set(PowerAction.OFF, wait_s)
            return await self.set(PowerAction.ON, wait_s)
        wanted = _REACHES[action]
        if action is not PowerAction.RESET and await self.read() is wanted:
            return wanted
        await self.act(action)
        return await self._wait(action, wanted, wait_s)

    async def _wait(self, action: PowerAction, wanted: PowerState, wait_s: float) -> PowerState:
        loop = asyncio.get_running_loop()
        end, pause = loop.time() + wait_s, _FIRST_POLL_S
        while True:
            try:
                if await self.read() is wanted:
                    return wanted
            except Unreachable:  # a BMC that shares its port with the node goes dark for a moment
                if loop.time() >= end:
                    raise
            if loop.time() + pause > end:
                raise PowerNotReached(self.node, self.host, action, wanted, wait_s)
            await asyncio.sleep(pause)
            pause = min(pause * 1.5, _LAST_POLL_S)
