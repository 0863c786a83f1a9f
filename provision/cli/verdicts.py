"""Verdicts as an operator reads them: nodes with the same answer folded, reasons with the same cause too."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping

from health.outcome import Status
from health.verdict import Answer, Reason, Verdict
from inventory.nodeset import fold
from provision.cli import render

_NAMED = 3  # checks with one and the same complaint, by name; more are counted
_ORDER = (Answer.YES, Answer.UNKNOWN, Answer.NO)  # what matters most is read last


def show(verdicts: Mapping[str, Verdict], output: str) -> None:
    """Print verdicts on stdout; what needs a human follows on stderr."""
    if output in ("json", "yaml"):
        rows = [{"node": name, **judged.to_json()} for name, judged in verdicts.items()]
        render.answer("verdicts", rows, ("node",), output)
        return
    render.check_format(output)
    groups: dict[tuple[int, str], list[str]] = {}
    for name, judged in verdicts.items():
        body = "\n".join([judged.summary, *(f"    {line}" for line in told(judged, wide=output == "wide"))])
        groups.setdefault((_ORDER.index(judged.answer), body.replace(name, "NODE")), []).append(name)
    for (_, body), names in sorted(groups.items(), key=lambda group: group[0][0]):
        sys.stdout.write(f"{fold(names)}   {body}\n")
    sys.stdout.flush()
    unknown = [name for name, judged in verdicts.items() if judged.answer is Answer.UNKNOWN]
    if unknown:
        sys.stderr.write(
            f"needs a human: {fold(unknown)}: nothing is proven, neither way\n"
            f"  next: docs/runbooks/gate-unknown.md, then invoke verify --nodes {fold(unknown)}\n"
        )


def told(verdict: Verdict, *, wide: bool = False) -> list[str]:
    """Return the reasons as lines; those of several checks for one and the same thing are one."""
    groups: dict[tuple[object, ...], list[Reason]] = {}
    for number, reason in enumerate(verdict.reasons):
        same = (reason.message, reason.action, reason.status, reason.gates)
        # Two parts with the same complaint are two things; one tool that failed is one.
        part = number if wide or reason.status is not Status.UNKNOWN else ""
        groups.setdefault((*same, part), []).append(reason)
    return [_line(reasons) for reasons in groups.values()]


def _line(reasons: list[Reason]) -> str:
    first = reasons[0]
    shadow = "" if first.gates else " [shadow: reports, does not gate]"
    return (
        f"{_names(one.check for one in reasons)}: {first.message} ({first.identity}); "
        f"next: {first.action}{shadow}"
    )


def _names(checks: Iterable[str]) -> str:
    found = list(dict.fromkeys(checks))
    more = len(found) - _NAMED
    return ", ".join(found[:_NAMED]) + (f" and {more} more checks" if more > 0 else "")
