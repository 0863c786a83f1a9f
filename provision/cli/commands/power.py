"""power.*: state, on, off, cycle over node sets, guarded, with evidence saved before power is cut."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Sequence
from datetime import UTC, datetime

from bmc import escalate
from bmc.capability import Bmc, BmcTarget, PowerAction, PowerState
from bmc.drivers import connect
from inventory.model import Node
from inventory.nodeset import fold
from provision import advice, evidence, guards
from provision.access import Access
from provision.cli import fleet, render
from provision.cli.command import Ended, command
from provision.cli.confirm import asking
from provision.cli.selection import NODES, OUTPUT, POOL, RACK, open_site, select, select_or_all
from provision.guards import Consent
from provision.stages.reachable import check_identity

_SELECT = {"nodes": NODES, "rack": RACK, "pool": POOL}
_CUT = {
    **_SELECT,
    "reason": "why, for the record",
    "override": f"guard to pass, with the reason: {', '.join(guards.OVERRIDABLE)}",
    "no_capture": "do not save SEL, sensors and FRU first",
    "dry_run": "say what would be done and change nothing",
    "yes": "do not ask",
}


@command({**_SELECT, "output": OUTPUT}, lists=("rack",))
def status(nodes: str = "", rack: Sequence[str] = (), pool: str = "", output: str = "table") -> None:
    """Ask the BMCs for the power state of nodes."""
    access = open_site(prepare=True)

    async def state(bmc: Bmc) -> PowerState:
        return await bmc.power_state()

    results = fleet.ask(access, select_or_all(access, nodes, rack, pool), state)
    if output == "table":
        sys.stdout.write(_lines(results))
    else:
        rows = [
            {
                "node": name,
                "power": "unknown" if isinstance(r, Exception) else str(r),
                "error": str(r) if isinstance(r, Exception) else None,
            }
            for name, r in results.items()
        ]
        render.answer("power", rows, ("node", "power", "error"), output)
    fleet.failures(results)


@command({**_SELECT, "dry_run": "say what would be done and change nothing"}, lists=("rack",))
def on(nodes: str = "", rack: Sequence[str] = (), pool: str = "", dry_run: bool = False) -> None:
    """Switch nodes on and wait until they are."""
    access = open_site(prepare=True)
    chosen = select(access, nodes, rack, pool)
    _stop_if_dry(dry_run, "power on", chosen)
    results = _act(access, chosen, PowerAction.ON, capture=False)
    sys.stdout.write(_lines(results))
    fleet.failures(results)


@command({**_CUT, "soft": "ask the operating system to shut down"}, lists=("rack",))
def off(
    nodes: str = "",
    rack: Sequence[str] = (),
    pool: str = "",
    soft: bool = False,
    reason: str = "",
    override: str = "",
    no_capture: bool = False,
    dry_run: bool = False,
    yes: bool = False,
) -> None:
    """Switch nodes off: at once, or through the operating system with --soft."""
    action = PowerAction.SOFT if soft else PowerAction.OFF
    _cut(action, nodes, rack, pool, _Cutting(reason, override, no_capture, dry_run, yes))


@command(_CUT, lists=("rack",))
def cycle(
    nodes: str = "",
    rack: Sequence[str] = (),
    pool: str = "",
    reason: str = "",
    override: str = "",
    no_capture: bool = False,
    dry_run: bool = False,
    yes: bool = False,
) -> None:
    """Cut the power of nodes and give it back."""
    _cut(PowerAction.CYCLE, nodes, rack, pool, _Cutting(reason, override, no_capture, dry_run, yes))


class _Cutting:
    """The options that all power-cutting commands share."""

    def __init__(self, reason: str, override: str, no_capture: bool, dry_run: bool, yes: bool) -> None:
        self.asking = asking(yes=yes, override=override, reason=reason)
        self.capture = not no_capture
        self.dry_run = dry_run


def _cut(action: PowerAction, nodes: str, rack: Sequence[str], pool: str, how: _Cutting) -> None:
    access = open_site(prepare=True)
    chosen = select(access, nodes, rack, pool)
    asyncio.run(guards.guard(access, chosen, action=f"power {action}", asking=how.asking))
    _stop_if_dry(how.dry_run, f"power {action}", chosen)
    asyncio.run(guards.identity(access, chosen))
    plan = f"this cuts the power of {fold(node.name for node in chosen)}."
    consent = guards.ask(access, chosen, action=f"power {action}", plan=plan, asking=how.asking)
    results = cut_power(access, chosen, action, consent, capture=how.capture)
    sys.stdout.write(_lines(results))
    fleet.failures(results)


def _stop_if_dry(dry_run: bool, what: str, nodes: Sequence[Node]) -> None:
    if dry_run:
        sys.stdout.write(f"{what}: {fold(node.name for node in nodes)}\nnothing was changed\n")
        raise Ended(advice.EXIT_OK)


def cut_power(
    access: Access, nodes: Sequence[Node], action: PowerAction, consent: Consent, *, capture: bool
) -> dict[str, str | Exception]:
    """Act on nodes whose owner consented; a node without consent is a bug. The loss of power is recorded."""
    missing = {node.name for node in nodes} - set(consent.nodes)
    if missing:
        raise ValueError(f"no consent for {fold(missing)}")
    results = _act(access, nodes, action, capture=capture)
    for name, result in results.items():
        if not isinstance(result, Exception):
            access.store.observe(name, last_power_loss_at=datetime.now(UTC))
            access.store.event(
                name,
                "power",
                actor=consent.who,
                message=f"power {action}: {consent.reason or 'no reason given'}",
            )
    return results


async def save_evidence(access: Access, target: BmcTarget) -> None:
    """Keep what the BMC knows before power is cut: a cut may take the cause with it."""
    folder = access.settings.state / "captures" / target.name
    folder.mkdir(parents=True, exist_ok=True)
    await evidence.save_bmc(target, folder)


def _act(
    access: Access, nodes: Sequence[Node], action: PowerAction, *, capture: bool
) -> dict[str, str | Exception]:
    known = {node.name: node for node in nodes}

    async def act(target: BmcTarget) -> str:
        if capture:
            await save_evidence(access, target)
        async with connect(target) as bmc:
            identity = await bmc.identity()
            check_identity(target.name, expected=known[target.name].serial, found=identity.serial)
            before = await bmc.power_state()
        reached = await escalate.set_power(target, action)
        how = "mains cut" if reached.ac_cycled else ("cycled" if action is PowerAction.CYCLE else "")
        return " -> ".join(word for word in (str(before), how, str(reached.state)) if word)

    return fleet.run(access, nodes, act)


def _lines(results: dict[str, PowerState | Exception] | dict[str, str | Exception]) -> str:
    text = fleet.folded({name: str(r) for name, r in results.items() if not isinstance(r, Exception)})
    return f"{text}\n" if text else ""
