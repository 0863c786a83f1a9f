"""Shows pools to Slurm: what is not in service gets no jobs, and what Muster drained gets them again.

A node that somebody else drained stays so: automation does not undo a human.
"""

from __future__ import annotations

from collections.abc import Mapping

from inventory.admission import HELD
from inventory.model import Pool
from inventory.records import NodeState
from provision import slurm
from provision.errors import SlurmFailed


async def show(states: Mapping[str, NodeState]) -> dict[str, str]:
    """Drain and resume nodes as their pools say. Returns problems, in words, by node.

    What Slurm does not know is left out: it may be added there after it was admitted here.
    """
    try:
        found = await slurm.look(sorted(states))
        known = {name: state for name, state in states.items() if name not in found.unknown}
        wanted = {name: reason(state) for name, state in known.items()}
        to_drain = {name: why for name, why in wanted.items() if why and name not in found.drained}
        for why in sorted(set(to_drain.values())):
            await slurm.drain(sorted(name for name in to_drain if to_drain[name] == why), why)
        await slurm.resume(sorted(name for name in wanted if not wanted[name] and name in found.ours))
    except SlurmFailed as error:
        return dict.fromkeys(states, f"Slurm does not show its pool yet: {error.reason}")
    return {}


def reason(state: NodeState) -> str:
    """Return why a node gets no jobs, or an empty text where it is in service, which a spare is not."""
    if state.pool is Pool.RELIABLE:
        return ""
    why = f": {state.pool_why}" if state.pool in HELD else ""
    return f"{state.pool or 'in no pool'}{why}"
