"""What Slurm says, through programs of its name; what it does not say counts as in use."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from inventory.model import Pool
from provision import guards
from provision.access import Access
from provision.errors import Refused, SlurmFailed
from provision.pools.candidates import find
from provision.slurm import in_use, jobs
from tests.unit.pools.conftest import Make
from tests.unit.pools.making import admit

Program = Callable[[str, str], Path]


@pytest.fixture
def program(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Program:
    """Puts a program of Slurm's first on PATH; it writes its arguments beside itself."""
    folder = tmp_path / "bin"
    folder.mkdir()
    monkeypatch.setenv("PATH", f"{folder}:/usr/bin:/bin")

    def put(name: str, body: str) -> Path:
        path = folder / name
        path.write_text(f'#!/bin/sh\nprintf "%s\\n" "$*" >> {folder}/{name}.asked\n{body}\n')
        path.chmod(0o755)
        return folder / f"{name}.asked"

    return put


def shown(*states: tuple[str, str]) -> str:
    """What `scontrol --oneliner show node` prints."""
    lines = [
        f"NodeName={name} Arch=x86_64 CoresPerSocket=56 CPUAlloc=0 CPUTot=224 Gres=gpu:h100:8 State={state} "
        f"ThreadsPerCore=2 OS=Linux 5.15.0 #1 SMP Partitions=batch Comment=State=IDLE"
        for name, state in states
    ]
    return "\n".join(f"echo '{line}'" for line in lines)


async def test_asks_once_for_all_and_tells_the_busy_from_the_idle(program: Program) -> None:
    states = [
        ("n1", "IDLE"), ("n2", "ALLOCATED"), ("n3", "MIXED+DRAIN"), ("n4", "IDLE+DRAIN"),
        ("n5", "COMPLETING"), ("n6", "DOWN*"), ("n7", "ALLOCATED*"), ("n8", "UNKNOWN*"),
    ]  # fmt: skip
    asked = program("scontrol", shown(*states))
    found = await in_use([name for name, _ in states])
    assert sorted(found) == ["n2", "n3", "n5", "n7", "n8"]
    assert found["n3"] == "Slurm says MIXED+DRAIN"
    assert asked.read_text() == "--oneliner show node n1,n2,n3,n4,n5,n6,n7,n8\n"


async def test_a_node_that_slurm_does_not_know_counts_as_in_use(program: Program) -> None:
    program("scontrol", shown(("n1", "IDLE")) + "\necho 'Node n2 not found' >&2; exit 1")
    assert await in_use(["n1", "n2"]) == {"n2": "Slurm does not know it"}


async def test_nobody_is_asked_about_no_node(program: Program) -> None:
    asked = program("scontrol", "exit 1")
    assert await in_use([]) == {}
    assert not asked.exists()


async def test_a_slurm_that_is_not_there_or_does_not_answer_is_said(program: Program) -> None:
    with pytest.raises(SlurmFailed, match="scontrol cannot be run"):
        await in_use(["n1"])
    program("scontrol", "echo 'slurm_load_node error: Unable to contact slurm controller' >&2; exit 1")
    with pytest.raises(SlurmFailed, match="ended with 1: slurm_load_node error: Unable to contact"):
        await in_use(["n1"])


async def test_says_whose_jobs_run(program: Program) -> None:
    program("squeue", 'for id in 1 2 3 4; do echo "job $id (ana)"; done')
    assert await jobs("n1") == "job 1 (ana), job 2 (ana), job 3 (ana) and 1 more"
    program("squeue", "exit 1")
    assert await jobs("n1") == ""


async def refusal(access: Access, name: str) -> Refused:
    found = await guards.in_use(access, access.node(name))
    assert found is not None
    return found


async def test_the_guard_refuses_for_a_job_and_names_it(make: Make, program: Program) -> None:
    access = make("slurm: true")
    admit(access, "a1-n01")
    program("scontrol", shown(("a1-n01", "ALLOCATED")))
    program("squeue", "echo 'job 88123 (ana)'")
    found = await refusal(access, "a1-n01")
    assert (found.guard, found.reason, found.detail) == (
        "in-use",
        "Slurm says ALLOCATED",
        "job 88123 (ana)",
    )
    program("scontrol", shown(("a1-n01", "IDLE")))
    assert await guards.in_use(access, access.node("a1-n01")) is None


async def test_a_drained_node_is_in_use_until_its_job_has_ended(make: Make, program: Program) -> None:
    access = make("slurm: true")
    access.store.set_pool("a1-n01", Pool.QUARANTINE, by="marta", why="drain")
    program("scontrol", shown(("a1-n01", "ALLOCATED+DRAIN")))
    assert (await refusal(access, "a1-n01")).reason == "Slurm says ALLOCATED+DRAIN"


async def test_the_guard_fails_closed_without_slurm_and_asks_none_where_there_is_none(
    make: Make, program: Program
) -> None:
    access = make("slurm: true")
    admit(access, "a1-n01")
    assert (await refusal(access, "a1-n01")).reason == "it cannot be asked for: scontrol cannot be run"
    asked = program("scontrol", shown(("a1-n01", "ALLOCATED")))
    access = make()
    assert "cannot be asked what runs on it" in (await refusal(access, "a1-n01")).reason
    assert not asked.exists()


async def test_what_slurm_uses_is_not_handed_out(make: Make, program: Program) -> None:
    access = make("slurm: true")
    admit(access, "a1-n01", "a1-n02", "a1-n03")
    program("scontrol", shown(("a1-n01", "MIXED"), ("a1-n02", "IDLE")))
    found = await find(access, access.site.nodes)
    assert [one.name for one in found.free] == ["a1-n02"]
    assert found.left_out["a1-n01"] == "Slurm says MIXED"
    assert found.left_out["a1-n03"] == "Slurm does not know it"


async def test_an_allocated_node_is_in_use_whatever_runs(access: Access) -> None:
    admit(access, "a1-n01")
    access.store.allocate("train", ["a1-n01"], who="ana", why="pretraining")
    access.store.set_pool("a1-n01", Pool.QUARANTINE, by="marta", why="PSU smell")
    found = await refusal(access, "a1-n01")
    assert found.reason == "it is allocated to train by ana"
    assert found.detail.endswith("Z: pretraining")
