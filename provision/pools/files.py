"""The files that monitoring and launchers read, in the state folder."""

from __future__ import annotations

import fcntl
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from inventory.admission import ADMITTED
from inventory.model import Node, Site
from inventory.monitoring import file_sd, hostfile, in_pool, targets, write_atomically
from inventory.records import Allocation, NodeState
from inventory.store import Store
from provision.errors import BadRequest

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,62}")


def publish(state: Path, site: Site, store: Store) -> None:
    """Write the file_sd list, a hostfile a pool and one an allocation. Raises OSError."""
    with _only_one(state / "hostfiles"):
        # Read under the lock: who read earlier must not write later.
        _publish(state, site, store.nodes(), store.allocations())


def _publish(
    state: Path, site: Site, states: Mapping[str, NodeState], allocations: Mapping[str, Allocation]
) -> None:
    _write(state / "file_sd" / "nodes.json", file_sd(targets(site, states)))
    for pool in sorted(ADMITTED):
        _write(state / "hostfiles" / str(pool), hostfile(in_pool(site, states, pool)))
    names = {one.name for one in allocations.values()}
    for name in names:
        _write(allocated_file(state, name), hostfile(members(site, allocations, name)))
    for path in (state / "hostfiles" / "allocated").glob("*"):
        if path.name not in names and not path.name.startswith("."):
            path.unlink(missing_ok=True)


def allocated_file(state: Path, name: str) -> Path:
    """Return where an allocation's own hostfile lies."""
    return state / "hostfiles" / "allocated" / name


def members(site: Site, allocations: Mapping[str, Allocation], name: str) -> tuple[Node, ...]:
    """Return the nodes of one allocation in the order of their places."""
    nodes = {node.name: node for node in site.nodes}
    return tuple(nodes[one.node] for one in allocations.values() if one.name == name and one.node in nodes)


def check_name(name: str) -> None:
    """Raise BadRequest for a name that could not be a file's."""
    if not _NAME.fullmatch(name):
        raise BadRequest("--name", f"{name} is no name", "letters, digits, dots and dashes, 63 at most")


def check_writable(path: Path) -> None:
    """Raise BadRequest where a hostfile cannot be written, before anything is changed."""
    if path.is_dir() or not path.parent.is_dir():
        raise BadRequest("--hostfile", f"{path} cannot be written", "name a file in a folder that exists")


def write_hostfile(path: Path, nodes: Sequence[Node], slots: int | None) -> None:
    """Write the operator's own hostfile. Raises BadRequest."""
    try:
        write_atomically(path, hostfile(nodes, slots=slots))
    except OSError as error:
        raise BadRequest(
            "--hostfile", f"{path} cannot be written: {error.strerror}", "run it again with another file"
        ) from error


@contextmanager
def _only_one(folder: Path) -> Iterator[None]:
    """Hold the lock that every process writing these files takes."""
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / ".lock").open("w", encoding="utf-8") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def _write(path: Path, text: str) -> None:
    # Watchers of a file look again whenever it changes.
    if not path.exists() or path.read_text(encoding="utf-8") != text:
        write_atomically(path, text)
