"""One lab of three nodes for all tests of this folder, on a net of its own."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest

from tests.contract.lab_nodes.bench import LabUnderTest
from tests.nets import own_net


@pytest.fixture(scope="session")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LabUnderTest]:
    if os.geteuid() != 0:
        pytest.skip("nodes are namespaces, which only root can make")
    place = LabUnderTest(tmp_path_factory.mktemp("lab"), own_net(143))
    done = place.command("up", "--racks", "lab", "--nodes", "3")
    assert done.returncode == 0, done.stderr
    yield place
    done = place.command("down", "--wipe")
    assert done.returncode == 0, done.stderr
