"""Saved outputs get the verdict written beside them, for the right reason."""

from __future__ import annotations

import csv
from pathlib import Path

import pytest

from bmc.console.causes import Watch
from bmc.console.plain import Plain
from health.errors import SamplesUnreadable
from health.samples import SampleResult, judge_samples, totals
from tests.unit.health.cases import FOLDER

SAMPLES = FOLDER / "samples"


def cause(data: bytes) -> str | None:
    watch = Watch()
    watch.feed(0.0, Plain().feed(data))
    found = watch.cause()
    return f"{found.title}: {found.line}" if found else None


@pytest.fixture(scope="module")
def results() -> list[SampleResult]:
    return judge_samples(SAMPLES, find_cause=cause)


def test_every_sample_gets_its_verdict(results: list[SampleResult]) -> None:
    assert [(one.file, one.got, one.reason) for one in results if not one.matches] == []


def test_the_reason_names_what_is_wrong(results: list[SampleResult]) -> None:
    with (SAMPLES / "INDEX.csv").open(encoding="utf-8", newline="") as source:
        wanted = {row["file"]: row["reason"] for row in csv.DictReader(source)}
    assert [one.file for one in results if wanted[one.file] not in one.reason] == []
    assert all(one.reason for one in results)


def test_totals_count_by_kind(results: list[SampleResult]) -> None:
    counted = totals(results)
    assert sum(total for _, total in counted.values()) == len(results)
    assert all(matched == total for matched, total in counted.values())


def test_consoles_are_left_alone_without_a_reader_of_causes() -> None:
    left = [one for one in judge_samples(SAMPLES) if one.kind == "console"]
    assert {one.got for one in left} == {"unparsed"}
    assert "console" not in totals(left)


def index(folder: Path, *rows: str) -> None:
    (folder / "INDEX.csv").write_text("file,kind,verdict\n" + "\n".join(rows) + "\n", encoding="utf-8")


@pytest.mark.parametrize(
    "text",
    [
        "",
        "\0" * 100,
        "\x1b[2J\x1b[31m\r\n",
        "usage: tool [options]\n",
        "Erreur : périphérique introuvable\n",
        "bash: tool: command not found\n",
        "{",
        "[]",
        "null",
        '{"a": ',
    ],
)
@pytest.mark.parametrize(
    "kind",
    ["nvidia_smi", "ipmi", "redfish", "ib", "ufm", "dcgm_nccl", "maas_ansible", "system"],
)
def test_what_no_reader_can_read_is_never_ok(tmp_path: Path, kind: str, text: str) -> None:
    if (kind, text) == ("ufm", "[]"):
        return  # no alarm at all is how UFM says that all is well
    (tmp_path / "it").write_text(text, encoding="utf-8")
    index(tmp_path, f"it,{kind},fault")
    assert judge_samples(tmp_path)[0].got in ("fault", "warn")


def test_words_of_trouble_that_no_rule_knows_are_shown(tmp_path: Path) -> None:
    (tmp_path / "it").write_text(
        "node07:1:1 [0] NCCL INFO Channel 00\nsome new layer: ERROR: ring is not closed\n", encoding="utf-8"
    )
    index(tmp_path, "it,dcgm_nccl,fault")
    found = judge_samples(tmp_path)[0]
    assert found.got == "warn"
    assert "ring is not closed" in found.reason


def test_a_sample_that_is_not_there_is_a_fault(tmp_path: Path) -> None:
    index(tmp_path, "gone,dmesg,ok")
    assert judge_samples(tmp_path)[0].got == "fault"


def test_a_kind_that_nobody_knows_is_not_judged(tmp_path: Path) -> None:
    (tmp_path / "it").write_text("x", encoding="utf-8")
    index(tmp_path, "it,weather,ok")
    found = judge_samples(tmp_path)
    assert found[0].got == "unparsed"
    assert totals(found) == {}


def test_a_folder_without_an_index_says_so(tmp_path: Path) -> None:
    with pytest.raises(SamplesUnreadable):
        judge_samples(tmp_path)
    (tmp_path / "INDEX.csv").write_text("name,verdict\nx,ok\n", encoding="utf-8")
    with pytest.raises(SamplesUnreadable, match="columns"):
        judge_samples(tmp_path)
