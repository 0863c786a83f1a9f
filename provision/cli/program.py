"""The installed command `muster`: the same tasks, without a checkout."""

from __future__ import annotations

from importlib.metadata import version

from invoke.program import Program

from provision.cli.namespace import collection


def main() -> None:
    """Run `muster TASK`."""
    Program(name="muster", binary="muster", version=version("muster-bringup"), namespace=collection()).run()
