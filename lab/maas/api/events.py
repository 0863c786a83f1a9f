"""`events/?op=query`: the event log, in pages."""

from __future__ import annotations

from urllib.parse import urlencode

from lab.maas.api import filters
from lab.maas.api.form import Form
from lab.maas.api.resource import Action, Answer, Call, Resource
from lab.maas.errors import Refusal
from lab.maas.model import events
from lab.maas.model.region import Region
from lab.maas.render import API
from lab.maas.render import results as render

_PAGING = frozenset({"after", "before"})
_MACHINE_FIELDS = frozenset({"hostname", "mac_address", "id", "zone", "agent_name", "owner", "domain"})


def query(call: Call) -> Answer:
    """Return a page of events, newest first, with the addresses of its neighbours."""
    asked = _query(call.region, call.query)
    found = events.find(call.region, asked)
    newest = found[0].id if found else (asked.after or (asked.before or 1) - 1)
    oldest = found[-1].id if found else (asked.before or newest + 1)
    return Answer(
        {
            "count": len(found),
            "events": [render.event(one) for one in found],
            "next_uri": _address(call.query, "after", newest),
            "prev_uri": _address(call.query, "before", oldest),
        }
    )


def _query(region: Region, asked: Form) -> events.EventQuery:
    limit = int(asked.one("limit", "100")) if asked.one("limit", "100").isdigit() else 100
    if limit > events.MOST:
        text = f"Requested number of events {limit} is greater than limit: {events.MOST}"
        raise Refusal(400, text)
    level = asked.one("level", "INFO")
    if level not in events.LEVELS:
        raise Refusal(400, f"Unrecognised log level: {level}")
    if "after" in asked and "before" in asked:
        raise Refusal(400, "There is undetermined behaviour when both `after` and `before` are specified.")
    return events.EventQuery(
        events.LEVELS[level],
        limit,
        _number(asked, "after"),
        _number(asked, "before"),
        _machines(region, asked),
    )


def _number(asked: Form, name: str) -> int | None:
    given = asked.given(name)
    return int(given) if given and given.isdigit() else None


def _machines(region: Region, asked: Form) -> frozenset[str] | None:
    only = Form([(name, value) for name, value in asked if name in _MACHINE_FIELDS])
    if not only.names():
        return None
    if only.names() == ["id"]:
        # Events outlive their machine.
        return frozenset(only.listed("id"))
    found = filters.chosen(region, filters.list_tests(region, only))
    return frozenset(one.system_id for one in found)


def _address(asked: Form, name: str, number: int) -> str:
    pairs = [(key, value) for key, value in asked if key not in _PAGING]
    return f"{API}/events/?{urlencode([*pairs, (name, str(number))])}"


RESOURCES = (Resource("EventsHandler", "events/", (Action("GET", "query", query),)),)
