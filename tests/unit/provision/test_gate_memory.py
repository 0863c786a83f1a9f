"""What the gate knows beside evidence: repairs, an earlier reading, the like, and boots; lost, it goes on."""

from __future__ import annotations

import random
from dataclasses import replace
from pathlib import Path

import pytest

from benchmarks import boot_generator
from benchmarks.boot_forms import BOOTED_AT, as_console
from benchmarks.recorded_nodes import Document, load
from bmc.console.store import Event as ConsoleEvent
from bmc.console.store import EventKind as ConsoleKind
from bmc.console.store import Writer
from health.bootlog.boot import Witness
from health.check import Level
from health.evidence import Context, Evidence
from health.outcome import Outcome, Status
from health.verdict import Answer, Verdict, verdict
from inventory.model import Pool, Stage
from provision.access import Access
from provision.gate_memory import REPAIRED, GateMemory
from tests.unit.provision.making import admit

NODE = load("xe9680-h100")
NAME = "r1-n01"


def evidence(memory: GateMemory, name: str = NAME) -> Evidence:
    found = NODE.evidence()
    context = memory.context(memory.access.node(name), NODE.profile, found, NODE.collected_at)
    return replace(found, context=context)


def judged(found: Evidence) -> Verdict:
    return verdict(found, NODE.profile, Level.QUICK, collected_at=NODE.collected_at, context=found.context)


def remember(memory: GateMemory, name: str, found: Evidence) -> None:
    memory.remember(memory.access.node(name), NODE.profile, found, judged(found))


def _another_boot(document: Document) -> None:
    for moment in ("began", "ended"):
        document[moment] = {**document[moment], "boot_id": "another"}


def test_a_node_without_a_past_is_judged_by_its_evidence_alone(access: Access) -> None:
    context = evidence(GateMemory(access)).context
    assert (context.repaired_at, context.baseline, context.boots) == (None, None, None)
    assert context.collected_at == NODE.collected_at
    assert not context.medians


def test_a_fix_and_a_humans_release_acknowledge_a_repair_and_automation_does_not(access: Access) -> None:
    store = access.store
    store.set_pool(NAME, Pool.QUARANTINE, by="automation", why="gate: no")
    store.set_pool(NAME, None, by="automation", why="a new run")
    assert evidence(GateMemory(access)).context.repaired_at is None
    store.set_pool(NAME, Pool.REPAIR, by="marta", why="new GPU")
    store.set_pool(NAME, None, by="marta", why="replaced")
    released = evidence(GateMemory(access)).context.repaired_at
    assert released == pytest.approx(store.node(NAME).pool_since.timestamp())  # type: ignore[union-attr]
    store.event(NAME, REPAIRED, message="repaired by gpu_reset")
    fixed = evidence(GateMemory(access)).context.repaired_at
    assert fixed is not None
    assert released is not None
    assert fixed >= released


def test_counters_are_compared_with_the_last_yes_of_the_same_boot(access: Access, tmp_path: Path) -> None:
    path = tmp_path / "evidence.json"
    path.write_bytes(NODE.raw())
    access.store.record_verdict(NAME, run=None, level="quick", answer="yes", reasons=[], evidence=str(path))
    baseline = evidence(GateMemory(access)).context.baseline
    assert baseline is not None
    assert baseline.began.boot_id == NODE.evidence().began.boot_id


def test_an_earlier_boot_is_no_baseline_and_neither_is_a_no(access: Access, tmp_path: Path) -> None:
    path = tmp_path / "evidence.json"
    path.write_bytes(NODE.raw(_another_boot))
    access.store.record_verdict(NAME, run=None, level="quick", answer="yes", reasons=[], evidence=str(path))
    assert evidence(GateMemory(access)).context.baseline is None
    path.write_bytes(NODE.raw())
    access.store.record_verdict(
        "r1-n02", run=None, level="quick", answer="no", reasons=[], evidence=str(path)
    )
    assert evidence(GateMemory(access), "r1-n02").context.baseline is None


def test_boots_teach_once_their_nodes_are_reliable_and_no_others_do(access: Access) -> None:
    memory = GateMemory(access)
    for name in (NAME, "r1-n02", "r1-n03"):
        remember(memory, name, evidence(memory, name))
    assert memory.learn() == ()
    admit(access, NAME, "r1-n02")
    (model,) = memory.learn()
    assert (model.nodes, model.boots) == (2, 2)
    access.store.set_pool("r1-n02", Pool.QUARANTINE, by="marta", why="smells")
    access.store.reach("r1-n04", Stage.VERIFIED, run=None)
    remember(memory, "r1-n04", evidence(memory, "r1-n04"))
    admit(access, "r1-n04")
    (model,) = memory.learn()
    assert model.nodes == 2
    assert evidence(GateMemory(access)).context.boots == model


def record(access: Access, *what: bytes | ConsoleKind, name: str = NAME) -> None:
    """Record a console as a boot stage does."""
    writer = Writer(access.settings.console_folder(name), name)
    writer.open(BOOTED_AT)
    for second, one in enumerate((ConsoleKind.STARTED, ConsoleKind.ACTIVE, *what)):
        if isinstance(one, ConsoleKind):
            writer.event(ConsoleEvent(BOOTED_AT + second, one))
        else:
            writer.data(BOOTED_AT + second, one)
    writer.close()


def on_console(node: int = 1) -> bytes:
    return as_console(boot_generator.make_boot(node, 1), random.Random(node)).encode()


def ring_that_lost_its_beginning() -> Evidence:
    """Healthy evidence of the boot that `on_console` shows, but for the kernel's log."""
    whole = NODE.evidence()
    ring = whole.items["kernel.kmsg"]
    late = "".join(ring.text.splitlines(keepends=True)[10:])
    items = {id: item for id, item in whole.items.items() if id != "kernel.journal"}
    began = replace(whole.began, boot_time=float(BOOTED_AT))
    return replace(whole, began=began, items={**items, ring.id: replace(ring, text=late)})


def context_of(access: Access, found: Evidence) -> Context:
    return GateMemory(access).context(access.node(NAME), NODE.profile, found, NODE.collected_at)


def test_a_recorded_console_is_read_where_the_ring_is_not_whole_and_only_there(access: Access) -> None:
    assert context_of(access, ring_that_lost_its_beginning()).console is None
    record(access, b"an older boot\r\n" + on_console(2), on_console(), ConsoleKind.STOPPED)
    console = context_of(access, ring_that_lost_its_beginning()).console
    assert console is not None
    assert (console.text.endswith("gpu-node login: "), console.gaps) == (True, ())
    assert "an older boot" not in console.text
    assert context_of(access, NODE.evidence()).console is None


@pytest.mark.parametrize("lost", [ConsoleKind.LOST, ConsoleKind.STOLEN, ConsoleKind.OVERRUN])
def test_where_a_recording_may_lack_bytes_is_told(access: Access, lost: ConsoleKind) -> None:
    shown = on_console()
    record(access, shown[:3000], lost, ConsoleKind.RECOVERED, shown[3000:], ConsoleKind.STOPPED)
    console = context_of(access, ring_that_lost_its_beginning()).console
    assert console is not None
    assert len(console.gaps) == 1
    assert console.gaps[0].startswith(f"{lost} at 2026-")


@pytest.mark.parametrize("between", [(ConsoleKind.STOPPED,), ()], ids=["ended", "killed"])
def test_what_nobody_recorded_between_two_recordings_is_a_gap(
    access: Access, between: tuple[ConsoleKind, ...]
) -> None:
    shown = on_console()
    record(access, shown[:3000], *between, ConsoleKind.STARTED, shown[3000:], ConsoleKind.STOPPED)
    console = context_of(access, ring_that_lost_its_beginning()).console
    assert console is not None
    assert [gap.partition(" from ")[0] for gap in console.gaps] == ["nobody recorded it"]


def test_boots_that_only_consoles_saw_teach_what_is_usual_on_consoles(access: Access) -> None:
    memory = GateMemory(access)
    for number, name in enumerate((NAME, "r1-n02"), 1):
        record(access, on_console(number), ConsoleKind.STOPPED, name=name)
        found = ring_that_lost_its_beginning()
        context = memory.context(access.node(name), NODE.profile, found, NODE.collected_at)
        yes = replace(judged(NODE.evidence()), answer=Answer.YES)
        memory.remember(access.node(name), NODE.profile, replace(found, context=context), yes)
    admit(access, NAME, "r1-n02")
    (model,) = memory.learn()
    assert (model.cohort.witness, model.boots) == (Witness.CONSOLE, 2)
    assert context_of(access, ring_that_lost_its_beginning()).boots == model


def test_a_refused_node_keeps_neither_boot_nor_measure(access: Access) -> None:
    memory = GateMemory(access)
    found = evidence(memory)
    refused = replace(judged(found), answer=Answer.NO)
    memory.remember(access.node(NAME), NODE.profile, found, refused)
    admit(access, NAME)
    assert memory.learn() == ()
    assert not list((access.settings.state / "measured").rglob("*.json"))


def test_medians_are_of_reliable_nodes_and_of_enough(access: Access) -> None:
    memory = GateMemory(access)
    found = evidence(memory)
    names = [f"r1-n0{number}" for number in range(1, 7)]
    for number, name in enumerate(names):
        outcome = Outcome("gpu.gemm", Status.PASS, (), "", {"gemm": 700.0 + number})
        good = replace(judged(found), answer=Answer.YES, outcomes=(outcome,))
        memory.remember(access.node(name), NODE.profile, found, good)
    admit(access, *names[:4])
    assert not evidence(GateMemory(access)).context.medians
    admit(access, names[4])
    assert evidence(GateMemory(access)).context.medians == {"gemm": 702.0}


def test_a_memory_that_cannot_be_read_is_left_out_and_said_once(access: Access) -> None:
    cards = access.settings.state / "boots" / "cards"
    cards.mkdir(parents=True)
    (cards / "x.json").write_text("{")
    measured = access.settings.state / "measured" / NODE.profile.name
    measured.mkdir(parents=True)
    (measured / f"{NAME}.json").write_text("[")
    memory = GateMemory(access)
    for _ in range(2):
        context = evidence(memory).context
    assert not context.medians
    assert not context.triage.by_card
    assert len(memory.problems) == 2
