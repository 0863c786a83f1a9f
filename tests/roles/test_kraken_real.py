"""Real Kraken on lab nodes, through the roles; run by tests/real/kraken.sh, which is given the programs."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path
from typing import Any

import pytest

from tests.roles import oci
from tests.roles.conftest import Fresh, Lab
from tests.roles.site import ENGINE

pytestmark = [pytest.mark.real, pytest.mark.lab, pytest.mark.timeout(1200)]

SERVERS = ("testfs", "origin", "build-index", "tracker", "proxy")


def program(name: str) -> dict[str, str]:
    """Return where a program lies, and its sha256."""
    folder = os.environ.get("MUSTER_KRAKEN_PROGRAMS")
    if not folder:
        pytest.skip("MUSTER_KRAKEN_PROGRAMS names no folder; see tests/real/kraken.sh")
    path = Path(folder, f"kraken-{name}")
    return {"source": str(path), "sha256": hashlib.sha256(path.read_bytes()).hexdigest()}


def serve(node: Fresh) -> None:
    here = node.spec.address
    result = node.roles(
        "kraken_server",
        kraken_server_components=list(SERVERS),
        kraken_server_programs={name: program(name) for name in SERVERS},
        kraken_server_origins=[f"{here}:15002"],
        kraken_server_trackers=[f"{here}:15003"],
        kraken_server_build_indexes=[f"{here}:15004"],
        kraken_server_backend={"kind": "file", "address": f"{here}:14000"},
    )
    assert result.ok, result


def follow(node: Fresh, server: Fresh) -> None:
    there = server.spec.address
    agent = program("agent")
    variables: dict[str, Any] = ENGINE | {
        "registry_client_mirrors": [{"url": "http://127.0.0.1:16000"}],
        "kraken_agent_binary": agent["source"],
        "kraken_agent_sha256": agent["sha256"],
        "kraken_agent_trackers": [f"{there}:15003"],
        "kraken_agent_build_indexes": [f"{there}:15004"],
    }
    result = node.roles("container_runtime", "kraken_agent", "registry_client", **variables)
    assert result.ok, result


def test_an_image_is_pulled_by_digest_also_when_the_origin_is_gone(lab: Lab):
    program("agent")
    server, first, second, third = lab.deploy(1, 2, 3, 4)
    serve(server)
    for node in (first, second, third):
        follow(node, server)
    digest = oci.push(server, "127.0.0.1:15000", "lab/site:1")
    name = f"registry.example/lab/site@{digest}"
    assert oci.pulled(first, name) == digest
    assert oci.pulled(second, name) == digest
    server.read("sudo systemctl stop kraken-origin")
    assert oci.pulled(third, name) == digest
