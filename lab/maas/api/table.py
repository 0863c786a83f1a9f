"""Every address of the API in one tuple, and the document that describes them."""

from __future__ import annotations

from lab.maas.api import account, events, groups, images, machine, machines, networks, scripts
from lab.maas.api.resource import Action, Resource
from lab.maas.render import API

Json = dict[str, object]

RESOURCES: tuple[Resource, ...] = (
    *account.RESOURCES,
    *machines.RESOURCES,
    *machine.RESOURCES,
    *groups.RESOURCES,
    *networks.RESOURCES,
    *scripts.RESOURCES,
    *events.RESOURCES,
    *images.RESOURCES,
)


def describe(base: str) -> Json:
    """Describe the API for clients that build their calls from it; `base` is this MAAS's address."""
    return {
        "doc": "MAAS API",
        "entrypoint": f"{base}{API}",
        "hash": "lab",
        "resources": [_described(base, one) for one in RESOURCES],
    }


def _described(base: str, one: Resource) -> Json:
    open_actions = [action for action in one.actions if action.anonymous]
    anonymous = _view(base, one, f"Anon{one.name}", open_actions) if open_actions else None
    return {
        "name": one.name,
        "anon": anonymous,
        "auth": _view(base, one, one.name, list(one.actions)),
    }


def _view(base: str, one: Resource, name: str, actions: list[Action]) -> Json:
    path = f"{API}/{one.path}"
    return {
        "name": name,
        "doc": one.actions[0].act.__doc__,
        "path": path,
        "uri": f"{base}{path}",
        "params": list(one.params),
        "actions": [
            {
                "name": action.name,
                "method": action.method,
                "op": action.op,
                "restful": action.op is None,
                "doc": action.act.__doc__,
            }
            for action in actions
        ],
    }
