"""Asks Slurm about nodes and drains them, by its own commands. What it cannot say counts as in use."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass

from provision import processes
from provision.errors import SlurmFailed

_TIMEOUT_S = 20.0
# A node in one of these states runs something, whatever else is true of it.
_BUSY = frozenset({"ALLOCATED", "MIXED", "COMPLETING", "DRAINING"})
_DRAINED = frozenset({"DRAIN", "DRAINED", "DRAINING"})  # scontrol and sinfo have their own words
# Slurm marks what it does not know for certain behind the state: not responding, powering, …
_MARKS = "*~#!%$@^-"
_OURS = "muster: "  # how the reason of a drain of ours begins
_LONGEST = 200  # characters of a reason: sinfo shows a line


@dataclass(frozen=True, slots=True)
class Nodes:
    """What Slurm says of nodes: those that run something, each with its state, and those it does not know.

    `drained` get no new jobs; those of `ours` because Muster said so.
    """

    busy: dict[str, str]
    unknown: tuple[str, ...]
    drained: frozenset[str] = frozenset()
    ours: frozenset[str] = frozenset()


async def look(nodes: Sequence[str]) -> Nodes:
    """Ask Slurm once for all of `nodes`. Raises SlurmFailed when it does not answer."""
    if not nodes:
        return Nodes({}, ())
    status, said, error = await _run("scontrol", "--oneliner", "show", "node", ",".join(nodes))
    shown = _shown(said)
    states = {name: fields.get("State", "UNKNOWN") for name, fields in shown.items()}
    # scontrol ends with 1 when it lacks one of several nodes, and shows the others.
    if status != 0 and not states and "not found" not in f"{said}{error}":
        raise SlurmFailed(f"scontrol ended with {status}: {_last_line(error or said) or 'no message'}")
    busy = {node: states[node] for node in nodes if node in states and _is_busy(states[node])}
    drained = frozenset(node for node in nodes if _words(states.get(node, "")) & _DRAINED)
    ours = frozenset(node for node in drained if shown[node].get("Reason", "").startswith(_OURS))
    return Nodes(busy, tuple(node for node in nodes if node not in states), drained, ours)


async def drain(nodes: Sequence[str], why: str) -> None:
    """Have no new job begin on `nodes`; those that run go on to their ends. Raises SlurmFailed."""
    reason = " ".join(why.split())[:_LONGEST]
    await _update(nodes, "State=DRAIN", f"Reason={_OURS}{reason}")


async def resume(nodes: Sequence[str]) -> None:
    """Let jobs begin on `nodes` again: only for those that Muster drained. Raises SlurmFailed."""
    try:
        await _update(nodes, "State=RESUME")
    except SlurmFailed:
        # Slurm 22 ends the drain of a node that has not yet answered it, and says "Invalid node state".
        if (await look(nodes)).drained:
            raise


async def _update(nodes: Sequence[str], *fields: str) -> None:
    if not nodes:
        return
    status, said, error = await _run("scontrol", "update", f"NodeName={','.join(nodes)}", *fields)
    if status != 0:
        raise SlurmFailed(f"scontrol update ended with {status}: {_last_line(error or said) or 'no message'}")


async def in_use(nodes: Sequence[str]) -> dict[str, str]:
    """Return which of `nodes` count as in use, each with why. Raises SlurmFailed when Slurm does not answer.

    A node that Slurm does not know counts as in use: its name may be another one there.
    """
    found = await look(nodes)
    return {node: f"Slurm says {state}" for node, state in found.busy.items()} | dict.fromkeys(
        found.unknown, "Slurm does not know it"
    )


async def jobs(node: str) -> str:
    """Return the jobs on a node in one line, or an empty text where Slurm does not say."""
    try:
        status, said, _ = await _run("squeue", "--noheader", "--nodelist", node, "--format", "job %i (%u)")
    except SlurmFailed:
        return ""
    lines = [line.strip() for line in said.splitlines() if line.strip()]
    return (
        ", ".join(lines[:3]) + (f" and {len(lines) - 3} more" if len(lines) > 3 else "") if not status else ""
    )


def _shown(said: str) -> dict[str, dict[str, str]]:
    """Return the fields of every node in the output of `scontrol --oneliner show node`.

    Only the first of a name counts, and a reason goes to the end of its line: it is free text, and stands
    behind the state.
    """
    nodes = {}
    for line in said.splitlines():
        told, _, reason = line.partition(" Reason=")
        fields: dict[str, str] = {"Reason": reason}
        for word in told.split():
            name, _, value = word.partition("=")
            fields.setdefault(name, value)
        if "NodeName" in fields:
            nodes[fields["NodeName"]] = fields
    return nodes


def _is_busy(state: str) -> bool:
    return bool(_words(state) & _BUSY) or "UNKNOWN" in _words(state)


def _words(state: str) -> set[str]:
    return {word.strip(_MARKS).upper() for word in state.split("+")}


async def _run(*command: str) -> tuple[int, str, str]:
    try:
        ended = await processes.run(command, timeout_s=_TIMEOUT_S, env={**os.environ, "LC_ALL": "C"})
    except TimeoutError as exc:
        raise SlurmFailed(f"{command[0]} gave no answer within {_TIMEOUT_S:.0f} s") from exc
    except (OSError, processes.TooMuchOutput) as exc:
        raise SlurmFailed(f"{command[0]} cannot be run") from exc
    return ended.status, ended.stdout.decode("utf-8", "replace"), ended.stderr.decode("utf-8", "replace")


def _last_line(text: str) -> str:
    lines = text.strip().splitlines()
    return lines[-1].strip() if lines else ""
