"""One question to the BMCs of many nodes, answered in one line a node, folded."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import TypeVar, cast

from bmc import fleet
from bmc.capability import Bmc, BmcTarget
from bmc.drivers import connect
from bmc.errors import ActionFailed
from inventory.model import Node
from inventory.nodeset import fold
from provision import advice
from provision.access import Access
from provision.cli.command import Ended
from provision.errors import ProvisionError

T = TypeVar("T")


def ask(
    access: Access, nodes: Sequence[Node], question: Callable[[Bmc], Awaitable[T]]
) -> dict[str, T | Exception]:
    """Log in to every node's BMC, ask, log out. A BMC that fails gives its error in place of an answer."""

    async def one(target: BmcTarget) -> T:
        async with connect(target) as bmc:
            return await question(bmc)

    return run(access, nodes, one)


def run(
    access: Access,
    nodes: Sequence[Node],
    action: Callable[[BmcTarget], Awaitable[T]],
    *,
    deadline_s: float = 120.0,
) -> dict[str, T | Exception]:
    """Do something with every node's BMC, capped per subnet."""
    targets = [access.bmc(node) for node in nodes]
    results = asyncio.run(fleet.each(targets, action, deadline_s=deadline_s))
    answers: dict[str, T | Exception] = {}
    for name, result in results.items():
        error: Exception | None = result.error
        if isinstance(error, ActionFailed) and isinstance(error.__cause__, ProvisionError):
            error = error.__cause__  # ours, and says more
        answers[name] = error if error is not None else cast("T", result.value)
    return answers


def folded(answers: Mapping[str, str]) -> str:
    """Return answers as lines, nodes with the same answer folded into one."""
    groups: dict[str, list[str]] = {}
    for name, text in answers.items():
        groups.setdefault(text, []).append(name)
    width = max((len(fold(names)) for names in groups.values()), default=0)
    return "\n".join(f"{fold(names):<{width}}  {text}" for text, names in groups.items())


def failures(results: Mapping[str, object]) -> None:
    """Print the nodes that failed, folded, each with its next command, and end with status 2; else return."""
    failed = {name: result for name, result in results.items() if isinstance(result, Exception)}
    if not failed:
        return
    groups: dict[tuple[str, str], list[str]] = {}
    for name, error in failed.items():
        what = str(error).replace(f"{name}: ", "", 1)
        groups.setdefault((what, advice.next_after(error).replace(name, "NODE")), []).append(name)
    sys.stdout.flush()
    sys.stderr.write(f"failed {len(failed)} of {len(results)}\n")
    for (what, next_step), names in groups.items():
        sys.stderr.write(f"  {fold(names)}  {what}\n    next: {next_step.replace('NODE', fold(names))}\n")
    raise Ended(advice.EXIT_NODES_FAILED)
