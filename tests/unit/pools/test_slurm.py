"""What Slurm says, through programs of its name; what it does not say counts as in use."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from inventory.model import Pool
from provision import guards
from provision.access import Access
from provision.errors import NodeFailed, Refused, SlurmFailed
from provision.pools.candidates import find
from provision.pools.mirror import mirror
from provision.slurm import in_use, jobs
from provision.stages.idle import refuse_in_use
from provision.stages.job import NodeJob, Options
from provision.stages.site_maas import SiteMaas
from tests.unit.pools.conftest import Make
from tests.unit.pools.making import admit, hold

Program = Callable[[str, str], Path]

# A controller that keeps a file a node, "STATE|REASON", beside itself. As slurmctld 22.05 was seen to do: a
# drain needs a reason and leaves what runs alone, RESUME clears both but is refused, once it has, for a node
# that never answered, and a reason is shown last, with who gave it.
CONTROLLER = """
cd "$(dirname "$0")"
[ -e broken ] && { echo "slurm_update error: Access/permission denied" >&2; exit 1; }
if [ "$1" = update ]; then
  names="${2#NodeName=}" state="${3#State=}" reason="${4#Reason=}"
  [ "$state" = DRAIN ] && [ -z "$reason" ] && { echo "You must specify a reason" >&2; exit 1; }
  for name in $(echo "$names" | tr , ' '); do
    IFS='|' read -r was why < "node-$name"
    [ "$state" = DRAIN ] && echo "${was%+DRAIN}+DRAIN|$reason" > "node-$name"
    [ "$state" = RESUME ] && echo "${was%+DRAIN}|" > "node-$name"
    [ "$state$was" = RESUMEUNKNOWN+DRAIN ] && { echo "Invalid node state" >&2; status=1; }
  done
  exit ${status:-0}
fi
for name in $(echo "$4" | tr , ' '); do
  [ -e "node-$name" ] || { echo "Node $name not found"; status=1; continue; }
  IFS='|' read -r was why < "node-$name"
  why="${why:+Reason=$why [root@2026-11-30T01:02:03]}"
  echo "NodeName=$name Arch=x86_64 CPUTot=224 State=$was Partitions=batch $why"
done
exit ${status:-0}
"""


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
        ("n9", "DRAINING"),
    ]  # fmt: skip
    asked = program("scontrol", shown(*states))
    found = await in_use([name for name, _ in states])
    assert sorted(found) == ["n2", "n3", "n5", "n7", "n8", "n9"]
    assert found["n3"] == "Slurm says MIXED+DRAIN"
    assert asked.read_text() == "--oneliner show node n1,n2,n3,n4,n5,n6,n7,n8,n9\n"


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


class Slurm:
    """The controller's files, as an administrator sees and changes them."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def put(self, name: str, state: str, reason: str = "") -> None:
        (self.folder / f"node-{name}").write_text(f"{state}|{reason}\n")

    def of(self, name: str) -> tuple[str, ...]:
        return tuple((self.folder / f"node-{name}").read_text().rstrip("\n").split("|"))

    def refuse(self) -> None:
        (self.folder / "broken").touch()

    def mend(self) -> None:
        (self.folder / "broken").unlink()


@pytest.fixture
def slurm(program: Program) -> Slurm:
    """A Slurm that knows four nodes, and runs nothing."""
    slurm = Slurm(program("scontrol", CONTROLLER).parent)
    for number in (1, 2, 3, 4):
        slurm.put(f"a1-n0{number}", "IDLE")
    return slurm


def job_of(access: Access, name: str, **options: str) -> NodeJob:
    """One node in a run."""
    node = access.node(name)
    asked = Options(**options)
    return NodeJob(node, access.profile(node), "i-1", asked, access, SiteMaas(access.maas_within), note=print)


async def test_what_leaves_the_pool_gets_no_new_jobs_and_what_comes_back_gets_them_again(
    make: Make, slurm: Slurm
) -> None:
    access = make("slurm: true")
    admit(access, "a1-n01", "a1-n02")
    hold(access, "a1-n01", "Xid 79 on GPU 3  State=IDLE")
    slurm.put("a1-n01", "ALLOCATED")
    assert await mirror(access, ["a1-n01", "a1-n02"]) == []
    assert slurm.of("a1-n01") == ("ALLOCATED+DRAIN", "muster: quarantine: Xid 79 on GPU 3 State=IDLE")
    assert slurm.of("a1-n02") == ("IDLE", "")
    assert await in_use(["a1-n01"]) == {"a1-n01": "Slurm says ALLOCATED+DRAIN"}
    admit(access, "a1-n01")
    assert await mirror(access, ["a1-n01"]) == []
    assert slurm.of("a1-n01") == ("ALLOCATED", "")


async def test_a_spare_gets_no_jobs_until_it_is_used(make: Make, slurm: Slurm) -> None:
    access = make("slurm: true")
    admit(access, "a1-n03", pool=Pool.SPARE)
    await mirror(access, ["a1-n03"])
    assert slurm.of("a1-n03") == ("IDLE+DRAIN", "muster: spare")
    access.store.shift("a1-n03", Pool.RELIABLE, by="marta", why="growth")
    await mirror(access, ["a1-n03"])
    assert slurm.of("a1-n03") == ("IDLE", "")


async def test_what_an_administrator_drained_stays_drained_with_his_reason(make: Make, slurm: Slurm) -> None:
    access = make("slurm: true")
    slurm.put("a1-n01", "IDLE+DRAIN", "not muster: a benchmark")
    hold(access, "a1-n01")
    await mirror(access, ["a1-n01"])
    admit(access, "a1-n01")
    await mirror(access, ["a1-n01"])
    assert slurm.of("a1-n01") == ("IDLE+DRAIN", "not muster: a benchmark")


async def test_a_drain_that_ended_with_an_error_has_ended(make: Make, slurm: Slurm) -> None:
    access = make("slurm: true")
    admit(access, "a1-n01")
    slurm.put("a1-n01", "UNKNOWN+DRAIN", "muster: spare")
    assert await mirror(access, ["a1-n01"]) == []
    assert slurm.of("a1-n01") == ("UNKNOWN", "")


async def test_a_slurm_that_refuses_is_told_and_shown_later(make: Make, slurm: Slurm) -> None:
    access = make("slurm: true")
    hold(access, "a1-n01")
    slurm.refuse()
    (problem,) = await mirror(access, ["a1-n01"])
    assert problem.startswith("a1-n01: Slurm does not show its pool yet: scontrol ended with 1")
    slurm.mend()
    hold(access, "a1-n02")
    assert await mirror(access, ["a1-n02"]) == []
    assert slurm.of("a1-n01")[0] == "IDLE+DRAIN"


async def test_a_node_that_slurm_lacks_is_no_obstacle_to_the_others(make: Make, slurm: Slurm) -> None:
    access = make("slurm: true")
    hold(access, "a1-n01")
    hold(access, "a2-n01")
    assert await mirror(access, ["a1-n01", "a2-n01"]) == []
    assert slurm.of("a1-n01")[0] == "IDLE+DRAIN"


async def test_a_node_is_drained_before_it_is_wiped_so_that_no_job_comes_between(
    make: Make, slurm: Slurm
) -> None:
    access = make("slurm: true")
    admit(access, "a1-n01")
    await refuse_in_use(job_of(access, "a1-n01", reason="new image"), "released")
    assert slurm.of("a1-n01") == ("IDLE+DRAIN", "muster: i-1: new image")


async def test_a_node_that_runs_a_job_is_left_as_it_was_found(make: Make, slurm: Slurm) -> None:
    access = make("slurm: true")
    admit(access, "a1-n01")
    slurm.put("a1-n01", "MIXED")
    with pytest.raises(NodeFailed, match="Slurm says MIXED"):
        await refuse_in_use(job_of(access, "a1-n01"), "released")
    assert slurm.of("a1-n01") == ("MIXED", "")


async def test_a_refused_node_that_has_left_the_pool_stays_drained(make: Make, slurm: Slurm) -> None:
    access = make("slurm: true")
    admit(access, "a1-n01")
    access.store.set_pool("a1-n01", None, by="marta", why="re-image: new image")
    slurm.put("a1-n01", "MIXED")
    with pytest.raises(NodeFailed, match="Slurm says MIXED"):
        await refuse_in_use(job_of(access, "a1-n01"), "released")
    assert slurm.of("a1-n01")[0] == "MIXED+DRAIN"


async def test_a_node_that_cannot_be_drained_is_not_wiped_unless_an_operator_says_so(
    make: Make, slurm: Slurm
) -> None:
    access = make("slurm: true")
    admit(access, "a1-n01")
    slurm.refuse()
    with pytest.raises(NodeFailed, match="Access/permission denied") as raised:
        await refuse_in_use(job_of(access, "a1-n01"), "released")
    assert raised.value.code == "slurm-unanswered"
    await refuse_in_use(job_of(access, "a1-n01", override="in-use"), "released")
