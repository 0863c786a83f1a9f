"""Boot logs: what is taken out of lines, what is learned of boots, what is odd, and what is decided."""

from __future__ import annotations

import random
from dataclasses import replace
from pathlib import Path

import pytest

from benchmarks import boot_generator as generator
from benchmarks.bootlog import as_boot, measure, trained
from health.bootlog.anomalies import Oddity, find_anomalies, is_enough
from health.bootlog.boot import Boot, Cohort, cohort_of, read_boot
from health.bootlog.learn import learn
from health.bootlog.library import BOOTS_A_NODE, Library
from health.bootlog.masks import mask
from health.bootlog.model import BootModel, read_model
from health.bootlog.triage import Decision, NoSuchCard, TriageBook
from health.errors import Unreadable
from health.readers.kernel import KernelLine

COHORT = Cohort("lab", "1.2", "6.1.0", "550.1")
LINES = (
    "Linux version 6.1.0 (buildd@host) #1 SMP",
    "smp: Brought up 2 nodes, 224 CPUs",
    "nvme nvme0: pci function 0000:06:00.0",
    "nvme nvme0: 64/0/0 default/read/poll queues",
    "md/raid1:md0: active with 2 out of 2 devices",
)


def boot(*texts: str, node: str = "n1") -> Boot:
    return read_boot(node, [KernelLine(text, float(at)) for at, text in enumerate(texts)])


def model(*texts: str, boots: int = 30, nodes: int = 10) -> BootModel:
    return learn(COHORT, [boot(*texts, node=f"n{at % nodes}") for at in range(boots)])


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("nvme nvme0: pci function 0000:06:00.0", "nvme nvme11: pci function 0000:e1:00.0"),
        ("mlx5_core 0000:9c:00.0: link up", "mlx5_core 0000:1a:00.1: link up"),
        ("eth0: MAC 52:54:00:ab:01:02", "eth7: MAC 0c:42:a1:00:ff:10"),
        ("IMC GUID a088:c203:1e27:9227", "IMC GUID 0c42:a103:0000:0001"),
        ("reg 0x10: [mem 0x9d000000-0x9dffffff 64bit pref]", "reg 0x10: [mem 0xab-0xac 64bit pref]"),
        (
            "root=UUID=4cbd87ad-1f2a-4c3b-8d4e-5f6071829304 ro",
            "root=UUID=00000000-1111-2222-3333-444455556666 ro",
        ),
        ("Memory: 2113000001K/2113929216K available", "Memory: 8K/16K available"),
        ("hrtimer: interrupt took 4512 ns", "hrtimer: interrupt took 9 ns"),
        (
            "scsi 0:0:0:0: Direct-Access     ATA      ONE A1 PQ: 0",
            "scsi 2:0:0:0: Direct-Access     ATA  OTHER B PQ: 0",
        ),
    ],
)
def test_lines_that_differ_in_a_part_or_a_number_have_one_template(one: str, other: str) -> None:
    assert mask(one).template == mask(other).template
    assert not any(sign.isdecimal() for sign in mask(one).template.replace("mlx5_core", ""))


def test_lines_that_differ_in_words_have_their_own() -> None:
    assert mask("nvme nvme0: Device not ready").template != mask("nvme nvme0: Device is ready").template


def test_what_is_taken_out_is_kept_by_type() -> None:
    found = mask("mlx5_core 0000:9c:00.0: 504.112 Gb/s available (32.0 GT/s PCIe x16 link)")
    assert ("pci", "0000:9c:00.0") in found.values
    assert ("speed", "504.112 Gb/s") in found.values
    assert found.device == "0000:9c:00.0"


def test_a_cohort_is_what_the_log_itself_says() -> None:
    read = boot(
        "Linux version 5.15.0-122-generic (buildd@x) #1",
        "DMI: Dell Inc. PowerEdge XE9680/00A6B, BIOS 2.3.6 11/14/2024",
        "NVRM: loading NVIDIA UNIX x86_64 Kernel Module  550.127.05  Tue Oct  8 03:22:07 UTC 2024",
    )
    assert cohort_of("p", read) == Cohort("p", "2.3.6", "5.15.0-122-generic", "550.127.05")


def test_life_after_the_boot_is_not_the_boot() -> None:
    lines = [KernelLine("early", 1.0), KernelLine("much later", 5000.0)]
    assert read_boot("n", lines).texts == ("early",)


def test_a_boot_like_all_others_is_not_odd() -> None:
    assert find_anomalies(model(*LINES), boot(*LINES, node="new")) == ()


@pytest.mark.parametrize(
    ("lines", "oddity", "about"),
    [
        ((*LINES, "something that was never said"), Oddity.NOVEL, "something that was never said"),
        (
            LINES[:3] + LINES[4:],
            Oddity.MISSING,
            "nvme <device>: <number>/<number>/<number> default/read/poll queues",
        ),
        ((*LINES, LINES[1]), Oddity.MORE, LINES[1]),
        ((*LINES[:2], LINES[3], LINES[2], LINES[4]), Oddity.ORDER, LINES[3]),
        (
            (LINES[0], "smp: Brought up 2 nodes, 112 CPUs", *LINES[2:]),
            Oddity.VALUE,
            "smp: Brought up 2 nodes, 112 CPUs",
        ),
    ],
)
def test_what_is_odd_is_named(lines: tuple[str, ...], oddity: Oddity, about: str) -> None:
    found = find_anomalies(model(*LINES), boot(*lines, node="new"))
    assert (oddity, about) in {(one.oddity, one.line) for one in found}
    assert len(found) == 1


def test_fewer_lines_than_ever_are_odd() -> None:
    drives = tuple(f"nvme nvme{n}: pci function 0000:0{n}:00.0" for n in range(4))
    found = find_anomalies(model(*drives), boot(*drives[:3], node="new"))
    assert [one.oddity for one in found] == [Oddity.FEWER]
    assert "3 such lines; healthy boots have 4" in found[0].said


def test_a_count_that_varies_may_vary() -> None:
    some = [boot(*LINES, *["net: busy"] * (1 + at % 3), node=f"n{at % 9}") for at in range(30)]
    learned = learn(COHORT, some)
    assert find_anomalies(learned, boot(*LINES, *["net: busy"] * 4, node="new")) == ()
    assert find_anomalies(learned, boot(*LINES, *["net: busy"] * 40, node="new"))


def test_what_one_node_says_is_not_familiar() -> None:
    boots = [boot(*LINES, node=f"n{at % 10}") for at in range(30)]
    boots.append(boot(*LINES, "odd: only here", node="n3"))
    found = find_anomalies(learn(COHORT, boots), boot(*LINES, "odd: only here", node="new"))
    assert [(one.oddity, one.said) for one in found] == [(Oddity.NOVEL, "1 of 10 healthy nodes say this")]


def test_a_name_that_differs_on_every_node_is_learned_as_a_name() -> None:
    words = ("alder", "birch", "cedar", "maple", "rowan", "aspen")
    boots = [
        boot(*LINES, f"host: named {words[at % 6]} by the firmware", node=f"n{at % 6}") for at in range(30)
    ]
    assert (
        find_anomalies(learn(COHORT, boots), boot(*LINES, "host: named willow by the firmware", node="x"))
        == ()
    )


@pytest.mark.parametrize(
    "fault",
    [
        "NVRM: Xid (PCI:0000:9b:00): 79, pid=1, GPU has fallen off the bus.",
        "mce: [Hardware Error]: CPU 3: Machine Check Exception: 5 Bank 7: be00000001010091",
        "watchdog: BUG: soft lockup - CPU#44 stuck for 26s! [python3:73464]",
    ],
)
def test_a_boot_with_a_fault_teaches_nothing(fault: str) -> None:
    learned = learn(COHORT, [boot(*LINES, fault, node=f"n{at % 10}") for at in range(30)])
    assert learned.boots == 0
    assert not is_enough(learned)


def test_what_an_operator_denied_is_never_learned() -> None:
    texts = (*LINES, "vendor: the slow mode was chosen")
    boots = [boot(*texts, node=f"n{at % 10}") for at in range(30)]
    denied = frozenset({mask("vendor: the slow mode was chosen").template})
    assert learn(COHORT, boots).boots == 30
    assert learn(COHORT, boots, denied=denied).boots == 0


def test_a_boot_that_is_not_proven_whole_teaches_nothing() -> None:
    assert learn(COHORT, [replace(boot(*LINES), gap="the ring begins at record 9")]).boots == 0


def test_a_model_is_the_same_from_its_file() -> None:
    learned = trained()
    again = read_model(learned.to_json())
    assert again == learned
    broken = as_boot(generator.without_line(generator.make_boot(77, 1), random.Random(3)))
    assert find_anomalies(again, broken) == find_anomalies(learned, broken)


@pytest.mark.parametrize("text", ["", "{}", "[]", "null", '{"schema": 1}', '{"schema": 99, "cohort": {}}'])
def test_a_damaged_model_is_refused(text: str) -> None:
    with pytest.raises(Unreadable):
        read_model(text)
    with pytest.raises(Unreadable):
        read_model(trained().to_json()[:-40])


def test_cards_survive_and_decisions_hold_for_the_cohort(tmp_path: Path) -> None:
    learned = model(*LINES)
    odd = find_anomalies(learned, boot(*LINES, "new: something", node="a"))
    book = TriageBook(tmp_path / "triage" / "cards.jsonl")
    fresh = book.record("a", odd, now=100.0)
    assert [card.line for card in fresh] == ["new: something"]
    again = find_anomalies(learned, boot(*LINES, "new: something", node="b"))
    assert book.record("b", again, now=200.0) == ()
    book.decide(fresh[0].id, Decision.DENIED, by="ada", why="seen before a failure")

    reopened = TriageBook(tmp_path / "triage" / "cards.jsonl")
    card = reopened.card(fresh[0].id)
    assert (card.nodes, card.first_seen, card.last_seen) == (("a", "b"), 100.0, 200.0)
    assert (card.by, card.why) == ("ada", "seen before a failure")
    assert reopened.decisions.of(again[0], now=300.0) is Decision.DENIED
    other = replace(again[0], cohort=replace(COHORT, kernel="6.2.0"))
    assert reopened.decisions.of(other, now=300.0) is Decision.OPEN


def test_a_deferred_card_comes_back(tmp_path: Path) -> None:
    odd = find_anomalies(model(*LINES), boot(*LINES, "new: something", node="a"))
    book = TriageBook(tmp_path / "cards.jsonl")
    book.record("a", odd, now=1.0)
    book.decide(odd[0].id, Decision.DEFERRED, by="ada", until=50.0)
    assert book.decisions.of(odd[0], now=49.0) is Decision.DEFERRED
    assert book.decisions.of(odd[0], now=50.0) is Decision.OPEN


def test_a_book_that_was_damaged_or_a_card_that_is_not_there_is_said(tmp_path: Path) -> None:
    path = tmp_path / "cards.jsonl"
    with pytest.raises(NoSuchCard, match="0123456789"):
        TriageBook(path).card("0123456789")
    path.write_text('{"id": 1}\n', encoding="utf-8")
    with pytest.raises(Unreadable):
        TriageBook(path)


def test_a_library_keeps_the_last_boots_of_each_node(tmp_path: Path) -> None:
    library = Library(tmp_path)
    assert library.model(COHORT) is None
    for number in range(BOOTS_A_NODE + 3):
        for node in ("a", "b", "c"):
            library.add(COHORT, boot(*LINES, node=node), f"boot-{number}")
    library.add(COHORT, replace(boot(*LINES, node="d"), gap="cut"), "boot-0")
    assert len(library.boots(COHORT)) == 3 * BOOTS_A_NODE
    learned = library.learn(COHORT)
    assert (learned.nodes, learned.boots) == (3, 3 * BOOTS_A_NODE)
    assert Library(tmp_path).model(COHORT) == learned
    assert library.model(replace(COHORT, driver="560.1")) is None


def test_a_damaged_file_of_the_library_is_said(tmp_path: Path) -> None:
    library = Library(tmp_path)
    library.add(COHORT, boot(*LINES), "one")
    path = next(tmp_path.glob("*/boots/*.json.gz"))
    path.write_bytes(path.read_bytes()[:-9])
    with pytest.raises(Unreadable, match="damaged"):
        library.boots(COHORT)


def test_generated_boots_are_told_from_broken_ones() -> None:
    result = measure(40)
    assert result["recall_catalogued"] >= 0.99
    assert result["recall_missing"] >= 0.97
    assert result["recall_novel"] >= 0.95
    assert result["recall_reordered"] >= 0.85  # 0.90 over more trials than fit here
    assert result["false_lines_a_boot"] <= 0.2
    assert result["truncated_passed"] == 0
