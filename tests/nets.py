"""Nets for labs of tests: two workers of one run must never come to the same."""

from __future__ import annotations

import os


def own_net(first: int) -> str:
    """Return the net of this worker, of a handful that begins at 127.`first`."""
    worker = os.environ.get("PYTEST_XDIST_WORKER", "gw0").removeprefix("gw")
    return f"127.{first + int(worker)}"
