"""Who may move a node from pool to pool, and when. Pure rules; the store asks them inside its transaction."""

from __future__ import annotations

from datetime import timedelta

from inventory.errors import HeldByHuman, NotAdmissible
from inventory.model import Pool, Stage
from inventory.records import AUTOMATION, Allocation, Answer, NodeState

ADMITTED = frozenset({Pool.RELIABLE, Pool.SPARE})
HELD = frozenset({Pool.QUARANTINE, Pool.REPAIR, Pool.RETIRED})
BREAKER_WINDOW = timedelta(hours=1)
_BREAKER_LEAST = 2  # nodes; one alone never trips it, however small the pool
_BREAKER_PERCENT = 10


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


def why_not_free(
    state: NodeState, allocation: Allocation | None, *, pool: Pool = Pool.RELIABLE
) -> str | None:
    """Return why a node of `pool` may not be handed out, or None if it may."""
    if allocation is not None:
        return f"it is allocated to {allocation.name} by {allocation.who}"
    if state.pool is not pool:
        return f"it is in {state.pool}, not {pool}" if state.pool else "it is in no pool"
    if state.in_stage is not None:
        return f"a run brings it to {state.in_stage}"
    return why_not_admitted(state)


def trips_breaker(left: int, pool: int) -> bool:
    """Tell whether `left` nodes are too many to have left a reliable pool of `pool` within the window."""
    return left >= _BREAKER_LEAST and left * 100 > pool * _BREAKER_PERCENT
