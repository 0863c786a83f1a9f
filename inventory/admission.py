"""Who may move a node from pool to pool, and when. Pure rules; the store asks them inside its transaction."""

from __future__ import annotations

from inventory.errors import HeldByHuman, NotAdmissible
from inventory.model import Pool, Stage
from inventory.records import AUTOMATION, Answer, NodeState

ADMITTED = frozenset({Pool.RELIABLE, Pool.SPARE})
HELD = frozenset({Pool.QUARANTINE, Pool.REPAIR, Pool.RETIRED})


def check_move(state: NodeState, pool: Pool | None, *, by: str) -> None:
    """Pass if `by` may put the node into `pool`. Raises HeldByHuman or NotAdmissible."""
    held = state.pool in HELD and state.pool_by != AUTOMATION
    if by == AUTOMATION and held and pool != state.pool:
        raise HeldByHuman(
            state.name, str(state.pool), state.pool_by or "?", state.pool_why or "no reason given"
        )
    if pool in ADMITTED:
        reason = why_not_admitted(state)
        if reason is not None:
            raise NotAdmissible(state.name, reason)


def why_not_admitted(state: NodeState) -> str | None:
    """Return why the node may not join an admitted pool, or None if it may."""
    stale = why_stale(state)
    if stale is not None:
        return stale
    if state.last_verdict is None or state.last_verdict_at is None:
        return "the gate has not judged it"
    if state.last_verdict is not Answer.YES:
        return f"the gate's last answer is {state.last_verdict}"
    if state.doubted_at is not None and state.last_verdict_at <= state.doubted_at:
        return f"the gate has not judged it since {state.doubt}"
    return None


def why_stale(state: NodeState) -> str | None:
    """Return what a stay in an admitted pool cannot outlast, or None.

    A later `no`, or a failed stage, is not among them: whether those take a node out is for
    the circuit breaker to say.
    """
    if state.stage is not Stage.VERIFIED:
        return f"its stage is {state.stage}, not verified"
    judged = state.last_verdict_at
    for label, when in (("deploy", state.deployed_at), ("power loss", state.last_power_loss_at)):
        if when is not None and (judged is None or judged <= when):
            return f"the gate has not judged it since its last {label}"
    return None
