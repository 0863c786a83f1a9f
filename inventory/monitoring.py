"""What monitoring and launchers read: Prometheus targets and hostfiles, made from the inventory."""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from inventory.model import Node, Pool, Site
from inventory.records import NodeState

NODE_EXPORTER = 9100
DCGM_EXPORTER = 9400


@dataclass(frozen=True, slots=True)
class TargetGroup:
    """One entry of a Prometheus file_sd list."""

    targets: tuple[str, ...]
    labels: Mapping[str, str]


def targets(
    site: Site, states: Mapping[str, NodeState], *, port: int = NODE_EXPORTER
) -> tuple[TargetGroup, ...]:
    """Return one target a node with its place as labels, in the order of the site files.

    Left out are retired nodes and those whose address is not known yet. Nodes in repair stay:
    alert rules silence them by their label, and their graphs go on.
    """
    found = []
    for node, state in _with_state(site, states):
        address = node.address or state.address
        if address is None or state.pool is Pool.RETIRED:
            continue
        host = f"[{address}]" if ":" in address else address
        labels = {
            "node": node.name,
            "rack": node.rack,
            "profile": node.profile,
            "stage": str(state.stage),
            "pool": str(state.pool or "none"),
        }
        found.append(TargetGroup((f"{host}:{port}",), labels))
    return tuple(found)


def file_sd(groups: Iterable[TargetGroup]) -> str:
    """Return target groups as the JSON text that Prometheus watches."""
    # One line a node: people can read it, and it is written whenever a node changes its pool.
    lines = [json.dumps({"targets": group.targets, "labels": dict(group.labels)}) for group in groups]
    return "[\n" + ",\n".join(lines) + "\n]\n" if lines else "[]\n"


def hostfile(nodes: Iterable[Node], *, slots: int | None = None) -> str:
    """Return a hostfile, one node a line: with `slots` in Open MPI's form, else bare names."""
    suffix = "" if slots is None else f" slots={slots}"
    return "".join(f"{node.name}{suffix}\n" for node in nodes)


def in_pool(site: Site, states: Mapping[str, NodeState], pool: Pool) -> tuple[Node, ...]:
    """Return the nodes of a pool, in the order of the site files."""
    return tuple(node for node, state in _with_state(site, states) if state.pool is pool)


def write_atomically(path: Path, text: str, *, mode: int = 0o644) -> None:
    """Write a file so that a reader sees the old text or the new one, never a part. Raises OSError."""
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, name = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
    try:
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            file.write(text)
            file.flush()
            os.fchmod(file.fileno(), mode)
            os.fsync(file.fileno())
        Path(name).replace(path)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise


def _with_state(site: Site, states: Mapping[str, NodeState]) -> Iterable[tuple[Node, NodeState]]:
    return ((node, states.get(node.name, NodeState(node.name))) for node in site.nodes)
