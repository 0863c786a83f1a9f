"""Commands that change where nodes stand: quarantine, release, retire, cancel."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Sequence

from inventory.admission import HELD
from inventory.model import Node, Pool
from inventory.nodeset import fold
from provision import guards, runs
from provision.access import Access
from provision.cli.command import command
from provision.cli.confirm import asking
from provision.cli.selection import NODES, POOL, RACK, open_site, select
from provision.errors import BadRequest
from provision.pools.mirror import mirror

_SELECT = {"nodes": NODES, "rack": RACK, "pool": POOL}
_REASON = {"reason": "why, for the record; required", "yes": "do not ask"}


def _require_reason(reason: str) -> None:
    if not reason.strip():
        raise BadRequest("--reason", "it needs a reason", "add --reason '...'")


@command({**_SELECT, **_REASON}, lists=("rack",))
def quarantine(
    nodes: str = "", rack: Sequence[str] = (), pool: str = "", reason: str = "", yes: bool = False
) -> None:
    """Take nodes out of use until a human releases them."""
    _require_reason(reason)
    _move(nodes, rack, pool, Pool.QUARANTINE, reason, yes)


@command({**_SELECT, **_REASON}, lists=("rack",))
def retire(
    nodes: str = "", rack: Sequence[str] = (), pool: str = "", reason: str = "", yes: bool = False
) -> None:
    """Take nodes out for good; bring-up and re-image leave them alone."""
    _require_reason(reason)
    _move(nodes, rack, pool, Pool.RETIRED, reason, yes)


@command({**_SELECT, **_REASON}, lists=("rack",))
def release(
    nodes: str = "", rack: Sequence[str] = (), pool: str = "", reason: str = "", yes: bool = False
) -> None:
    """Lift a hold. The nodes are in no pool then, and join one only through the gate."""
    _require_reason(reason)
    _move(nodes, rack, pool, None, reason, yes)


def _move(nodes: str, rack: Sequence[str], from_pool: str, to: Pool | None, reason: str, yes: bool) -> None:
    access = open_site(prepare=True)
    chosen = select(access, nodes, rack, from_pool)
    moving = [node for node in chosen if _would_move(access, node, to)]
    if moving:
        word = str(to) if to else "no pool"
        plan = f"{fold(node.name for node in moving)} goes to {word}."
        consent = guards.ask(access, moving, action=word, plan=plan, asking=asking(yes=yes, reason=reason))
        for name in consent.nodes:
            access.store.set_pool(name, to, by=consent.who, why=reason, serial=access.node(name).serial)
        for problem in asyncio.run(mirror(access, consent.nodes)):
            sys.stderr.write(f"note: {problem}\n")
    word = f"in {to}" if to else "released"
    sys.stdout.write(f"{fold(node.name for node in chosen)} {word}\n")


def _would_move(access: Access, node: Node, to: Pool | None) -> bool:
    state = access.store.node(node.name)
    if to is None:
        return state.pool in HELD
    # A hold by automation becomes a human's when a human asks for the same.
    return state.pool != to or state.pool_by != access.settings.who


@command({"run": "id of the run; required", "reason": "why, for the record", "yes": "do not ask"})
def cancel(run: str = "", reason: str = "", yes: bool = False) -> None:
    """Stop a run. Stages under way are stopped too; nodes stay where they are."""
    if not run:
        raise BadRequest("--run", "it needs the id of a run", "invoke runs")
    access = open_site()
    runs.known(access, run)
    nodes = [access.node(name) for name in access.store.run_nodes(run)]
    plan = f"this stops {run} ({len(nodes)} nodes)."
    guards.ask(access, nodes[:1], action="cancel", plan=plan, asking=asking(yes=yes, reason=reason))
    count = runs.cancel(access, run, access.settings.who, reason)
    sys.stdout.write(f"{run} cancelled, {count} parts were unfinished\n")
