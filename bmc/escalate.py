"""Power for BMCs that take a command and do nothing: first the ordinary way, then the mains."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass

from bmc.capability import BmcTarget, PowerAction, PowerState
from bmc.drivers import connect, connect_redfish
from bmc.errors import Busy, PowerNotReached, Unreachable
from bmc.ipmi.endpoint import Endpoint

BMC_BACK_S = 300.0

_POLL_S = 1.0
_ENDS_ON = {PowerAction.ON, PowerAction.CYCLE, PowerAction.RESET}


@dataclass(frozen=True, slots=True)
class PowerOutcome:
    """The state reached, and whether it took the mains."""

    state: PowerState
    ac_cycled: bool


async def set_power(
    target: BmcTarget, action: PowerAction, *, wait_s: float = 60.0, endpoint: Endpoint | None = None
) -> PowerOutcome:
    """Act; where the BMC accepts and nothing happens, and the node is to end on, cut the mains.

    Raises PowerNotReached where that does not help either, Unsupported where it cannot be done.
    """
    try:
        async with connect(target, endpoint=endpoint) as bmc:
            return PowerOutcome(await bmc.set_power(action, wait_s=wait_s), ac_cycled=False)
    except PowerNotReached:
        if action not in _ENDS_ON:
            raise
    async with connect_redfish(target, endpoint=endpoint) as web:
        await web.ac_cycle()
    return PowerOutcome(await _on_again(target, wait_s, endpoint), ac_cycled=True)


async def _on_again(target: BmcTarget, wait_s: float, endpoint: Endpoint | None) -> PowerState:
    """Wait for the BMC, which lost its own power too, and see the node on."""
    loop = asyncio.get_running_loop()
    end = loop.time() + BMC_BACK_S
    while True:
        try:
            async with connect(target, endpoint=endpoint) as bmc:
                return await bmc.set_power(PowerAction.ON, wait_s=wait_s)
        except (Unreachable, Busy):
            if loop.time() + _POLL_S > end:
                raise
        await asyncio.sleep(_POLL_S)
