"""rank, and fleet.*: nodes beside each other and over time."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

from inventory.model import Pool
from inventory.records import EventKind, NodeState
from provision import fleet, part_history, ranking
from provision.cli import render
from provision.cli.command import command
from provision.cli.selection import NODES, OUTPUT, POOL, RACK, open_site, select_or_all
from provision.errors import BadRequest
from provision.measurements import Measurements
from provision.pools.candidates import pasts

_MOST_EVENTS = 1_000_000
_SELECT = {"nodes": NODES, "rack": RACK, "pool": POOL, "output": OUTPUT}


@command(_SELECT, lists=("rack",))
def rank(nodes: str = "", rack: Sequence[str] = (), pool: str = "", output: str = "table") -> None:
    """List nodes, healthiest first, with why. Without a selector: those that are reliable, and spares."""
    access = open_site()
    chosen = select_or_all(access, nodes, rack, pool)
    states = access.store.nodes()
    if not nodes and not rack and not pool:
        admitted = (Pool.RELIABLE, Pool.SPARE)
        chosen = tuple(
            one for one in chosen if (states.get(one.name) or NodeState(one.name)).pool in admitted
        )
    now = datetime.now(UTC)
    by_name = {node.name: node for node in chosen}
    rows = [
        {
            "rank": place,
            "node": one.node,
            "pool": (states.get(one.node) or NodeState(one.node)).pool,
            "demerits": one.demerits,
            "why": one.reason,
            "serial": by_name[one.node].serial,
            "rack": by_name[one.node].rack,
        }
        for place, one in enumerate(ranking.rank(pasts(access, chosen, now), now), start=1)
    ]
    render.answer("nodes", rows, ("rank", "node", "pool", "demerits", "why"), output)


@command({"profile": "only this hardware profile", "output": "table, wide, json or yaml"})
def outliers(profile: str = "", output: str = "table") -> None:
    """List values that are far from what nodes of the same profile have, furthest first."""
    access = open_site()
    if profile and profile not in access.site.profiles:
        raise BadRequest("--profile", f"{profile} is no profile", f"one of {', '.join(access.site.profiles)}")
    measured = Measurements(access.settings.state / "measured")
    rows, thin = [], []
    for name in [profile] if profile else list(access.site.profiles):
        values = measured.of(name)
        if 0 < len(values) < fleet.ENOUGH:
            thin.append(f"{name} has {len(values)}")
        rows += [
            {
                "node": one.node,
                "metric": one.metric,
                "value": f"{one.value:.4g}",
                "median": f"{one.median:.4g}",
                "off": f"{one.percent:+.1f} %",
                "of": one.nodes,
                "profile": one.profile,
            }
            for one in fleet.outliers(name, values)
        ]
    render.answer("outliers", rows, ("node", "metric", "value", "median", "off", "of", "profile"), output)
    if thin:
        sys.stdout.flush()
        sys.stderr.write(f"too few nodes to compare ({fleet.ENOUGH} are enough): {', '.join(thin)}\n")


@command({"days": "how far to look back", "least": "how many holds at least", "output": OUTPUT})
def offenders(days: str = "180", least: str = str(fleet.OFFENCES), output: str = "table") -> None:
    """List hardware that came back into quarantine or repair, by serial, worst first."""
    access = open_site()
    since = datetime.now(UTC) - timedelta(days=_number("--days", days))
    moves = access.store.events(kinds=[EventKind.POOL], since=since, limit=_MOST_EVENTS)
    rows = [
        {
            "serial": one.serial,
            "nodes": ", ".join(one.nodes),
            "holds": one.holds,
            "last": f"{render.age(one.last)} ago",
            "reasons": "; ".join(one.reasons),
        }
        for one in fleet.offenders(moves, least=_number("--least", least))
    ]
    render.answer("offenders", rows, ("serial", "nodes", "holds", "last", "reasons"), output)


@command({"days": "how far to look back", "least": "how many changes at least", "output": OUTPUT})
def flaps(
    days: str = str(fleet.FLAP_WINDOW.days), least: str = str(fleet.FLAPS), output: str = "table"
) -> None:
    """List nodes whose answer of the gate, or place in the pool, has changed often of late."""
    access = open_site()
    since = datetime.now(UTC) - timedelta(days=_number("--days", days))
    kinds = [EventKind.POOL, EventKind.VERDICT]
    events = access.store.events(kinds=kinds, since=since, limit=_MOST_EVENTS)
    rows = [
        {
            "node": one.node,
            "answers": one.answers,
            "moves": one.moves,
            "last": f"{render.age(one.last)} ago",
            "path": one.path,
        }
        for one in fleet.flaps(events, least=_number("--least", least))
    ]
    render.answer("flaps", rows, ("node", "answers", "moves", "last", "path"), output)


@command({"days": "how far to look back", "least": "how many times at least", "output": OUTPUT})
def parts(days: str = "180", least: str = "2", output: str = "table") -> None:
    """List parts (GPU, adapter, DIMM, drive) that were at fault again, by serial, wherever they sat."""
    access = open_site()
    since = datetime.now(UTC) - timedelta(days=_number("--days", days))
    rows = [
        {
            "part": one.serial,
            "kind": one.component,
            "times": one.times,
            "nodes": ", ".join(one.nodes),
            "moved": "yes" if one.moved else "no",
            "last": f"{render.age(datetime.fromtimestamp(one.last, UTC))} ago",
            "checks": ", ".join(one.checks),
        }
        for one in part_history.part_offenders(access, since, least=_number("--least", least))
    ]
    render.answer("parts", rows, ("part", "times", "nodes", "moved", "last", "checks"), output)


@command(
    {
        "days": "how far to look back",
        "hours": "length of the window",
        "least": "how many times at least within the window",
        "output": OUTPUT,
    }
)
def links(days: str = "30", hours: str = "24", least: str = "5", output: str = "table") -> None:
    """List links that went down often within a window, busiest first, by what saved evidence has counted."""
    access = open_site()
    since = datetime.now(UTC) - timedelta(days=_number("--days", days))
    window_s = 3600.0 * _number("--hours", hours)
    rows = [
        {
            "link": one.link,
            "times": one.times,
            "from": f"{datetime.fromtimestamp(one.began, UTC):%Y-%m-%d %H:%M}",
            "to": f"{datetime.fromtimestamp(one.ended, UTC):%Y-%m-%d %H:%M}",
        }
        for one in part_history.link_flaps(access, since, least=_number("--least", least), window_s=window_s)
    ]
    render.answer("links", rows, ("link", "times", "from", "to"), output)


def _number(option: str, text: str) -> int:
    if not text.isdecimal() or not 0 < int(text) <= 10_000:
        raise BadRequest(option, f"{text} is no such number", "give a whole number above 0")
    return int(text)
