"""Boot logs: what is taken out of lines, what is learned of boots, what is odd, and what is decided."""

from __future__ import annotations

import random
from dataclasses import replace

import pytest

from benchmarks import boot_generator as generator
from benchmarks.boot_forms import BOOTED_AT, as_console
from benchmarks.bootlog import as_boot, console_model, measure, measure_certain, measure_console, trained
from benchmarks.recorded_nodes import load
from health.bootlog.anomalies import Oddity, find_anomalies, is_enough
from health.bootlog.boot import Boot, Cohort, cohort_of, read_boot
from health.bootlog.console import Console, read_console
from health.bootlog.learn import learn
from health.bootlog.masks import mask
from health.bootlog.model import BootModel, read_model
from health.bootlog.triage import (
    Card,
    Decision,
    decide,
    decisions,
    denied_templates,
    in_order,
    note,
    read_card,
)
from health.boots import (
    BOOTS_A_COHORT,
    BOOTS_A_NODE,
    SavedBoot,
    cohort_seen,
    learn_cohort,
    oddities,
    read_saved,
    saved_boot,
    worth_keeping,
)
from health.checks.kernel_boot_log import CHECK
from health.errors import Unreadable
from health.outcome import Outcome, Status
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
    return taught([boot(*texts, node=f"n{at % nodes}") for at in range(boots)])


def taught(boots: list[Boot], denied: frozenset[str] = frozenset()) -> BootModel:
    return learn(COHORT, boots, reliable=frozenset(one.node for one in boots), denied=denied)


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
    learned = taught(some)
    assert find_anomalies(learned, boot(*LINES, *["net: busy"] * 4, node="new")) == ()
    assert find_anomalies(learned, boot(*LINES, *["net: busy"] * 40, node="new"))


def test_what_one_node_says_is_not_familiar() -> None:
    boots = [boot(*LINES, node=f"n{at % 10}") for at in range(30)]
    boots.append(boot(*LINES, "odd: only here", node="n3"))
    found = find_anomalies(taught(boots), boot(*LINES, "odd: only here", node="new"))
    assert [(one.oddity, one.said) for one in found] == [(Oddity.NOVEL, "1 of 10 healthy nodes say this")]


def test_a_name_that_differs_on_every_node_is_learned_as_a_name() -> None:
    words = ("alder", "birch", "cedar", "maple", "rowan", "aspen")
    boots = [
        boot(*LINES, f"host: named {words[at % 6]} by the firmware", node=f"n{at % 6}") for at in range(30)
    ]
    assert find_anomalies(taught(boots), boot(*LINES, "host: named willow by the firmware", node="x")) == ()


@pytest.mark.parametrize(
    "fault",
    [
        "NVRM: Xid (PCI:0000:9b:00): 79, pid=1, GPU has fallen off the bus.",
        "mce: [Hardware Error]: CPU 3: Machine Check Exception: 5 Bank 7: be00000001010091",
        "watchdog: BUG: soft lockup - CPU#44 stuck for 26s! [python3:73464]",
    ],
)
def test_a_boot_with_a_fault_teaches_nothing(fault: str) -> None:
    learned = taught([boot(*LINES, fault, node=f"n{at % 10}") for at in range(30)])
    assert learned.boots == 0
    assert not is_enough(learned)


def test_what_an_operator_denied_is_never_learned() -> None:
    texts = (*LINES, "vendor: the slow mode was chosen")
    boots = [boot(*texts, node=f"n{at % 10}") for at in range(30)]
    denied = frozenset({mask("vendor: the slow mode was chosen").template})
    assert taught(boots).boots == 30
    assert taught(boots, denied=denied).boots == 0


def test_a_boot_that_is_not_proven_whole_teaches_nothing() -> None:
    assert taught([replace(boot(*LINES), gap="the ring begins at record 9")]).boots == 0


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


def test_a_card_is_the_cohorts_and_survives_as_text() -> None:
    learned = model(*LINES)
    odd = find_anomalies(learned, boot(*LINES, "new: something", node="a"))
    cards = {card.id: card for card in note({}, "a", odd, 100.0)}
    assert [card.line for card in cards.values()] == ["new: something"]
    again = find_anomalies(learned, boot(*LINES, "new: something", node="b"))
    (known,) = note(cards, "b", again, 200.0)
    denied = decide(known, Decision.DENIED, by="ada", at=250.0, why="seen before a failure")

    card = read_card(denied.to_json())
    assert card == denied
    assert (card.nodes, card.first_seen, card.last_seen) == (("a", "b"), 100.0, 200.0)
    assert (card.by, card.why, card.decided_at) == ("ada", "seen before a failure", 250.0)
    assert decisions([card]).of(again[0], now=300.0) is Decision.DENIED
    other = replace(again[0], cohort=replace(COHORT, kernel="6.2.0"))
    assert decisions([card]).of(other, now=300.0) is Decision.OPEN
    assert denied_templates([card], COHORT) == {"new: something"}
    assert denied_templates([card], other.cohort) == set()


def test_a_deferred_card_comes_back() -> None:
    odd = find_anomalies(model(*LINES), boot(*LINES, "new: something", node="a"))
    (card,) = note({}, "a", odd, 1.0)
    assert card.open_at(1.0)
    later = decide(card, Decision.DEFERRED, by="ada", at=2.0, until=50.0)
    assert decisions([later]).of(odd[0], now=49.0) is Decision.DEFERRED
    assert not later.open_at(49.0)
    assert decisions([later]).of(odd[0], now=50.0) is Decision.OPEN
    assert later.open_at(50.0)


def test_cards_of_most_nodes_come_first() -> None:
    learned = model(*LINES)
    cards: dict[str, Card] = {}
    for node, text in (("a", "one: thing"), ("b", "other: matter"), ("c", "other: matter")):
        odd = find_anomalies(learned, boot(*LINES, text, node=node))
        cards |= {card.id: card for card in note(cards, node, odd, 1.0)}
    assert [card.line for card in in_order(cards.values())] == ["other: matter", "one: thing"]


@pytest.mark.parametrize("text", ["", "{}", "[]", "null", '{"id": 1}', '{"schema": 2}'])
def test_a_damaged_card_or_boot_is_refused(text: str) -> None:
    with pytest.raises(Unreadable):
        read_card(text)
    with pytest.raises(Unreadable):
        read_saved(text)


def saved(node: str, number: int, *texts: str, faults: tuple[str, ...] = ()) -> SavedBoot:
    return SavedBoot(node, f"boot-{number}", float(number), COHORT, texts, faults)


def test_the_newest_boots_of_each_node_are_kept() -> None:
    many = [saved(node, number, *LINES) for number in range(8) for node in ("a", "b", "c")]
    kept = worth_keeping(many)
    assert len(kept) == 3 * BOOTS_A_NODE
    assert {one.at for one in kept} == {3.0, 4.0, 5.0, 6.0, 7.0}
    fleet = [saved(f"n{node}", number, *LINES) for number in range(3) for node in range(150)]
    assert len({one.node for one in worth_keeping(fleet)}) == 150
    assert len(worth_keeping(fleet)) == BOOTS_A_COHORT


def test_only_nodes_that_are_reliable_now_teach() -> None:
    kept = [saved(f"n{at % 10}", at, *LINES) for at in range(30)]
    kept += [saved("sick", at, *LINES, "odd: only here") for at in range(5)]
    assert [read_saved(one.to_json()) for one in kept] == kept
    everyone = frozenset(f"n{at}" for at in range(10))
    assert learn_cohort(COHORT, kept, reliable=everyone).boots == 30
    assert "odd: only here" not in learn_cohort(COHORT, kept, reliable=everyone).templates
    assert "odd: only here" in learn_cohort(COHORT, kept, reliable=everyone | {"sick"}).templates
    assert learn_cohort(COHORT, kept, reliable=frozenset({"n1", "n2"})).nodes == 2
    other = replace(COHORT, driver="560.1")
    assert learn_cohort(other, kept, reliable=everyone).boots == 0


def test_what_was_denied_on_a_card_is_not_learned_from_saved_boots() -> None:
    odd = find_anomalies(model(*LINES), boot(*LINES, "new: something", node="a"))
    (card,) = note({}, "a", odd, 1.0)
    kept = [saved(f"n{at % 10}", at, *LINES, *["new: something"] * (at % 2)) for at in range(30)]
    everyone = frozenset(f"n{at}" for at in range(10))
    denied = decide(card, Decision.DENIED, by="ada", at=2.0)
    assert learn_cohort(COHORT, kept, reliable=everyone, cards=[card]).boots == 30
    assert learn_cohort(COHORT, kept, reliable=everyone, cards=[denied]).boots == 15


def test_a_boot_of_evidence_is_kept_with_its_cohort_and_judged_alike() -> None:
    node = load("xe9680-h100")
    whole = node.evidence()
    kept = saved_boot(whole, node.profile, "n1", 5.0)
    assert kept is not None
    assert cohort_seen(whole, node.profile) == (kept.cohort, True)
    many = [replace(kept, node=f"n{at % 10}", boot_id=str(at)) for at in range(30)]
    learned = learn_cohort(kept.cohort, many, reliable=frozenset(f"n{at}" for at in range(10)))
    assert oddities(whole, node.profile, learned) == ()
    ring = whole.items["kernel.kmsg"]
    lines = ring.text.splitlines(keepends=True)
    cut = replace(whole, items={**whole.items, ring.id: replace(ring, text="".join(lines[:4] + lines[5:]))})
    assert saved_boot(cut, node.profile, "n1", 5.0) is None
    assert oddities(cut, node.profile, learned) == ()
    assert oddities(whole, node.profile, None) == ()


def test_a_line_of_the_deny_list_is_neither_odd_nor_learned() -> None:
    mild = "mce: CPU0: Core temperature above threshold, cpu clock throttled (total events = 1)"
    read = boot(*LINES, mild)
    assert read.faults == (mild,)
    assert find_anomalies(model(*LINES), read) == ()
    assert not any("temperature" in text for text in model(*LINES, mild).templates)


def test_generated_boots_on_a_console_are_told_from_broken_ones() -> None:
    result = measure_console(8)
    assert result["console_recall_missing"] >= 0.95
    assert result["console_recall_novel"] >= 0.95
    assert result["console_false_lines_a_boot"] <= 0.2
    assert result["console_healthy_doubted"] == 0


def console(*changes: tuple[str, str], gaps: tuple[str, ...] = ()) -> Console:
    text = as_console(generator.make_boot(3, 1), random.Random(1))
    for old, new in changes:
        assert old in text
        text = text.replace(old, new, 1)
    return Console(text, gaps)


def test_a_console_tells_when_its_boot_began() -> None:
    seen = read_console(console())
    assert seen.gap is None
    assert seen.booted_at is not None
    assert abs(seen.booted_at - BOOTED_AT) < 1
    assert seen.is_boot_of(BOOTED_AT + 20)
    assert not seen.is_boot_of(BOOTED_AT + 4000)


@pytest.mark.parametrize(
    ("shown", "why"),
    [
        (console(gaps=("the BMC was reset at 09:01",)), "the BMC was reset at 09:01"),
        (console(("Linux version", "inux version")), "no boot from its first line"),
        (console(("iommu=pt console=tty0", "iommu=pt quiet console=tty0")), "(quiet)"),
        (console(("iommu=pt console=tty0", "iommu=pt loglevel=4 console=tty0")), "(loglevel=4)"),
        (console(("[    0.000000] KERNEL supported", "RNEL supported")), "is mangled"),
        (console(("gpu-node login: ", ""), ("Multi-User", "Basic")), "ends before the node was up"),
        (Console(""), "no boot from its first line"),
    ],
)
def test_a_console_that_does_not_show_all_is_not_whole(shown: Console, why: str) -> None:
    assert why in (read_console(shown).gap or "")


def test_a_kernel_told_to_say_all_is_not_quiet() -> None:
    assert read_console(console(("iommu=pt", "iommu=pt quiet loglevel=7"))).gap is None
    assert read_console(console(("iommu=pt", "iommu=pt quiet debug"))).gap is None


def test_of_two_boots_on_a_console_the_last_counts() -> None:
    first, last = console(("gpu-node login: ", "")), console()
    assert read_console(Console(first.text + last.text)) == read_console(last)


def test_a_console_stands_in_for_a_ring_that_lost_its_beginning() -> None:
    node = load("xe9680-h100")
    whole = node.evidence()
    ring = whole.items["kernel.kmsg"]
    late = "".join(ring.text.splitlines(keepends=True)[10:])
    items = {id: item for id, item in whole.items.items() if id != "kernel.journal"}
    lost = replace(whole, items={**items, ring.id: replace(ring, text=late)})
    learned = console_model()

    def outcome(shown: Console, boot_time: float = float(BOOTED_AT)) -> Outcome:
        began = replace(lost.began, boot_time=boot_time)
        context = replace(lost.context, console=shown, boots=learned)
        return CHECK.judge(replace(lost, began=began, context=context), node.profile)

    assert outcome(console()).status is Status.PASS
    assert outcome(console(), boot_time=5.0).status is Status.UNKNOWN
    assert outcome(console(gaps=("a gap",))).status is Status.UNKNOWN
    novel = "[   10.000000] new: never said before\r\n"
    odd = outcome(console(("[    9.000000]", f"{novel}[    9.000000]")))
    assert odd.status is Status.UNKNOWN  # time goes back
    fault = "NVRM: Xid (PCI:0000:9b:00): 79, pid=1, GPU has fallen off the bus."
    assert (
        outcome(console(("gpu-node login", f"[   90.000000] {fault}\r\ngpu-node login"))).status
        is Status.FAIL
    )


def test_generated_boots_are_told_from_broken_ones() -> None:
    result = measure(12, range(100, 130))
    assert result["recall_missing"] >= 0.97
    assert result["recall_novel"] >= 0.95
    assert result["recall_reordered"] >= 0.85  # 0.90 over more trials than fit here
    assert result["false_lines_a_boot"] <= 0.2


def test_every_fault_of_the_catalogue_is_found_and_no_truncated_log_passes() -> None:
    result = measure_certain(range(100, 110))
    assert result["recall_catalogued"] >= 0.99
    assert result["truncated_passed"] == 0
    assert result["console_truncated_passed"] == 0
