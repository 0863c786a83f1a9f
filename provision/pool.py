"""Pools, and their mirror in MAAS. The store decides; MAAS only shows."""

from __future__ import annotations

from collections.abc import Sequence

from inventory.errors import InventoryError
from provision.access import Access
from provision.maas.errors import MaasError


async def mirror(access: Access, nodes: Sequence[str]) -> list[str]:
    """Show the nodes' pools in MAAS as resource pools. Returns what could not be done, in words.

    The store is the truth: a MAAS that is away or refuses does not undo a decision, and the next
    mirror of the node brings MAAS up to date.
    """
    problems: list[str] = []
    states = {name: access.store.node(name) for name in nodes}
    try:
        async with access.maas() as maas:
            for state in states.values():
                if not state.system_id:
                    continue
                wanted = str(state.pool) if state.pool else "default"
                await maas.ensure_pool(wanted, f"muster: {wanted}")
                await maas.update(state.system_id, pool=wanted)
    except (MaasError, InventoryError) as error:
        problems.append(f"MAAS does not show the pool of {', '.join(nodes)} yet: {error}")
    return problems
