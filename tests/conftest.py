"""How tests are dealt out to workers, and what a test found and shows at the end of a run."""

from __future__ import annotations

from collections.abc import Callable, Iterable

import pytest
from xdist.scheduler import LoadScopeScheduling

TOLD = "told"
TOGETHER = ("tests/roles/", "tests/contract/lab_nodes/")  # the files of each share a lab that is slow to make


class ByFile(LoadScopeScheduling):
    """Give a file, or a folder whose files share a lab, to one worker in one piece."""

    def _split_scope(self, nodeid: str) -> str:
        file = nodeid.split("::", 1)[0]
        return next((folder for folder in TOGETHER if file.startswith(folder)), file)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: object) -> ByFile:
    config.option.loadscopereorder = False  # the order below
    return ByFile(config, log)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Begin with what waits longest: at the end nothing would run beside it."""
    items.sort(key=lambda item: not _waits(item))


def _waits(item: pytest.Item) -> bool:
    marked = any(item.get_closest_marker(name) for name in ("lab", "qemu"))
    return marked or item.nodeid.startswith("tests/e2e/")


def pytest_make_parametrize_id(val: object, argname: str) -> str | None:
    """Name bytes by their number: archives hold the time of their making, and workers must agree on names."""
    return f"{argname}-{len(val)}-bytes" if isinstance(val, bytes | bytearray) else None


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
