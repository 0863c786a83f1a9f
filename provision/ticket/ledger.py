"""Which tickets were made: kept as events, so that the next ticket of a node or a serial names them."""

from __future__ import annotations

from inventory.model import Node
from inventory.records import Event
from inventory.store import Store

_KIND = "ticket"
_MOST = 5000


def record_ticket(store: Store, node: Node, *, who: str, file: str, sha256: str, component: str) -> None:
    """Note that a ticket was made. Raises what writing to the store raises."""
    about = f" about {component}" if component else ""
    store.event(
        node.name,
        _KIND,
        actor=who,
        message=f"ticket made{about}: {file}",
        data={"file": file, "sha256": sha256, "component": component, "serial": node.serial},
    )


def tickets_of(store: Store, node: Node) -> tuple[Event, ...]:
    """Return the tickets of a node, and those of its serial while it had another name; oldest first."""
    return tuple(
        event
        for event in store.events(kinds=[_KIND], limit=_MOST)
        if event.node == node.name or (node.serial and event.data.get("serial") == node.serial)
    )
