"""Judges a folder of saved tool outputs against the verdicts written beside them."""

from __future__ import annotations

import csv
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from health.errors import HealthError, SamplesUnreadable, Unreadable
from health.outcome import Finding, Status
from health.recognise import console
from health.recognise.console import FindCause
from health.recognise.doubt import doubts
from health.recognise.table import KINDS
from health.rules.kernel import worst

# A sample's words for what the gate calls pass, warn and fail.
_WORDS = {Status.PASS: "ok", Status.WARN: "warn", Status.FAIL: "fault", Status.UNKNOWN: "warn"}


@dataclass(frozen=True, slots=True)
class SampleResult:
    """One sample: what was expected, what it got, and why."""

    file: str
    kind: str
    verdict: str  # expected: ok, warn, fault
    got: str  # ok, warn, fault; "unparsed" where no reader knows the kind
    reason: str

    @property
    def matches(self) -> bool:
        """Say whether it got the verdict that is written beside it."""
        return self.got == self.verdict

    def to_json(self) -> dict[str, object]:
        """Return the form that is printed."""
        return {
            "file": self.file,
            "kind": self.kind,
            "verdict": self.verdict,
            "got": self.got,
            "reason": self.reason,
        }


def judge_samples(folder: Path, *, find_cause: FindCause | None = None) -> list[SampleResult]:
    """Judge every sample that the folder's INDEX.csv lists. Raises SamplesUnreadable.

    `find_cause` names what stopped a boot; without it consoles are not judged.
    """
    index = folder / "INDEX.csv"
    try:
        with index.open(encoding="utf-8", newline="") as source:
            rows = list(csv.DictReader(source))
    except (OSError, UnicodeDecodeError, csv.Error) as exc:
        raise SamplesUnreadable(index, str(exc)) from exc
    if rows and not {"file", "kind", "verdict"} <= rows[0].keys():
        raise SamplesUnreadable(index, "it needs the columns file, kind and verdict")
    kinds = dict(KINDS)
    if find_cause is not None:
        kinds["console"] = partial(console.judge, find_cause=find_cause)
    return [_judge(folder, row, kinds) for row in rows]


def totals(results: list[SampleResult]) -> Mapping[str, tuple[int, int]]:
    """Return matched and all parsed samples, by kind."""
    counts: dict[str, tuple[int, int]] = {}
    for result in results:
        if result.got != "unparsed":
            matched, total = counts.get(result.kind, (0, 0))
            counts[result.kind] = (matched + result.matches, total + 1)
    return counts


def _judge(
    folder: Path, row: Mapping[str, str], kinds: Mapping[str, Callable[[str], list[Finding]]]
) -> SampleResult:
    file, kind, verdict = row["file"], row["kind"], row["verdict"]
    judge = kinds.get(kind)
    if judge is None:
        return SampleResult(file, kind, verdict, "unparsed", "no reader knows this kind")
    try:
        text = (folder / file).read_bytes().decode("utf-8", "replace")
        findings = judge(text) or doubts(kind, text)
    except OSError as exc:
        return SampleResult(file, kind, verdict, "fault", f"the sample cannot be read: {exc.strerror}")
    except Unreadable as exc:
        return SampleResult(file, kind, verdict, "fault", str(exc))
    except HealthError as exc:
        return SampleResult(file, kind, verdict, "warn", str(exc))
    status = worst(findings)
    shown = [finding for finding in findings if finding.status is status] or findings
    reason = "; ".join(f"{finding.message} [{finding.identity}]" for finding in shown[:3])
    return SampleResult(file, kind, verdict, _WORDS[status], reason or "nothing to report")
