"""What an operator types and reads: golden files hold it byte for byte, ages and times left out."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from invoke.collection import Collection
from invoke.program import Program
from invoke.tasks import Task

from inventory.model import Pool
from provision.access import Access
from provision.cli.namespace import collection
from tests.unit.pools.conftest import Make
from tests.unit.pools.making import admit, hold, judge

GOLDEN = Path(__file__).with_name("golden")
A1 = [f"a1-n{number:02}" for number in range(1, 7)]
_CHANGING = (
    (re.compile(r"\b\d+[smhd]\b(?= |$)"), "AGE"),
    (re.compile(r"\d{4}-\d\d-\d\d(T| )\d\d:\d\d(:\d\dZ|Z)?"), "TIME"),
    (re.compile(r"/[^ ]*/(?=hosts|state)"), "TMP/"),
)


@dataclass(frozen=True)
class Ended:
    """How a command ended."""

    status: int
    out: str
    err: str


Run = Callable[..., Ended]


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str], access: Access) -> Run:
    """Run one command line as `invoke` does."""
    del access  # has set the environment

    namespace = collection()
    helps = [(task, dict(task.help)) for task in tasks(namespace)]

    def go(*words: str) -> Ended:
        status = 0
        try:
            Program(namespace=namespace, name="x", binary="x").run(["x", *words])
        except SystemExit as end:
            status = int(end.code or 0)
        finally:
            for task, texts in helps:  # Invoke's parser takes them out as it reads them
                task.help = dict(texts)
        return Ended(status, *capsys.readouterr())

    return go


def tasks(namespace: Collection) -> Iterator[Task[object]]:
    """Every task of a namespace."""
    yield from namespace.tasks.values()
    for branch in namespace.collections.values():
        yield from tasks(branch)


def golden(name: str, ended: Ended) -> None:
    """Compare with the golden file, or say what it should hold."""
    text = f"$ ended with {ended.status}\n--- stdout\n{ended.out}--- stderr\n{ended.err}"
    for pattern, word in _CHANGING:
        text = pattern.sub(word, text)
    path = GOLDEN / f"{name}.txt"
    assert text == (path.read_text() if path.exists() else ""), f"{path.name} should hold:\n{text}"


def test_status_of_an_empty_site(run: Run) -> None:
    golden("status-empty", run("pool.status"))


def test_status_says_who_has_what_and_what_needs_a_human(run: Run, access: Access) -> None:
    admit(access, *A1, "b1-n01", "b1-n02", "b1-n03", "b1-n04")
    access.store.allocate("train", A1[:3], who="ana", why="pretraining")
    for name in A1[:2]:
        hold(access, name)
    judge(access, A1[4], "no", "gpu.count: 7 of 8")
    golden("status-needs-a-human", run("pool.status"))
    told = json.loads(run("pool.status", "--output", "json").out)["pools"][0]
    assert told["breaker"]["open"] is True
    assert told["allocations"][0]["bad"] == "a1-n[01-02]"
    assert told["without_a_fresh_yes"] == [A1[4]]


def test_allocate_prints_the_nodes_with_their_health(run: Run, access: Access, tmp_path: Path) -> None:
    admit(access, *A1[:3])
    judge(access, A1[0], "yes", "gpu.ecc: 2 corrected")
    hosts = tmp_path / "hosts"
    first = run("pool.allocate", "--count", "2", "--name", "train", "--hostfile", str(hosts), "--slots", "8")
    golden("allocate", first)
    assert hosts.read_text() == "a1-n02 slots=8\na1-n03 slots=8\n"
    hosts.unlink()
    again = run("pool.allocate", "--count", "2", "--name", "train", "--hostfile", str(hosts))
    assert again.err.startswith("train already has 2 nodes of 1 rack")
    assert hosts.read_text() == "a1-n02\na1-n03\n"


def test_allocate_without_a_name_makes_one(run: Run, access: Access) -> None:
    admit(access, A1[0])
    ended = run("pool.allocate", "--count", "1", "--output", "nodeset")
    assert (ended.status, ended.out) == (0, "a1-n01\n")
    (one,) = access.store.allocations().values()
    assert ended.err == f"{one.name} has 1 node of 1 rack\n"
    assert re.fullmatch(r"a-\d{4}-\d{6}", one.name)


def test_a_dry_run_shows_the_same_nodes_and_writes_nothing(run: Run, access: Access, tmp_path: Path) -> None:
    admit(access, *A1)
    before = (access.store.events(), sorted(access.settings.state.rglob("*")))
    dry = run("pool.allocate", "--count", "3", "--name", "x", "--hostfile", str(tmp_path / "h"), "--dry-run")
    assert (access.store.events(), sorted(access.settings.state.rglob("*"))) == before
    assert not (tmp_path / "h").exists()
    assert dry.err == "nothing was changed\n"
    assert run("pool.allocate", "--count", "3", "--name", "x").out == dry.out


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("allocate-too-many", ["--count", "5", "--name", "big"]),
        ("allocate-no-count", ["--name", "big"]),
        ("allocate-bad-count", ["--count", "half"]),
        ("allocate-bad-profile", ["--count", "1", "--profile", "huge"]),
        ("allocate-bad-hostfile", ["--count", "1", "--hostfile", "/nowhere/hosts"]),
        ("allocate-bad-name", ["--count", "1", "--name", "../x"]),
        ("allocate-name-taken", ["--count", "1", "--name", "toms"]),
        ("allocate-other-count", ["--count", "2", "--name", "mine"]),
    ],
)
def test_what_cannot_be_handed_out_is_three_lines_and_changes_nothing(
    run: Run, access: Access, name: str, words: list[str]
) -> None:
    admit(access, *A1[:4])
    access.store.allocate("toms", A1[:1], who="tom")
    access.store.allocate("mine", A1[1:2], who="marta")
    before = access.store.events()
    ended = run("pool.allocate", *words)
    golden(name, ended)
    assert len(ended.err.splitlines()) == 3
    assert access.store.events() == before


def test_ones_own_nodes_are_returned_without_a_question(run: Run, access: Access) -> None:
    admit(access, *A1[:2])
    access.store.allocate("train", A1[:2], who="marta")
    golden("return", run("pool.return", "--name", "train"))
    golden("return-unknown", run("pool.return", "--name", "train"))
    golden("return-idle", run("pool.return", "--nodes", A1[0]))


def test_anothers_nodes_are_returned_only_with_a_yes(run: Run, access: Access) -> None:
    admit(access, A1[0])
    access.store.allocate("train", A1[:1], who="tom")
    assert run("pool.return", "--nodes", A1[0]).status == 3
    assert A1[0] in access.store.allocations()
    assert run("pool.return", "--nodes", A1[0], "--reason", "tom left", "--yes").status == 0
    assert access.store.allocations() == {}
    assert access.store.events()[-1].message == "returned from train: tom left"


def test_replace_says_who_takes_whose_place_and_relaunches(run: Run, access: Access, tmp_path: Path) -> None:
    admit(access, *A1[:2])
    admit(access, A1[5], "b1-n01", pool=Pool.SPARE)
    access.store.allocate("train", A1[:2], who="ana")
    hosts, seen = tmp_path / "hosts", tmp_path / "seen"
    words = ["pool.replace", "--nodes", A1[0], "--reason", "Xid 79", "--hostfile", str(hosts), "--yes"]
    words += ["--run", f"cat $MUSTER_HOSTFILE >> {seen}"]
    golden("replace-dry-run", run(*words, "--dry-run"))
    assert access.store.node(A1[0]).pool is Pool.RELIABLE
    golden("replace", run(*words))
    assert hosts.read_text() == seen.read_text() == "a1-n06\na1-n02\n"
    golden("replace-again", run(*words))
    assert seen.read_text() == hosts.read_text() * 2


def test_replace_without_a_hostfile_gives_the_command_the_sites_own(
    run: Run, access: Access, tmp_path: Path
) -> None:
    admit(access, *A1[:2])
    admit(access, A1[5], pool=Pool.SPARE)
    access.store.allocate("train", A1[:2], who="ana")
    seen = tmp_path / "seen"
    ended = run(
        "pool.replace", "--nodes", A1[1], "--reason", "x", "--yes", "--run", f"cp $MUSTER_HOSTFILE {seen}"
    )
    assert ended.status == 0, ended.err
    assert seen.read_text() == "a1-n01\na1-n06\n"


def test_replacements_that_cannot_be_are_said(run: Run, access: Access) -> None:
    admit(access, *A1[:3])
    admit(access, A1[5], pool=Pool.SPARE)
    access.store.allocate("train", A1[:2], who="ana")
    access.store.allocate("other", A1[2:3], who="tom")
    both = ["pool.replace", "--nodes", "a1-n[01-02]", "--reason", "Xid 79", "--yes"]
    golden("replace-short", run(*both))
    golden(
        "replace-two-allocations",
        run("pool.replace", "--nodes", "a1-n[02-03]", "--reason", "x", "--run", "true", "--partial"),
    )
    golden("replace-no-reason", run("pool.replace", "--nodes", "a1-n01"))
    assert access.store.node(A1[0]).pool is Pool.RELIABLE
    golden("replace-partial", run(*both, "--partial"))
    golden(
        "replace-relaunch-failed",
        run("pool.replace", "--nodes", "a1-n01", "--reason", "x", "--yes", "--run", "exit 7"),
    )


def test_balance_shows_its_moves_and_asks(run: Run, access: Access) -> None:
    admit(access, *A1[:3])
    admit(access, *A1[3:], pool=Pool.SPARE)
    golden("balance-dry-run", run("pool.balance", "--dry-run"))
    assert run("pool.balance").status == 3
    assert access.store.node(A1[3]).pool is Pool.SPARE
    assert run("pool.balance", "--yes").status == 0
    golden("balance-nothing", run("pool.balance", "--yes"))


def test_resume_lifts_the_breaker_with_a_reason_and_says_what_is_left(run: Run, access: Access) -> None:
    golden("resume-nothing", run("pool.resume", "--reason", "x"))
    golden("resume-no-reason", run("pool.resume"))
    admit(access, *A1)
    for name in A1[:2]:
        hold(access, name)
    judge(access, A1[2], "no", "gpu.count: 7 of 8")
    golden("status-stopped", run("status"))
    golden("resume", run("pool.resume", "--reason", "switch replaced"))
    assert access.store.breaker().tripped_at is None
    assert run("status").err == ""


def test_mirror_brings_the_files_up_to_date(run: Run, access: Access) -> None:
    admit(access, *A1)
    golden("mirror", run("pool.mirror"))
    assert (access.settings.state / "hostfiles" / "reliable").read_text().split() == A1


def test_nothing_is_handed_out_while_slurm_cannot_be_asked(
    run: Run, access: Access, make: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    make("slurm: true")
    monkeypatch.setenv("PATH", "/nowhere")
    admit(access, *A1)
    golden("allocate-no-slurm", run("pool.allocate", "--count", "1"))
