"""What a test found and shows: printed at the end of a run, also when workers ran the tests."""

from __future__ import annotations

from collections.abc import Callable, Iterable

import pytest

TOLD = "told"


@pytest.fixture
def tell(record_property: Callable[[str, object], None]) -> Callable[[Iterable[str]], None]:
    """Return a function that keeps lines for the end of the run."""

    def keep(lines: Iterable[str]) -> None:
        record_property(TOLD, "\n".join(lines))

    return keep


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    for reports in terminalreporter.stats.values():
        for report in reports:
            if getattr(report, "when", None) != "call":
                continue
            for text in (value for name, value in report.user_properties if name == TOLD):
                terminalreporter.write_sep("-", report.nodeid)
                terminalreporter.write_line(str(text))
