"""The wrapper around every command: what an operator can type, and what it ends with."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from invoke.collection import Collection
from invoke.program import Program
from invoke.tasks import Task

from provision.cli.command import Ended, command
from provision.cli.namespace import collection
from provision.errors import Declined, Refused

Run = Callable[..., tuple[int, str, str]]


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Run:
    """Run one body as the command `act` through Invoke's own parser."""
    monkeypatch.setenv("MUSTER_STATE", str(tmp_path))

    def go(body: Callable[..., None], *words: str, **options: str) -> tuple[int, str, str]:
        namespace = Collection()
        namespace.add_task(command(options or {"nodes": "n", "dry_run": "d"})(body), name="act")
        status = 0
        try:
            Program(namespace=namespace, name="x", binary="x").run(["x", "act", *words])
        except SystemExit as end:
            status = int(end.code or 0)
        out, err = capsys.readouterr()
        return status, out, err

    return go


def everything(namespace: Collection, prefix: str = "") -> Iterator[tuple[str, Task[object]]]:
    for name, task in namespace.tasks.items():
        yield f"{prefix}{name}", task
    for name, branch in namespace.collections.items():
        yield from everything(branch, f"{prefix}{name}.")


def test_no_command_has_a_positional_or_a_short_flag_and_every_option_has_help() -> None:
    found = dict(everything(collection()))
    assert {"bringup", "reimage", "power.cycle", "console.capture"} <= set(found)
    for name, task in found.items():
        for argument in task.get_arguments():
            assert not argument.positional, name
            assert all(len(flag) > 1 for flag in argument.names), (name, argument.names)
            assert argument.help, (name, argument.names)
        assert task.__doc__, name


def test_help_after_a_command_shows_help_and_does_not_run_it(run: Run) -> None:
    ran = []

    def act(nodes: str = "", dry_run: bool = False) -> None:
        ran.append(nodes)

    status, out, _ = run(act, "--help")
    assert (status, ran) == (0, [])
    assert "--nodes" in out


def test_refuses_invokes_own_dry_flag_before_anything_runs(run: Run) -> None:
    ran = []

    def act(nodes: str = "", dry_run: bool = False) -> None:
        ran.append(nodes)

    status, _, err = run(act, "--nodes", "n1", "--dry")
    assert (status, ran) == (5, [])
    assert err.splitlines() == [
        "error: --dry: not an option of this command",
        "  why: invoke's --dry would run this for real; use --dry-run",
        "  next: see --help of this command",
    ]


def test_a_known_error_is_three_lines_and_the_right_status(run: Run) -> None:
    def act(nodes: str = "", dry_run: bool = False) -> None:
        raise Refused("in-use", nodes, "job 88123 is running", detail="8 GPUs busy")

    status, out, err = run(act, "--nodes", "r1-n05")
    assert (status, out) == (3, "")
    assert err.splitlines() == [
        "error: r1-n05: refused by guard in-use: job 88123 is running",
        "  why: 8 GPUs busy",
        "  next: docs/runbooks/in-use.md",
    ]


def test_the_cause_chain_is_printed_once(run: Run) -> None:
    def act(nodes: str = "", dry_run: bool = False) -> None:
        raise Declined("it was not to be") from OSError("connection reset")

    _, _, err = run(act)
    assert err.count("connection reset") == 1
    assert "Traceback" not in err


def test_a_bug_prints_no_traceback_but_the_file_that_holds_it(run: Run) -> None:
    def act(nodes: str = "", dry_run: bool = False) -> None:
        raise ZeroDivisionError("by zero")

    status, _, err = run(act)
    assert status == 1
    assert "Traceback" not in err
    report = Path(err.splitlines()[2].removeprefix("  next: send us "))
    assert "ZeroDivisionError: by zero" in report.read_text()


def test_an_option_that_needs_a_value_is_refused_without_one(run: Run) -> None:
    def act(nodes: str = "", dry_run: bool = False) -> None:
        raise AssertionError("ran")

    status, _, err = run(act, "--nodes")
    assert status in (1, 5)
    assert "Traceback" not in err


def test_ctrl_c_ends_with_130(run: Run) -> None:
    def act(nodes: str = "", dry_run: bool = False) -> None:
        raise KeyboardInterrupt

    status, _, err = run(act)
    assert (status, err) == (130, "\ninterrupted\n")


def test_a_command_ends_with_the_status_it_asks_for(run: Run) -> None:
    def act(nodes: str = "", dry_run: bool = False) -> None:
        raise Ended(2)

    assert run(act) == (2, "", "")


def test_a_parameter_without_help_is_a_programming_error() -> None:
    def act(nodes: str = "") -> None: ...

    with pytest.raises(TypeError, match="no help for nodes"):
        command({})(act)
