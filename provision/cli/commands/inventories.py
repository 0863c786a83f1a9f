"""inventory.*: are the site files right, does MAAS agree with them, and site files from an existing MAAS."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Sequence
from pathlib import Path

from inventory.model import Node
from inventory.records import NodeState
from provision import advice, guards
from provision.access import Access
from provision.cli import render
from provision.cli.command import Ended, command
from provision.cli.confirm import asking
from provision.cli.selection import OUTPUT, open_site
from provision.errors import BadRequest
from provision.maas import reconcile
from provision.maas.differences import Comparison, SeenMachine, WantedMachine
from provision.maas.import_site import import_site
from provision.maas.reconcile import Applied, Plan
from provision.pools import mirror


@command(
    {
        "from_maas": "compare the site files with MAAS",
        "apply": "with --from-maas: make MAAS agree, where no person has to decide",
        "dry_run": "with --apply: show what would be changed and change nothing",
        "yes": "do not ask",
        "output": OUTPUT,
    }
)
def check(
    from_maas: bool = False,
    apply: bool = False,
    dry_run: bool = False,
    yes: bool = False,
    output: str = "table",
) -> None:
    """Read the site files and say what they describe; a mistake names its file and line."""
    if apply and not from_maas:
        raise BadRequest("--apply", "it goes with --from-maas", "add --from-maas")
    access = open_site(prepare=from_maas)
    for reference in access.site.credentials.values():
        access.secret(reference.password)
    if not from_maas:
        render.answer("racks", _racks(access), ("rack", "nodes", "zone", "profiles"), output)
        return
    wanted = _wanted(access)
    comparison = asyncio.run(_compare(access, wanted))
    plan = reconcile.plan(comparison, wanted)
    _show(comparison, output)
    if not comparison.differences:
        sys.stderr.write("MAAS agrees with the site files\n")
    elif apply and not dry_run:
        _apply(access, plan, yes=yes)
    else:
        sys.stderr.write(
            f"{len(plan.changes)} could be applied, {len(plan.by_hand)} need a person; nothing was changed\n"
        )
        raise Ended(advice.EXIT_NODES_FAILED)


def _racks(access: Access) -> list[dict[str, object]]:
    return [
        {
            "rack": rack.name,
            "nodes": len(rack.nodes),
            "zone": rack.zone,
            "profiles": ", ".join(sorted({node.profile for node in rack.nodes})),
        }
        for rack in access.site.racks
    ]


def _password(access: Access, node: Node) -> str:
    return access.secret(access.site.credentials[node.bmc.credential].password).reveal()


def _wanted(access: Access) -> tuple[WantedMachine, ...]:
    """Return the nodes as MAAS should have them: as the site files say, shown in the pools of the store."""
    states = access.store.nodes()
    known = {node.name: states.get(node.name) or NodeState(node.name) for node in access.site.nodes}
    return reconcile.wanted_machines(
        access.site,
        password=lambda node: _password(access, node),
        pools={name: mirror.maas_pool(state) for name, state in known.items()},
        tags=lambda node: mirror.maas_tags(known[node.name]),
    )


async def _compare(access: Access, wanted: Sequence[WantedMachine]) -> Comparison:
    async with access.maas() as maas:
        return await reconcile.compare_with_maas(maas, wanted, managed_tags=mirror.TAGS)


def _show(comparison: Comparison, output: str) -> None:
    rows = [
        {
            "node": difference.node,
            "difference": str(difference.kind),
            "site": difference.wanted,
            "maas": difference.found,
            "by": "a person" if difference.by_hand else "--apply",
            "system_id": difference.system_id,
        }
        for difference in comparison.differences
    ]
    if rows or output != "table":
        render.answer("differences", rows, ("node", "difference", "site", "maas", "by"), output)


def _apply(access: Access, plan: Plan, *, yes: bool) -> None:
    names = {change.node for change in plan.changes}
    nodes = [node for node in access.site.nodes if node.name in names]
    said = f"this makes {len(plan.changes)} changes in MAAS."
    consent = guards.ask(access, nodes, action="reconcile", plan=said, asking=asking(yes=yes))
    failed: list[Applied] = []

    def told(applied: Applied) -> None:
        if applied.error is not None:
            failed.append(applied)
            return
        what = getattr(applied.change, "what", type(applied.change).__name__.lower())
        access.store.event(applied.change.node, "reconcile", actor=consent.who, message=f"MAAS: {what}")

    async def run() -> None:
        async with access.maas() as maas:
            await reconcile.apply(maas, plan, on_change=told)

    asyncio.run(run())
    sys.stderr.write(f"{len(plan.changes) - len(failed)} changed, {len(plan.by_hand)} need a person\n")
    for applied in failed:
        sys.stderr.write(
            f"  {applied.change.node}  {applied.error}\n    next: invoke show --nodes {applied.change.node}\n"
        )
    if failed or plan.by_hand:
        raise Ended(advice.EXIT_NODES_FAILED)


@command(
    {
        "profile": "hardware profile of the machines; required",
        "out": "new folder to write racks.yaml into; required",
    }
)
def import_(profile: str = "", out: str = "") -> None:
    """Write site files for the machines that MAAS knows, with references in place of passwords."""
    if not profile or not out:
        raise BadRequest("--profile" if not profile else "--out", "it is required", "see --help")
    folder = Path(out)
    if folder.exists():
        raise BadRequest("--out", f"{folder} exists", "name a new folder")
    access = open_site(prepare=True)

    async def look() -> tuple[SeenMachine, ...]:
        async with access.maas() as maas:
            return await reconcile.look(maas)

    found = import_site(asyncio.run(look()), profile=profile)
    try:
        folder.mkdir(parents=True)
        (folder / "racks.yaml").write_text(found.racks, encoding="utf-8")
        (folder / "credentials.yaml").write_text(found.credentials_yaml(), encoding="utf-8")
    except OSError as error:
        raise BadRequest(
            "--out", f"{folder}: {error.strerror}", "name a folder that can be written"
        ) from error
    sys.stdout.write(f"{folder / 'racks.yaml'}\n")
    for skipped in found.skipped:
        sys.stderr.write(f"  left out: {skipped.hostname} ({skipped.system_id}): {skipped.why}\n")
    for credential in found.credentials:
        sys.stderr.write(f"  put the password of {credential.username} where {credential.reference} leads\n")
