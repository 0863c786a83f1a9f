"""Verdicts as an operator reads them: folded, shadow said, unknown put before a human."""

from __future__ import annotations

import json

import pytest

from health.check import Level
from health.outcome import Action, Status
from health.verdict import Answer, Reason, Verdict
from provision.cli import verdicts


def reason(
    check: str, message: str, identity: str, status: Status = Status.FAIL, gates: bool = True
) -> Reason:
    return Reason(check, status, "gpu", identity, message, Action.GPU_RESET, gates=gates)


def said(answer: Answer, *reasons: Reason) -> Verdict:
    return Verdict(answer, "p", Level.QUICK, (), reasons, "digest", "boot")


def test_one_tool_that_failed_is_one_reason_with_the_checks_that_needed_it() -> None:
    checks = ("gpu.count", "gpu.ecc", "gpu.remap", "gpu.power", "gpu.pcie")
    unknown = [reason(check, "nvidia-smi hung", "gpu", Status.UNKNOWN) for check in checks]
    assert verdicts.told(said(Answer.UNKNOWN, *unknown)) == [
        "gpu.count, gpu.ecc, gpu.remap and 2 more checks: nvidia-smi hung (gpu); next: gpu_reset"
    ]
    assert len(verdicts.told(said(Answer.UNKNOWN, *unknown), wide=True)) == 5


def test_two_parts_with_the_same_complaint_are_two_reasons() -> None:
    both = said(Answer.NO, reason("gpu.ecc", "1 error", "S1"), reason("gpu.ecc", "1 error", "S2"))
    assert len(verdicts.told(both)) == 2


def test_what_is_in_shadow_says_so() -> None:
    (line,) = verdicts.told(said(Answer.YES, reason("new.check", "odd", "x", Status.WARN, gates=False)))
    assert line.endswith("[shadow: reports, does not gate]")


def test_nodes_alike_are_folded_the_worst_is_last_and_unknown_needs_a_human(
    capsys: pytest.CaptureFixture[str],
) -> None:
    no = said(Answer.NO, reason("gpu.ecc", "1 error", "S1"))
    unknown = said(Answer.UNKNOWN, reason("gpu.count", "hung", "gpu", Status.UNKNOWN))
    yes = said(Answer.YES)
    verdicts.show({"n1": no, "n2": yes, "n3": unknown, "n4": yes}, "table")
    out, err = capsys.readouterr()
    heads = [line.split()[:2] for line in out.splitlines() if not line.startswith(" ")]
    assert heads == [["n[2,4]", "yes:"], ["n3", "unknown:"], ["n1", "no:"]]
    assert err.startswith("needs a human: n3: nothing is proven")


def test_json_keeps_every_reason(capsys: pytest.CaptureFixture[str]) -> None:
    checks = ("gpu.count", "gpu.ecc")
    unknown = said(Answer.UNKNOWN, *(reason(one, "hung", "gpu", Status.UNKNOWN) for one in checks))
    verdicts.show({"n1": unknown}, "json")
    out, err = capsys.readouterr()
    (row,) = json.loads(out)["verdicts"]
    assert (row["node"], row["answer"], len(row["reasons"])) == ("n1", "unknown", 2)
    assert err == ""
