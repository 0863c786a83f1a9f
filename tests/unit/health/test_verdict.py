"""The front door opens for proof only."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace

import pytest

from benchmarks.recorded_nodes import Document, RecordedNode, item, load, names, stream
from health import catalogue, verdict
from health.check import Check, Level
from health.evidence import Context, Evidence
from health.outcome import Action, Finding, Outcome, Status, conclude
from health.verdict import Answer
from inventory.model import Profile

NODE = load("xe9680-h100")


@pytest.mark.parametrize("name", names())
def test_says_yes_to_a_healthy_node(name: str) -> None:
    found = load(name).verdict()
    assert found.answer is Answer.YES, found.reasons
    assert found.evidence
    assert found.boot_id


def with_seven_gpus(document: Document) -> None:
    entry = item(document, "gpu.smi")
    entry["stdout"] = stream("Unable to determine the device handle for GPU0000:5D:00.0: Unknown Error\n")
    entry["rc"] = 255


def test_says_no_with_the_part_and_the_next_action() -> None:
    found = NODE.verdict(with_seven_gpus)
    assert found.answer is Answer.NO
    first = found.reasons[0]
    assert (first.check, first.identity, first.action) == ("gpu.count", "0000:5d:00.0", Action.POWER_CYCLE)
    assert "gpu.count: GPU 0000:5d:00.0 is lost" in found.summary


def test_an_item_that_did_not_come_back_is_unknown_and_named() -> None:
    def change(document: Document) -> None:
        item(document, "disk.space").update(rc=None, timed_out=True, state="D", seconds=10.0)

    found = NODE.verdict(change)
    assert found.answer is Answer.UNKNOWN
    assert "df -PTkl: did not end within 10 s (state D)" in found.reasons[0].message


def test_no_evidence_is_unknown_with_the_problem_met() -> None:
    found = verdict.verdict(None, NODE.profile, Level.QUICK, problem="ssh: connection timed out")
    assert found.answer is Answer.UNKNOWN
    assert found.summary == "unknown: gate.evidence: ssh: connection timed out"
    assert found.boot_id is None


def test_a_problem_met_on_the_way_keeps_a_good_node_out() -> None:
    found = verdict.verdict(
        NODE.evidence(),
        NODE.profile,
        Level.QUICK,
        problem="ssh ended with 255",
        collected_at=NODE.collected_at,
    )
    assert found.answer is Answer.UNKNOWN


def test_evidence_that_was_collected_for_less_is_unknown() -> None:
    def change(document: Document) -> None:
        document["items"] = [entry for entry in document["items"] if entry["id"] != "disk.pools"]

    assert NODE.verdict(change).answer is Answer.UNKNOWN


def test_evidence_of_another_command_under_the_same_name_is_unknown() -> None:
    def change(document: Document) -> None:
        item(document, "gpu.smi")["argv"] = ["echo", "all well"]

    found = NODE.verdict(change)
    assert found.answer is Answer.UNKNOWN
    assert "collected in another way: gpu.smi" in found.reasons[0].message


def with_profile(**changes: object) -> RecordedNode:
    return replace(NODE, profile=replace(NODE.profile, **changes))  # type: ignore[arg-type]


def test_a_required_check_that_does_not_exist_is_unknown() -> None:
    found = with_profile(checks=("host.boot", "gpu.magic")).verdict()
    assert found.answer is Answer.UNKNOWN
    assert "requires gpu.magic, which is no check" in found.reasons[0].message


def test_a_profile_that_requires_nothing_proves_nothing() -> None:
    found = with_profile(checks=("gpu.magic",)).verdict()
    assert found.answer is Answer.UNKNOWN


def test_only_skipped_checks_prove_nothing() -> None:
    node = with_profile(checks=("gpu.fabric",), limits={**NODE.profile.limits, "nvswitch.count": 0})
    assert node.verdict().answer is Answer.UNKNOWN


def test_a_profile_with_a_broken_limit_is_unknown_not_a_traceback() -> None:
    node = with_profile(limits={**NODE.profile.limits, "shadow.checks": 7})
    assert node.verdict().answer is Answer.UNKNOWN


def test_hardware_that_the_profile_does_not_describe_is_unknown_not_no() -> None:
    found = with_profile(limits={}).verdict()
    assert found.answer is Answer.UNKNOWN


@pytest.fixture
def one_check(monkeypatch: pytest.MonkeyPatch) -> Callable[..., Answer]:
    """Answer for a gate that has one check only, with the judge given."""

    def answer(
        judge: Callable[[Evidence, Profile], Outcome], *, gates: bool = True, checks: tuple[str, ...] = ()
    ) -> verdict.Verdict:
        row = Check("test.one", Level.QUICK, (), judge, gates=gates)
        monkeypatch.setattr(catalogue, "CHECKS", (row,))
        monkeypatch.setattr(verdict, "CHECKS", (row,))
        profile = replace(NODE.profile, checks=checks)
        return verdict.verdict(NODE.evidence(), profile, Level.QUICK, collected_at=NODE.collected_at)

    return answer


def test_a_judge_that_raises_has_judged_nothing(one_check: Callable[..., verdict.Verdict]) -> None:
    def judge(_: Evidence, __: Profile) -> Outcome:
        raise ZeroDivisionError("oops")

    found = one_check(judge)
    assert found.answer is Answer.UNKNOWN
    assert "the check itself failed: ZeroDivisionError('oops')" in found.reasons[0].message


def test_a_judge_that_answers_for_another_is_not_believed(one_check: Callable[..., verdict.Verdict]) -> None:
    assert one_check(lambda _, __: conclude("other", (), "well")).answer is Answer.UNKNOWN


def _failing(_: Evidence, __: Profile) -> Outcome:
    return conclude("test.one", (Finding("part", "S1", "broken", Action.RESEAT),), "")


def _warning(_: Evidence, __: Profile) -> Outcome:
    return conclude("test.one", (Finding("part", "S1", "odd", Action.INVESTIGATE, Status.WARN),), "")


def test_a_warning_admits_and_is_shown(one_check: Callable[..., verdict.Verdict]) -> None:
    found = one_check(_warning)
    assert found.answer is Answer.YES
    assert found.reasons[0].message == "odd"


def test_a_check_in_shadow_reports_and_does_not_gate(one_check: Callable[..., verdict.Verdict]) -> None:
    found = one_check(_failing, gates=False)
    assert found.answer is Answer.UNKNOWN  # nothing else was proven
    assert found.reasons[0].gates is False
    assert found.reasons[0].message == "broken"


def test_shadow_cannot_silence_missing_evidence() -> None:
    limits = {**NODE.profile.limits, "shadow.checks": ["gate.evidence", "gate.profile"]}
    node = with_profile(limits=limits)
    found = verdict.verdict(None, node.profile, Level.QUICK, problem="no answer")
    assert found.answer is Answer.UNKNOWN


def test_a_profile_can_put_a_check_in_shadow() -> None:
    limits = {**NODE.profile.limits, "shadow.checks": ["gpu.count"]}
    found = with_profile(limits=limits, checks=("gpu.count", "host.boot")).verdict(with_seven_gpus)
    assert found.answer is Answer.YES
    assert [reason.gates for reason in found.reasons] == [False]


def test_failures_come_before_unknowns_before_warnings() -> None:
    def change(document: Document) -> None:
        with_seven_gpus(document)
        item(document, "cpu.clocksource")["stdout"] = stream("hpet\n")

    ranks = [reason.status for reason in NODE.verdict(change).reasons]
    assert ranks == sorted(ranks, key=[Status.FAIL, Status.UNKNOWN, Status.WARN].index)


def test_the_same_evidence_gives_the_same_verdict() -> None:
    first = json.dumps(NODE.verdict(with_seven_gpus).to_json(), sort_keys=True)
    assert all(json.dumps(NODE.verdict(with_seven_gpus).to_json(), sort_keys=True) == first for _ in range(5))


def test_json_says_what_decided() -> None:
    document = json.loads(json.dumps(NODE.verdict(with_seven_gpus).to_json()))
    assert document["schema"] == 1
    assert document["answer"] == "no"
    assert document["reasons"][0]["action"] == "power_cycle"
    assert {"check", "status", "summary", "findings", "metrics"} == set(document["outcomes"][0])


def test_events_before_the_last_repair_are_forgiven() -> None:
    def change(document: Document) -> None:
        entry = item(document, "kernel.kmsg")
        end = "# end of kmsg\n"
        text = entry["stdout"]["text"].removesuffix(end)
        line = (
            f"3,{text.count(chr(10))},90000000000,-;NVRM: Xid (PCI:0000:9b:00): 79, pid=1, GPU has fallen off"
        )
        entry["stdout"] = stream(f"{text}{line}\n{end}")

    evidence = NODE.evidence(change)
    event_at = evidence.began.boot_time + 90_000

    def answer(repaired_at: float | None) -> Answer:
        context = Context(repaired_at=repaired_at)
        found = verdict.verdict(
            evidence, NODE.profile, Level.QUICK, collected_at=NODE.collected_at, context=context
        )
        return found.answer

    assert answer(None) is Answer.NO
    assert answer(event_at - 60) is Answer.NO
    assert answer(event_at + 60) is Answer.YES


def test_counters_are_compared_with_a_baseline_of_the_same_boot() -> None:
    def change(document: Document) -> None:
        for id in ("ib.counters", "ib.counters_later"):
            entry = item(document, id)
            text = entry["stdout"]["text"]
            entry["stdout"] = stream(text.replace("symbol_error <==\n0", "symbol_error <==\n5000", 1))

    evidence = NODE.evidence(change)
    earlier = NODE.evidence()
    began = replace(earlier.began, uptime_s=earlier.began.uptime_s - 3600)
    baseline = replace(earlier, began=began)

    def answer(baseline: Evidence | None) -> Answer:
        context = Context(baseline=baseline)
        return verdict.verdict(
            evidence, NODE.profile, Level.QUICK, collected_at=NODE.collected_at, context=context
        ).answer

    assert answer(None) is Answer.YES  # no growth within the collection
    assert answer(baseline) is Answer.NO
    rebooted = replace(baseline, began=replace(began, boot_id="another boot"))
    assert answer(rebooted) is Answer.YES
