"""Every check against its cases; every check has a row, cases of each kind and a paragraph."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pytest

from health.catalogue import CHECKS, check
from health.errors import HealthError
from health.outcome import Outcome, Status, unknown
from tests.unit.health.cases import Case, all_cases

CASES = all_cases()
DOCS = Path(__file__).parents[3] / "docs" / "checks.md"


def judged(case: Case) -> Outcome:
    node = case.node()
    evidence = node.evidence(case.change)
    seen = replace(evidence, context=case.context(evidence))
    row = check(case.check)
    try:
        return row.judge(seen, node.profile)
    except HealthError as exc:
        return unknown(row.id, "test", str(exc))


@pytest.mark.parametrize("case", CASES, ids=str)
def test_judges_a_case_as_expected(case: Case) -> None:
    outcome = judged(case)
    assert outcome.status == case.expected["status"], outcome
    said = [finding for finding in outcome.findings if finding.status is outcome.status]
    for field in ("message", "identity"):
        if field in case.expected:
            told = [getattr(finding, field) for finding in said]
            assert any(case.expected[field] in value for value in told), told
    if "action" in case.expected:
        assert case.expected["action"] in {finding.action for finding in said}


@pytest.mark.parametrize("row", CHECKS, ids=lambda row: row.id)
def test_each_check_has_cases_that_pass_fail_and_cannot_tell(row: object) -> None:
    statuses = {case.expected["status"] for case in CASES if case.check == row.id}  # type: ignore[attr-defined]
    assert {Status.PASS, Status.FAIL, Status.UNKNOWN} <= statuses


@pytest.mark.parametrize("row", CHECKS, ids=lambda row: row.id)
def test_each_check_has_a_paragraph_in_the_documents(row: object) -> None:
    text = DOCS.read_text(encoding="utf-8")
    section = re.search(rf"^### {re.escape(row.id)}\n(.+?)(?=^##|\Z)", text, re.MULTILINE | re.DOTALL)  # type: ignore[attr-defined]
    assert section is not None
    assert len(section[1].split()) >= 12


def test_no_case_is_of_a_check_that_does_not_exist() -> None:
    assert {case.check for case in CASES} == {row.id for row in CHECKS}


def test_ids_differ_and_name_their_file() -> None:
    ids = [row.id for row in CHECKS]
    assert len(set(ids)) == len(ids)
    for row in CHECKS:
        assert row.judge.__module__.rpartition(".")[2] == row.id.replace(".", "_")


def test_every_limit_that_a_check_reads_is_in_the_documents() -> None:
    text = DOCS.read_text(encoding="utf-8")
    for path in sorted((Path(__file__).parents[3] / "health" / "checks").glob("*.py")):
        source = path.read_text(encoding="utf-8")
        for name in re.findall(r'(?:number|words|text|limit)\(\s*profile, "([\w.]+)"', source):
            assert f"`{name}`" in text, (path.name, name)
