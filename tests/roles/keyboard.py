"""Muster's commands as an operator types them, at the lab's nodes that the roles' tests configure."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from lab.plan import Plan
from lab.site import write_site
from tests.roles.conftest import NET, ROOT, Lab

INVOKE = str(Path(sys.executable).parent / "invoke")


@dataclass(frozen=True)
class Operator:
    """One who types commands at the lab's own site."""

    environment: Mapping[str, str]

    def type(self, *words: str) -> tuple[int, str, str]:
        """Return how a command ended, and what it wrote to stdout and to stderr."""
        done = subprocess.run(
            [INVOKE, *words], cwd=ROOT, env=self.environment, stdin=subprocess.DEVNULL,
            capture_output=True, text=True, timeout=400, check=False,
        )  # fmt: skip
        return done.returncode, done.stdout, done.stderr


def operator_of(lab: Lab, folder: Path, registry: str) -> Operator:
    """Write the site of a running lab, with this registry, and return who works at it."""
    site = write_site(folder / "site", NET, Plan(nodes=6))
    with (site / "site.yaml").open("a", encoding="utf-8") as file:
        file.write(f"registry: {{url: '{registry}'}}\n")
    return Operator(
        {
            **os.environ,
            "MUSTER_LAB_NET": f"127.{NET.octet}",
            "MUSTER_SITE": str(site),
            "MUSTER_STATE": str(lab.secrets.parent.parent),
            "MUSTER_WHO": "ana",
        }
    )
