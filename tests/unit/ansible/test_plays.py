"""Plays run with the real ansible-playbook, on this machine, with nothing left behind."""

from __future__ import annotations

import asyncio
import os
import secrets
import signal
import subprocess
import sys
import textwrap
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from provision.ansible import PlayEvent, PlayEventKind, PlayOutcome, PlayPool, PlayResult
from provision.ansible_errors import PlayCanceled, PlayFailed, PlayTimeout, PlayUnreachable

pytestmark = pytest.mark.timeout(120)  # Ansible's own start takes seconds on a busy machine

ROOT = Path(__file__).resolve().parents[3]


async def play(request, **options) -> tuple[PlayResult, list[PlayEvent]]:
    seen: list[PlayEvent] = []
    async with PlayPool(1) as pool:
        result = await pool.run_play(request, on_event=seen.append, **options)
    return result, seen


def running(marker: str) -> list[int]:
    """Return the processes whose command line holds `marker`."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                line = (entry / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
            except OSError:
                continue
            if marker in line:
                found.append(int(entry.name))
    return found


def wait_until(what: Callable[[], bool], seconds: float = 60.0) -> bool:
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        if what():
            return True
        time.sleep(0.05)
    return False


async def test_a_good_play_is_counted_and_logged(request_for, tmp_path, monkeypatch):
    monkeypatch.setenv("MAAS_KEY", "an:api:key")
    monkeypatch.setenv("ANSIBLE_STDOUT_CALLBACK", "no-such-callback")  # an operator's own settings stay out
    request = request_for(
        "- name: Say\n  ansible.builtin.debug: {msg: 'hello {{ who }}'}\n"
        "- name: Look at what we were given\n  ansible.builtin.command: env\n",
        extra_vars={"who": "r7"},
    )
    result, seen = await play(request)
    assert result.ok, result
    assert (result.changed, result.stats.ok) == (1, 2)
    result.raise_for_outcome()
    told = [one for one in seen if one.kind not in {PlayEventKind.STARTED, PlayEventKind.NOTE}]
    assert [(one.kind, one.task) for one in told] == [
        (PlayEventKind.OK, "Say"),
        (PlayEventKind.CHANGED, "Look at what we were given"),
    ]
    log = (tmp_path / "artifacts" / "ansible.log").read_text()
    assert "hello r7" in log
    assert "an:api:key" not in log


async def test_the_site_says_what_its_groups_and_nodes_get(request_for, tmp_path):
    site = tmp_path / "site"
    for name, text in (
        ("group_vars/all.yml", "greeting: good day\nwho: everybody\n"),
        ("group_vars/rack_r7.yml", "who: rack seven\n"),
        ("host_vars/r7-n01.yml", "where: here\n"),
    ):
        (site / name).parent.mkdir(parents=True, exist_ok=True)
        (site / name).write_text(text)
    task = "- name: Greet\n  ansible.builtin.debug: {msg: '{{ greeting }} {{ who }} {{ where }}'}\n"
    result, _ = await play(request_for(task, vars_folder=site, groups=("rack_r7",)))
    assert result.ok, result
    assert "good day rack seven here" in (tmp_path / "artifacts" / "ansible.log").read_text()


async def test_a_check_changes_nothing(request_for, tmp_path):
    task = f"- name: Write\n  ansible.builtin.copy: {{content: x, dest: {tmp_path}/made, mode: '0600'}}\n"
    result, _ = await play(request_for(task, check=True))
    assert (result.ok, result.changed) == (True, 1)
    assert not (tmp_path / "made").exists()


async def test_a_failed_task_is_named_with_what_it_said(request_for):
    result, _ = await play(
        request_for("- name: Break\n  ansible.builtin.command: sh -c 'echo disk on fire >&2; exit 3'\n")
    )
    assert (result.outcome, result.failed_task) == (PlayOutcome.FAILED, "Break")
    assert result.message == "exit status 3: disk on fire"
    with pytest.raises(PlayFailed, match="Break failed: exit status 3: disk on fire"):
        result.raise_for_outcome()


async def test_what_must_not_be_seen_is_in_no_artifact(request_for, tmp_path):
    task = (
        "- name: Whisper\n  ansible.builtin.command: sh -c 'echo hush-{{ 6 * 7 }}; exit 1'\n  no_log: true\n"
    )
    result, seen = await play(request_for(task))
    assert result.message == "the output is hidden (no_log)"
    kept = "".join(
        path.read_text() for path in tmp_path.rglob("*") if path.is_file() and path.name != "play.yml"
    )
    assert "hush-42" not in kept + repr(seen) + repr(result)


async def test_a_failure_that_the_play_ignores_is_not_taken_for_good(request_for):
    result, _ = await play(
        request_for("- name: Shrug\n  ansible.builtin.command: 'false'\n  ignore_errors: true\n")
    )
    assert (result.outcome, result.failed_task) == (PlayOutcome.FAILED, "Shrug")


async def test_a_failure_that_is_rescued_is_good(request_for):
    tasks = (
        "- name: Try\n  block:\n    - name: Fail\n      ansible.builtin.command: 'false'\n"
        "  rescue:\n    - name: Mend\n      ansible.builtin.debug: {msg: mended}\n"
    )
    result, _ = await play(request_for(tasks))
    assert result.ok, result


async def test_an_unreachable_node_is_not_called_failed(request_for, unused_port):
    head = "- name: Try\n  hosts: all\n  gather_facts: false\n  tasks:\n"
    result, _ = await play(
        request_for("- name: Ping\n  ansible.builtin.ping:\n", head=head, port=unused_port)
    )
    assert (result.outcome, result.unreachable) == (PlayOutcome.UNREACHABLE, True)
    assert "Connection refused" in result.message
    with pytest.raises(PlayUnreachable):
        result.raise_for_outcome()


@pytest.mark.parametrize(
    ("playbook", "said"),
    [
        ("- hosts: [\n", "YAML parsing failed"),
        (
            "- hosts: nobody\n  tasks: []\n",
            "not played: [WARNING]: Could not match supplied host pattern, ignoring: nobody",
        ),
    ],
)
async def test_a_playbook_that_plays_nothing_is_not_good(request_for, playbook, said):
    result, _ = await play(request_for(playbook, head=""))
    assert result.outcome is PlayOutcome.FAILED
    assert said in result.message


@pytest.fixture
def endless(request_for):
    """A play that sleeps in a process of its own session, and the word by which to find it."""
    marker = f"3{secrets.randbelow(10**8):08}"
    task = f"- name: Sleep\n  ansible.builtin.command: setsid --wait sleep {marker}\n"
    yield request_for, task, f"sleep {marker}"
    assert running(f"sleep {marker}") == []


async def test_a_play_past_its_limit_is_ended_with_all_its_processes(endless):
    request_for, task, _ = endless
    result, _ = await play(request_for(task, timeout_s=5.0))
    assert (result.outcome, result.failed_task) in {
        (PlayOutcome.TIMED_OUT, "Sleep"),
        (PlayOutcome.TIMED_OUT, None),  # a machine so busy that Ansible had not begun
    }
    with pytest.raises(PlayTimeout):
        result.raise_for_outcome()


async def test_a_play_is_called_off_with_all_its_processes(endless):
    request_for, task, marker = endless
    cancel = asyncio.Event()
    running_play = asyncio.create_task(play(request_for(task), cancel=cancel))
    assert await asyncio.to_thread(wait_until, lambda: bool(running(marker)))
    cancel.set()
    result, _ = await running_play
    assert (result.outcome, result.failed_task) == (PlayOutcome.CANCELED, "Sleep")
    with pytest.raises(PlayCanceled):
        result.raise_for_outcome()


async def test_a_cancelled_task_leaves_no_process(endless):
    request_for, task, marker = endless
    running_play = asyncio.create_task(play(request_for(task)))
    assert await asyncio.to_thread(wait_until, lambda: bool(running(marker)))
    running_play.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running_play


async def test_a_play_that_waits_for_a_slot_can_be_called_off(endless):
    request_for, task, marker = endless
    cancel_first, cancel_second = asyncio.Event(), asyncio.Event()
    async with PlayPool(1) as pool:
        first = asyncio.create_task(
            pool.run_play(request_for(task), on_event=lambda _: None, cancel=cancel_first)
        )
        assert await asyncio.to_thread(wait_until, lambda: bool(running(marker)))
        second = asyncio.create_task(
            pool.run_play(request_for(task), on_event=lambda _: None, cancel=cancel_second)
        )
        cancel_second.set()
        await asyncio.sleep(0)
        cancel_first.set()
        assert [(await each).outcome for each in (second, first)] == [PlayOutcome.CANCELED] * 2


def test_our_own_death_leaves_no_process_and_no_folder(endless, tmp_path):
    request_for, task, marker = endless
    request = request_for(task)
    script = textwrap.dedent(
        f"""
        import asyncio
        from pathlib import Path
        from provision.ansible import PlayPool, PlayRequest
        here = Path({str(tmp_path)!r})
        play = Path({str(request.playbook)!r})
        async def main():
            async with PlayPool(1) as pool:
                await pool.run_play(
                    PlayRequest(play, "n", "127.0.0.1", here / "key", here / "kh", here / "a"),
                    on_event=lambda event: None,
                )
        asyncio.run(main())
        """
    )
    temporary = tmp_path / "t"
    temporary.mkdir()
    ours = subprocess.Popen(
        [sys.executable, "-c", script], cwd=ROOT, env={**os.environ, "TMPDIR": str(temporary)}
    )
    assert request.playbook.exists()
    assert wait_until(lambda: bool(running(marker)))
    assert list(temporary.glob("mp-*"))
    os.kill(ours.pid, signal.SIGKILL)
    ours.wait()
    assert wait_until(lambda: not running(marker) and not running(str(temporary)))
    # What a module that was killed leaves is the node's, which here is this machine.
    assert wait_until(lambda: not list(temporary.glob("mp-*")))
