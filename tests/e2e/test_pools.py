"""A job's nodes through a bad day: handed out, one fails, a spare takes over, then too many fail at once."""

from __future__ import annotations

import asyncio
import dataclasses
import json
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from inventory import site
from inventory.nodeset import expand
from inventory.secrets import resolve
from provision.maas.client import MaasClient
from tests.e2e.conftest import Done, Rack

pytestmark = [pytest.mark.lab, pytest.mark.timeout(600)]

NODES = "lab-n[06-08]"


@pytest.fixture
def job(rack: Rack, tmp_path: Path) -> Iterator[Rack]:
    """The lab as a site of three of its nodes, of which one is to be a spare."""
    folder = tmp_path / "site"
    shutil.copytree(rack.environment["MUSTER_SITE"], folder)
    top = folder / "site.yaml"
    top.write_text(top.read_text().replace("spare_share: 0.0", "spare_share: 0.34"))
    lab = yaml.safe_load((folder / "racks.yaml").read_text())["racks"]["lab"]
    lab["nodes"] = {name: lab["nodes"][name] for name in expand(NODES)}
    (folder / "racks.yaml").write_text(yaml.safe_dump({"racks": {"lab": lab}}))
    ours = dataclasses.replace(rack, environment={**rack.environment, "MUSTER_SITE": str(folder)})
    yield ours
    ours.invoke("pool.return", "--nodes", NODES, "--yes")
    ours.invoke("pool.resume", "--reason", "the test is over")


def done(rack: Rack, *words: str) -> Done:
    """Run a command that must succeed."""
    ended = rack.invoke(*words)
    assert ended.status == 0, ended.err
    return ended


def pools(rack: Rack) -> dict[str, str]:
    """Return which pool each node is in."""
    rows = json.loads(done(rack, "nodes", "--nodes", NODES, "--output", "json").out)["nodes"]
    return {row["node"]: row["pool"] for row in rows}


def spoil(rack: Rack, node: str) -> Done:
    """Take a GPU away from a node and let the gate see it."""
    rack.lab("fault", "--nodes", node, "--fault", "gpu-missing")
    ended = rack.invoke("verify", "--nodes", node)
    assert ended.status == 2, ended.err
    return ended


def shown_in_maas(rack: Rack) -> dict[str, tuple[str, tuple[str, ...], str]]:
    """Return each machine's pool, tags and description as MAAS has them."""
    described = site.load(Path(rack.environment["MUSTER_SITE"]))

    async def ask() -> dict[str, tuple[str, tuple[str, ...], str]]:
        key = resolve(described.maas.key, base=rack.state)
        async with MaasClient(described.maas.url, key) as maas:
            machines = await maas.machines()
        return {one.hostname: (one.pool, one.tags, one.description) for one in machines}

    return asyncio.run(ask())


def test_a_job_loses_a_node_gets_a_spare_and_then_too_many_fail(job: Rack, tmp_path: Path) -> None:
    done(job, "reimage", "--nodes", NODES, "--reason", "a fresh start", "--yes")
    done(job, "pool.balance", "--yes")
    assert sorted(pools(job).values()) == ["reliable", "reliable", "spare"]
    (spare,) = (node for node, pool in pools(job).items() if pool == "spare")

    hosts = tmp_path / "hosts"
    taking = ["pool.allocate", "--count", "2", "--name", "train", "--same-pod", "--hostfile", str(hosts)]
    done(job, *taking, "--reason", "pretraining")
    first, second = hosts.read_text().split()
    assert spare not in (first, second)
    hosts.unlink()
    assert "train already has 2 nodes" in done(job, *taking).err
    assert hosts.read_text().split() == [first, second]
    refused = job.invoke("power.cycle", "--nodes", first, "--reason", "x", "--yes")
    assert refused.status == 3
    assert f"{first}: refused by guard in-use: it is allocated to train by tester" in refused.err
    assert job.invoke("pool.allocate", "--count", "1").status == 3

    spoil(job, first)
    assert pools(job)[first] == "quarantine"
    assert f"train has nodes that left the pool: {first}" in done(job, "pool.status").err
    seen = tmp_path / "seen"
    replaced = done(
        job, "pool.replace", "--nodes", first, "--reason", "gpu lost", "--hostfile", str(hosts), "--yes",
        "--run", f"cp $MUSTER_HOSTFILE {seen}",
    )  # fmt: skip
    assert f"{first} -> {spare}   same rack" in replaced.out
    assert seen.read_text().split() == hosts.read_text().split() == [spare, second]
    assert pools(job) == {first: "quarantine", second: "reliable", spare: "reliable"}
    shown = shown_in_maas(job)
    assert shown[first][:2] == ("quarantine", ("muster-quarantine",))
    assert shown[first][2].endswith("by tester: gpu lost")
    assert shown[spare][:2] == ("reliable", ("muster-reliable",))
    targets = json.loads((job.state / "file_sd" / "nodes.json").read_text())
    assert {group["labels"]["node"]: group["labels"]["pool"] for group in targets} == pools(job)

    spoil(job, second)
    assert pools(job)[second] == "quarantine"
    spoil(job, spare)
    assert pools(job)[spare] == "reliable", "the breaker keeps what is left"
    told = done(job, "pool.status").err
    assert "automatic quarantine is stopped: 2 of " in told
    assert f"in the pool without a fresh yes: {spare}" in told
    assert "automatic quarantine" in done(job, "status").err
    done(job, "pool.return", "--name", "train")
    assert job.invoke("pool.allocate", "--count", "1").status == 3, "a node without a yes is not handed out"

    assert f"invoke verify --nodes '{spare}'" in done(job, "pool.resume", "--reason", "looked").err
    assert job.invoke("verify", "--nodes", spare).status == 2
    assert pools(job)[spare] == "quarantine"
