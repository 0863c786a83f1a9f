"""Whose a lab's net is: bridge, control group and addresses of one net belong to one lab at a time."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from lab.errors import Refused
from lab.spec import LabNet, LabPaths

_RUN = Path("/run")


@contextmanager
def owned_net(net: LabNet, paths: LabPaths, folder: Path = _RUN) -> Iterator[None]:
    """Hold a net for the life of the block; whoever does not hold it may not build or remove on it.

    Raises Refused, naming the other lab's state folder, while another lab holds it.
    """
    place = folder / f"{net.cgroup}.lock"
    descriptor = os.open(place, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as exc:
            owner = os.pread(descriptor, 4096, 0).decode(errors="replace").strip() or "unknown"
            raise Refused(
                f"net 127.{net.octet}",
                f"it belongs to the lab that keeps its state in {owner}",
                follow=f"set MUSTER_STATE={Path(owner).parent}, or another MUSTER_LAB_NET",
            ) from exc
        os.ftruncate(descriptor, 0)
        os.pwrite(descriptor, f"{paths.state}\n".encode(), 0)
        yield
    finally:
        os.close(descriptor)
