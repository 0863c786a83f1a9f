"""The collector, run as it is run on a node: from a pipe into python3."""

from __future__ import annotations

import ast
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from health.check import Collect
from health.errors import EvidenceBroken
from health.evidence import Evidence, parse
from health.plan import CollectPlan, make_plan

HEALTH = Path(__file__).parents[3] / "health"
SENT = (HEALTH / "collector.py", *sorted((HEALTH / "active").glob("*.py")))
NONCE = "a1b2c3"


def collected(*items: Collect, total_s: float = 20.0) -> Evidence:
    return parse(printed(CollectPlan(items, total_s)), nonce=NONCE)


def printed(plan: CollectPlan) -> bytes:
    done = subprocess.run(
        [sys.executable, "-"], input=plan.script(NONCE), capture_output=True, timeout=30, check=False
    )
    assert done.stderr == b""
    assert done.returncode == 0
    return done.stdout


def python(code: str) -> tuple[str, ...]:
    return (sys.executable, "-c", code)


@pytest.mark.parametrize("source", SENT, ids=lambda path: path.name)
def test_is_python_3_6_of_the_standard_library_only(source: Path) -> None:
    tree = ast.parse(source.read_text(encoding="utf-8"), feature_version=(3, 6))
    imported = {
        name.split(".")[0]
        for node in ast.walk(tree)
        for name in (
            [alias.name for alias in node.names] if isinstance(node, ast.Import) else
            [node.module or ""] if isinstance(node, ast.ImportFrom) else []
        )
    }  # fmt: skip
    assert imported <= set(sys.stdlib_module_names)
    later = {"removeprefix", "removesuffix", "capture_output", "text", "fromisoformat"}
    used = {node.attr for node in ast.walk(tree) if isinstance(node, ast.Attribute)}
    used |= {
        word.arg
        for node in ast.walk(tree)
        if isinstance(node, ast.Call)
        for word in node.keywords
        if word.arg
    }
    assert not used & later


def test_brings_back_what_commands_and_files_gave(tmp_path: Path) -> None:
    (tmp_path / "one").write_text("first")
    evidence = collected(
        Collect("out", argv=python("import sys; print('hello'); print('oh', file=sys.stderr); sys.exit(3)")),
        Collect("file", file=str(tmp_path / "one")),
    )
    out, file = evidence.item("out"), evidence.item("file")
    assert out is not None
    assert file is not None
    assert (out.text, out.errors, out.rc) == ("hello\n", "oh\n", 3)
    assert (file.text, file.rc, file.problem) == ("first", 0, None)


def test_brings_all_files_of_a_pattern_and_says_how_many(tmp_path: Path) -> None:
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "speed").write_text(f"{name}00\n")
    (tmp_path / "c" / "speed").mkdir(parents=True)  # a folder of that name is no file
    found = collected(Collect("all", file=f"{tmp_path}/*/speed")).item("all")
    assert found is not None
    assert (
        found.text == f"==> {tmp_path}/a/speed <==\na00\n==> {tmp_path}/b/speed <==\nb00\n==> 2 in all <==\n"
    )


def test_runs_a_command_for_each_path(tmp_path: Path) -> None:
    for name in ("nvme0", "nvme1"):
        (tmp_path / name).touch()
    item = Collect("each", argv=("echo", "of", "/dev/{name}"), each=f"{tmp_path}/nvme*")
    found = collected(item).item("each")
    assert found is not None
    assert "==> " + str(tmp_path / "nvme1") + " <==\nof /dev/nvme1\n\n==> 2 in all <==" in found.text


def test_says_what_is_not_there(tmp_path: Path) -> None:
    evidence = collected(
        Collect("tool", argv=("no-such-tool-here", "-q")),
        Collect("file", file=str(tmp_path / "none")),
        Collect("pattern", file=str(tmp_path / "none" / "*")),
        Collect("each", argv=("no-such-tool-here", "{}"), each="/proc/self/stat"),
    )
    problems = {id: item.problem for id, item in evidence.items.items()}
    assert problems["tool"] == "no-such-tool-here -q: not installed"
    assert "No such file" in str(problems["file"])
    assert "no file matches" in str(problems["pattern"])
    assert "not installed" in str(problems["each"])


def test_items_run_side_by_side() -> None:
    began = time.monotonic()
    nap = python("import time; time.sleep(1.0)")
    evidence = collected(*(Collect(f"nap{n}", argv=nap) for n in range(8)))
    assert all(item.ok for item in evidence.items.values())
    assert time.monotonic() - began < 6.0  # one after the other they take 8


def test_a_tool_that_hangs_is_killed_with_its_children_and_named(tmp_path: Path) -> None:
    pids = tmp_path / "pids"
    code = (
        "import os, signal, subprocess, sys, time\n"
        "signal.signal(signal.SIGTERM, signal.SIG_IGN)\n"
        "child = subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(60)'])\n"
        f"open({str(pids)!r}, 'w').write(f'{{os.getpid()}} {{child.pid}}')\n"
        "print('partial', flush=True)\n"
        "time.sleep(60)\n"
    )
    began = time.monotonic()
    evidence = collected(
        Collect("hangs", argv=python(code), timeout_s=4.0), Collect("well", argv=("echo", "well"))
    )
    hangs, well = evidence.item("hangs"), evidence.item("well")
    assert hangs is not None
    assert well is not None
    assert time.monotonic() - began < 15.0
    assert well.ok
    assert hangs.timed_out
    assert hangs.text == "partial\n"
    assert "did not end within 4 s (state S" in str(hangs.problem)
    assert all(_gone(int(pid)) for pid in pids.read_text().split())


def _gone(pid: int) -> bool:
    """Wait until a process has ended; one that nobody has reaped yet has ended too."""
    until = time.monotonic() + 5
    while time.monotonic() < until:
        try:
            state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
        except FileNotFoundError:
            return True
        if state == "Z":
            return True
        time.sleep(0.02)
    return False


@pytest.fixture
def collector() -> dict[str, Any]:
    """The collector's own names, to put one of them out of action."""
    names: dict[str, Any] = {"__name__": "collector", "SOURCE": ""}
    exec(compile(SENT[0].read_text(encoding="utf-8"), str(SENT[0]), "exec"), names)
    return names


def test_a_tool_that_cannot_be_killed_is_abandoned_with_its_state(collector: dict[str, Any]) -> None:
    """As in state D: the signal is taken and nothing happens."""

    class Deaf:
        SIGKILL = signal.SIGKILL

    real_killpg = os.killpg
    killed: list[int] = []
    collector["signal"] = Deaf
    collector["os"] = type("Os", (), {**vars(os), "killpg": staticmethod(lambda pid, _: killed.append(pid))})
    item = {"id": "stuck", "argv": ["sleep", "30"], "timeout_s": 0.3, "limit_bytes": 1000}
    well = {"id": "well", "argv": ["echo", "well"], "timeout_s": 5, "limit_bytes": 1000}
    began = time.monotonic()
    stuck, fine = collector["collect"]({"items": [item, well], "total_s": 10})
    assert time.monotonic() - began < 5.0
    assert stuck["abandoned"].startswith("S")
    assert stuck["timed_out"] is True
    assert fine["stdout"]["text"] == "well\n"
    real_killpg(killed[0], signal.SIGKILL)
    os.waitpid(killed[0], 0)


def test_the_whole_is_bounded_and_names_what_it_left_out() -> None:
    sleepers = [Collect(f"sleep{n}", argv=("sleep", "20"), timeout_s=20) for n in range(20)]
    began = time.monotonic()
    evidence = collected(*sleepers, total_s=1.0)
    assert time.monotonic() - began < 8.0
    states = {item.state for item in evidence.items.values()}
    assert all(item.timed_out for item in evidence.items.values())
    assert None in states  # more than run side by side: some were never started


def test_a_long_output_keeps_its_head_and_tail_in_bounded_memory() -> None:
    code = "import sys\nfor n in range(400000): sys.stdout.write(f'line {n}\\n')\n"
    raw = printed(CollectPlan((Collect("long", argv=python(code), limit_bytes=4000, timeout_s=18),), 20.0))
    found = parse(raw, nonce=NONCE).item("long")
    assert found is not None
    assert found.truncated
    assert not found.ok
    assert found.text.startswith("line 0\nline 1\n")
    assert found.text.endswith("line 399998\nline 399999\n")
    assert len(raw) < 9000


def test_bytes_that_are_no_text_come_through() -> None:
    code = "import sys; sys.stdout.buffer.write(bytes(range(256)))"
    raw = printed(CollectPlan((Collect("bytes", argv=python(code)),), 20.0))
    assert b'"base64"' in raw
    found = parse(raw, nonce=NONCE).item("bytes")
    assert found is not None
    assert found.text.startswith("\x00\x01\x02")


def test_a_child_left_behind_with_the_pipe_does_not_keep_the_collector() -> None:
    code = "import os, time\nprint('done', flush=True)\nif os.fork() == 0:\n    os.setsid(); time.sleep(8)\n"
    began = time.monotonic()
    found = collected(Collect("leaves", argv=python(code))).item("leaves")
    assert found is not None
    assert found.text == "done\n"
    assert found.ok
    assert time.monotonic() - began < 6.0


def test_a_second_reading_comes_later() -> None:
    evidence = collected(
        Collect("first", argv=("date", "+%s.%N")), Collect("later", argv=("date", "+%s.%N"), after_s=1.0)
    )
    first, later = evidence.item("first"), evidence.item("later")
    assert first is not None
    assert later is not None
    assert later.at_s >= 1.0 > first.at_s
    assert float(later.text) - float(first.text) > 0.9


def test_tools_get_one_language_and_no_terminal() -> None:
    code = "import os, sys; print(os.environ['LC_ALL'], os.environ['TERM'], sys.stdin.read() == '')"
    found = collected(Collect("env", argv=python(code))).item("env")
    assert found is not None
    assert found.text == "C dumb True\n"


def test_knows_its_boot_and_its_clock() -> None:
    evidence = collected()
    assert evidence.began.boot_id == Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    assert abs(evidence.began.wall_clock - time.time()) < 30
    assert evidence.ended.uptime_s >= evidence.began.uptime_s > 0


def test_a_collector_that_dies_half_way_leaves_no_evidence() -> None:
    plan = CollectPlan((Collect("slow", argv=("sleep", "5")),), 20.0)
    with subprocess.Popen(
        [sys.executable, "-"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(plan.script(NONCE))
        process.stdin.close()
        process.kill()
        left = process.stdout.read()
    with pytest.raises(EvidenceBroken):
        parse(left, nonce=NONCE)


_SYSTEM_PYTHON = shutil.which("python3", path="/usr/bin:/bin")


@pytest.mark.skipif(os.geteuid() != 0 or not _SYSTEM_PYTHON, reason="becomes another user, with its Python")
def test_needs_no_root_where_none_is_needed_and_says_denied_where_it_is(tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.write_text("x")
    secret.chmod(0o600)
    plan = CollectPlan(
        (
            Collect("open", file="/proc/uptime"),
            Collect("closed", file=str(secret)),
            Collect("root", argv=("cat", str(secret)), needs_root=True),
        ),
        20.0,
    )
    tmp_path.chmod(0o755)
    done = subprocess.run(
        [str(_SYSTEM_PYTHON), "-"],
        input=plan.script(NONCE),
        capture_output=True,
        timeout=30,
        check=True,
        cwd="/",
        user=65534,
        group=65534,
        extra_groups=[],
    )
    evidence = parse(done.stdout, nonce=NONCE)
    open_file, closed, root = (evidence.item(id) for id in ("open", "closed", "root"))
    assert open_file is not None
    assert closed is not None
    assert root is not None
    assert evidence.user == 65534
    assert open_file.ok
    assert closed.denied
    assert "permission denied" in str(closed.problem)
    assert root.denied or root.missing  # sudo refuses, or is not installed


def test_two_checks_cannot_collect_one_item_in_two_ways() -> None:
    with pytest.raises(ValueError, match="in different ways"):
        make_plan([Collect("x", argv=("a",)), Collect("x", argv=("b",))], 1.0)


@pytest.mark.parametrize("wrong", [lambda: Collect("x"), lambda: Collect("x", argv=("a",), file="/b")])
def test_an_item_is_a_command_or_a_file(wrong: Callable[[], Collect]) -> None:
    with pytest.raises(ValueError, match="needs a command or a file"):
        wrong()


def test_the_script_does_not_grow_with_the_nonce_in_its_arguments() -> None:
    plan = CollectPlan((Collect("x", argv=("echo", 'it\'s "quoted" \\ and \u00e9')),), 5.0)
    script = plan.script("n'1")
    assert script.isascii()
    done = subprocess.run([sys.executable, "-"], input=script, capture_output=True, timeout=30, check=True)
    found = parse(done.stdout, nonce="n'1").item("x")
    assert found is not None
    assert found.text == 'it\'s "quoted" \\ and \u00e9\n'
    assert json.loads(done.stdout)["plan"] == plan.digest


def test_what_runs_alone_runs_after_all_others_and_with_nothing_beside(tmp_path: Path) -> None:
    stamp = "import time, sys; print(time.time()); time.sleep(0.3); print(time.time())"
    evidence = collected(
        Collect("load one", argv=python(stamp), alone=True),
        Collect("beside", argv=python(stamp)),
        Collect("later", argv=python(stamp), after_s=0.2),
        Collect("load two", argv=python(stamp), alone=True),
    )
    times = {name: [float(word) for word in item.text.split()] for name, item in evidence.items.items()}
    assert times["load one"][0] >= max(times["beside"][1], times["later"][1])
    assert times["load two"][0] >= times["load one"][1]
    assert evidence.items["later"].at_s < evidence.items["load one"].at_s


def test_a_script_in_a_command_line_is_shown_by_its_name() -> None:
    evidence = collected(Collect("cpus", argv=("python3", "-c", "@stragglers.py", "1", "1000"), timeout_s=15))
    item = evidence.item("cpus")
    assert item is not None
    assert item.ok
    assert item.source == "python3 -c @stragglers.py 1 1000"
    assert json.loads(item.text)["cpus"] == len(os.sched_getaffinity(0))


def test_a_script_that_changes_makes_another_plan(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    plan = CollectPlan((Collect("it", argv=("python3", "-c", "@it.py")),), 5.0)
    monkeypatch.setattr("health.plan._ACTIVE", tmp_path)
    (tmp_path / "it.py").write_text("print(1)")
    before = plan.digest
    (tmp_path / "it.py").write_text("print(2)")
    assert plan.digest != before
