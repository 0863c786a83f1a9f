"""From --nodes, --rack and --pool to nodes, and from a site that needs preparing to one that is ready."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Sequence

from inventory.model import Node
from inventory.nodeset import NodeSets
from provision.access import Access
from provision.errors import PrepareFailed
from provision.settings import Settings

NODES = "node set, for example 'r1-n[01-04]' or '@r1'; quote it"
RACK = "rack; may be repeated"
POOL = "pool: reliable, spare, quarantine, repair, retired"
OUTPUT = "table, wide, json, yaml or nodeset"


def open_site(*, prepare: bool = False) -> Access:
    """Open the site; with `prepare`, first run the site's own preparation.

    Raises SiteFileError, PrepareFailed and what opening the store raises.
    """
    access = Access.open(Settings.from_environment())
    if prepare and access.site.prepare:
        _prepare(access)
    return access


def _prepare(access: Access) -> None:
    words = [sys.executable if word == "python" else word for word in access.site.prepare]
    environment = {**os.environ, "MUSTER_STATE": str(access.settings.state)}
    try:
        done = subprocess.run(
            words, env=environment, stdin=subprocess.DEVNULL, stdout=sys.stderr, check=False
        )
    except OSError as error:
        raise PrepareFailed(access.site.name, " ".join(access.site.prepare), str(error)) from error
    if done.returncode != 0:
        reason = f"exit status {done.returncode}; it said why above"
        raise PrepareFailed(access.site.name, " ".join(access.site.prepare), reason)


def select(access: Access, nodes: str, rack: Sequence[str], pool: str) -> tuple[Node, ...]:
    """Return the nodes that all given selectors name. Raises what NodeSets.select raises.

    An option that was given empty is a selector that names nothing, not one that is absent.
    """
    return node_sets(access).select(nodes or None, tuple(rack), pool or None)


def select_or_all(access: Access, nodes: str, rack: Sequence[str], pool: str) -> tuple[Node, ...]:
    """Like `select`, for commands that only look: no selector means every node of the site."""
    if not nodes and not rack and not pool:
        return access.site.nodes
    return select(access, nodes, rack, pool)


def node_sets(access: Access) -> NodeSets:
    """Return the site's node sets, with pools as the store knows them now."""

    def pools() -> dict[str, str | None]:
        return {name: str(state.pool) if state.pool else None for name, state in access.store.nodes().items()}

    return NodeSets(access.site, pools)
