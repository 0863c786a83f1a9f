"""Asking the operator, where there is one."""

from __future__ import annotations

import sys

from provision.guards import Asking


def asking(*, yes: bool, override: str = "", reason: str = "") -> Asking:
    """Return how this command may ask: on the terminal, or not at all."""
    return Asking(yes=yes, typed=_typed if sys.stdin.isatty() else None, override=override, reason=reason)


def _typed(prompt: str) -> str:
    sys.stderr.write(prompt)
    sys.stderr.flush()
    return sys.stdin.readline()
