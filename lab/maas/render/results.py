"""Script results, scripts and events as API answers."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from lab.maas.model.catalogue import Script
from lab.maas.model.events import LEVEL_NAMES
from lab.maas.model.region import Event
from lab.maas.model.results import Result, ScriptSet
from lab.maas.render import API

Json = dict[str, object]

_PARALLEL = ("Disabled", "Run along other instances of this script", "Run along any other script.")


def http_date(moment: float | None) -> str | None:
    """Write a time as script results do."""
    if moment is None:
        return None
    return datetime.fromtimestamp(moment, UTC).strftime("%a, %d %b %Y %H:%M:%S +0000")


def event_date(moment: float) -> str:
    """Write a time as events do: with a dot after the month, without a zone."""
    return datetime.fromtimestamp(moment, UTC).strftime("%a, %d %b. %Y %H:%M:%S")


def duration(began: float | None, ended: float | None) -> str:
    """Write how long something took, h:mm:ss; empty while it is not over."""
    if began is None or ended is None:
        return ""
    return str(timedelta(seconds=int(ended - began)))


def event(one: Event) -> Json:
    """Render an event."""
    return {
        "username": one.username,
        "node": one.system_id,
        "hostname": one.hostname,
        "id": one.id,
        "level": LEVEL_NAMES[one.level],
        "created": event_date(one.created),
        "type": one.type,
        "description": one.description,
    }


def script_set(one: ScriptSet, *, outputs: bool, only: frozenset[str] | None = None) -> Json:
    """Render a script set, its results by name."""
    shown = sorted(one.results, key=lambda found: (found.name, found.id))
    return {
        "system_id": one.system_id,
        "type": int(one.type),
        "ended": http_date(one.ended),
        "started": http_date(one.started),
        "results": [result(found, outputs=outputs) for found in shown if only is None or found.name in only],
        "id": one.id,
        "type_name": one.type.label,
        "status": int(one.status),
        "runtime": duration(one.started, one.ended),
        "last_ping": http_date(one.last_ping),
        "status_name": one.status.label,
        "resource_uri": f"{API}/nodes/{one.system_id}/results/{one.id}/",
    }


def result(one: Result, *, outputs: bool) -> Json:
    """Render one script's result."""
    shown: Json = {
        "id": one.id,
        "created": http_date(one.created),
        "updated": http_date(one.updated),
        "name": one.name,
        "status": int(one.status),
        "status_name": one.status.label,
        "exit_status": one.exit_status,
        "started": http_date(one.started),
        "ended": http_date(one.ended),
        "runtime": duration(one.started, one.ended),
        "starttime": "" if one.started is None else one.started,
        "endtime": "" if one.ended is None else one.ended,
        "estimated_runtime": duration(one.started, one.ended) or "Unknown",
        "parameters": one.parameters,
        "script_id": one.script_id,
        "script_revision_id": one.script_id if one.ended is not None else None,
        "suppressed": False,
    }
    if outputs:
        shown |= {"output": one.output, "stdout": one.stdout, "stderr": one.stderr, "result": one.result}
    return shown


def script(one: Script) -> Json:
    """Render a script."""
    return {
        "name": one.name,
        "title": one.title,
        "description": one.description,
        "tags": list(one.tags),
        "hardware_type": int(one.hardware),
        "parallel": one.parallel,
        "results": one.results,
        "parameters": one.parameters,
        "packages": {"apt": list(one.apt)} if one.apt else {},
        "timeout": one.timeout,
        "destructive": one.destructive,
        "default": one.built_in,
        "for_hardware": [],
        "may_reboot": False,
        "recommission": False,
        "apply_configured_networking": one.network,
        "type": int(one.type),
        "hardware_type_name": one.hardware.label,
        "id": one.id,
        "type_name": f"{one.type.label} script",
        "parallel_name": _PARALLEL[one.parallel],
        "history": [
            {
                "id": one.id,
                "comment": "Created by maas-None" if one.built_in else None,
                "created": http_date(one.created),
            }
        ],
        "resource_uri": f"{API}/scripts/{one.name}",
    }
