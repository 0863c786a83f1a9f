"""The Redfish trees below Systems, Chassis and Managers, and the logs, as the BMC sends them."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Iterator
from typing import Any

from bmc.errors import BmcError, Unreachable
from bmc.redfish.client import ROOT, Client
from provision.ticket.artifact import File, Json
from provision.ticket.collecting import Case, Collector, Lane, Outcome, Result

_TREES = ("Systems", "Chassis", "Managers")
_TIMEOUT_S = 600.0
_TIME_S = 160.0  # for each tree, and for the logs
_MOST_RESOURCES = 600  # of one tree
_MOST_ENTRIES = 1000  # of one log
# Accounts and sessions are nobody's business; the rest is large and says nothing of a fault.
_LEFT_OUT = ("/Sessions", "/Accounts", "/LogServices", "/Certificates", "/Jobs", "/Actions", "/JsonSchemas")

Tree = dict[str, Any]


async def _collect(case: Case) -> Result:
    client = (await case.redfish.get()).client
    files: list[File] = []
    missing: list[str] = []
    logs: list[str] = []
    for name in _TREES:
        root = client.root.link(name) or f"{ROOT}/{name}"
        tree, why = await _tree(client, root)
        logs += [found for data in tree.values() if (found := _log_services(data))]
        if tree:
            files.append(File(f"bmc/redfish/{name}.json", Json(tree)))
        if why:
            missing.append(f"{name}: {why}")
    entries, why = await _logs(client, logs)
    files.append(File("bmc/redfish/LogServices.json", Json(entries)))
    if why:
        missing.append(f"LogServices: {why}")
    outcome = Outcome.PARTIAL if missing else Outcome.COMPLETE
    return Result(tuple(files), outcome, "; ".join(missing))


async def _tree(client: Client, root: str) -> tuple[Tree, str]:
    """Walk a tree. Returns what was read, by path, and why it is not all of it."""
    end = asyncio.get_running_loop().time() + _TIME_S
    found: Tree = {}
    refused = 0
    ahead, seen = deque([root]), {root}
    while ahead:
        if len(found) >= _MOST_RESOURCES:
            return found, f"the first {_MOST_RESOURCES} resources"
        if asyncio.get_running_loop().time() > end:
            return found, f"{len(found)} resources in {_TIME_S:.0f} s"
        path = ahead.popleft()
        try:
            data = (await client.get(path)).data
        except Unreachable:
            raise
        except BmcError:
            refused += 1
            continue
        found[path] = data
        fresh = [link for link in _links(data) if _below(link, root) and link not in seen]
        ahead.extend(dict.fromkeys(fresh))
        seen.update(fresh)
    return found, f"{refused} resources were refused" if refused else ""


def _below(link: str, root: str) -> bool:
    return link.startswith(f"{root}/") and "#" not in link and not any(word in link for word in _LEFT_OUT)


def _links(value: object) -> Iterator[str]:
    if isinstance(value, dict):
        for key, inner in value.items():
            if key == "@odata.id" and isinstance(inner, str):
                yield inner.rstrip("/")
            else:
                yield from _links(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from _links(inner)


def _log_services(data: Tree) -> str:
    link = data.get("LogServices")
    path = link.get("@odata.id") if isinstance(link, dict) else None
    return path if isinstance(path, str) else ""


async def _logs(client: Client, services: list[str]) -> tuple[Tree, str]:
    """Read the entries of every log. Returns them by log, and why they are not all."""
    end = asyncio.get_running_loop().time() + _TIME_S
    found: Tree = {}
    why: list[str] = []
    for service in dict.fromkeys(services):
        try:
            names = (await client.get(service)).links("Members")
        except Unreachable:
            raise
        except BmcError as exc:
            why.append(exc.what())
            continue
        for log in names:
            if asyncio.get_running_loop().time() > end:
                return found, f"{len(found)} logs in {_TIME_S:.0f} s"
            found[log], cut = await _entries(client, log)
            if cut:
                why.append(f"{log.rsplit('/', 1)[-1]}: {cut}")
    return found, "; ".join(dict.fromkeys(why))


async def _entries(client: Client, log: str) -> tuple[list[Tree], str]:
    entries: list[Tree] = []
    following: str | None = f"{log}/Entries"
    while following:
        try:
            page = await client.get(following)
        except Unreachable:
            raise
        except BmcError as exc:
            return entries, exc.what()
        rows = [row.data for row in page.rows("Members")]
        entries += rows
        if len(entries) >= _MOST_ENTRIES:
            return entries[:_MOST_ENTRIES], f"{_MOST_ENTRIES} entries"
        following = page.text("Members@odata.nextLink") if rows else None
    return entries, ""


BMC_REDFISH = Collector("bmc.redfish", Lane.REDFISH, _TIMEOUT_S + 60.0, _collect)
