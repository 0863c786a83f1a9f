"""A node runs its play itself, with the real worker in a Python of its own; ssh is a stand-in."""

from __future__ import annotations

import asyncio
import os
import sys
import tarfile
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from provision import ansible_bundle, ansible_worker
from provision.ansible import PlayEvent, PlayEventKind, PlayOutcome, PlayPool, PlayRequest, Transport
from tests.unit.ansible.conftest import HEAD
from tests.unit.ansible.far_end import FarEnd
from tests.unit.ansible.test_plays import play, running, wait_until

pytestmark = pytest.mark.timeout(180)


@pytest.fixture
def far(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[FarEnd]:
    """The node's end. Its Python is ours, without anything of ours in it."""
    home, programs = tmp_path / "home", tmp_path / "bin"
    home.mkdir()
    programs.mkdir()
    monkeypatch.setenv("PATH", f"{programs}:{os.environ['PATH']}")
    monkeypatch.setattr(ansible_worker, "PYTHON", sys.executable)
    made = FarEnd(programs, home)
    yield made
    made.close()


@pytest.fixture
def node(far: FarEnd, tmp_path: Path) -> Path:
    """Where the node keeps what it was sent."""
    return tmp_path / "home" / ".cache" / "muster-play"


@pytest.fixture
def there(request_for: Callable[..., PlayRequest], node: Path) -> Callable[..., PlayRequest]:
    """Ask for a play on that node, whose user may become nobody else."""

    def make(tasks: str, **changes: object) -> PlayRequest:
        made = request_for(tasks, **changes)
        return replace(made, transport=Transport.WORKER, user="somebody", become=False)

    return make


async def test_a_node_plays_with_what_it_was_sent_and_tells_how_it_went(there, node, tmp_path):
    site = tmp_path / "site"
    for name, text in (
        ("group_vars/all.yml", "greeting: good day\n"),
        ("group_vars/rack_r7.yml", "who: rack seven\n"),
        ("group_vars/rack_r8.yml", "secret: of others\n"),
        ("host_vars/r7-n01.yml", "where: here\n"),
        ("host_vars/r7-n02.yml", "secret: of others\n"),
    ):
        (site / name).parent.mkdir(parents=True, exist_ok=True)
        (site / name).write_text(text)
    tasks = (
        "- name: Greet\n  ansible.builtin.debug:\n"
        "    msg: '{{ greeting }} {{ who }} {{ where }} {{ what }} at {{ ansible_host }}'\n"
        "- name: Look around\n  ansible.builtin.shell: ls -R {{ inventory_dir }}; echo $PYTHONPATH\n"
        "  register: seen\n"
        "- name: Tell\n  ansible.builtin.debug: {var: seen.stdout_lines}\n"
    )
    request = there(tasks, vars_folder=site, groups=("rack_r7",), extra_vars={"what": "to you"})
    result, seen = await play(request)
    assert result.ok, result
    assert (result.changed, result.stats.ok) == (1, 3)
    told = [(one.kind, one.task) for one in seen if one.kind in {PlayEventKind.OK, PlayEventKind.CHANGED}]
    assert told == [
        (PlayEventKind.OK, "Greet"), (PlayEventKind.CHANGED, "Look around"), (PlayEventKind.OK, "Tell"),
    ]  # fmt: skip
    log = (tmp_path / "artifacts" / "ansible.log").read_text()
    assert "good day rack seven here to you at 127.0.0.1" in log
    assert str(node) in log  # it ran there, with what was brought there
    assert "r8" not in log
    assert "n02" not in log
    assert {path.name for path in node.iterdir()} - {"lock"} == {bundle_of(node)}


def bundle_of(node: Path) -> str:
    """Return the one bundle that is there."""
    (found,) = [path.name for path in node.iterdir() if len(path.name) == 64]
    return found


async def test_the_bundle_is_sent_once_and_an_older_one_goes(there, node):
    (node / ("0" * 64)).mkdir(parents=True)
    (node / "run-killed").mkdir()
    say = there("- name: Say\n  ansible.builtin.debug: {msg: x}\n")
    assert (await play(say))[0].ok
    mark = node / bundle_of(node) / "sent before"
    mark.touch()
    assert (await play(say))[0].ok
    assert mark.exists()
    assert not (node / "run-killed").exists()


async def test_a_failed_task_is_named_with_what_it_said(there):
    result, _ = await play(
        there("- name: Break\n  ansible.builtin.command: sh -c 'echo disk on fire >&2; exit 3'\n")
    )
    assert (result.outcome, result.failed_task) == (PlayOutcome.FAILED, "Break")
    assert result.message == "exit status 3: disk on fire"


async def test_a_node_that_is_not_reached_is_unreachable(there, far):
    far.program.write_text("#!/bin/sh\necho 'no route to host' >&2\nexit 255\n")
    result, _ = await play(there("- name: Say\n  ansible.builtin.debug: {msg: x}\n"))
    assert (result.outcome, result.message) == (PlayOutcome.UNREACHABLE, "no route to host")


@pytest.mark.parametrize("told", ["Welcome to this node!", "have\\n[]", 'have\\n{"zipfile": "x"}'])
async def test_a_node_that_says_something_else_is_no_success_and_not_waited_for(there, far, told):
    far.program.write_text(f"#!/bin/sh\nprintf '{told}\\n'\nexec cat > /dev/null\n")
    result, _ = await play(there("- name: Say\n  ansible.builtin.debug: {msg: x}\n"))
    assert result.outcome is PlayOutcome.FAILED
    assert "came b'Welcome" in result.message or "cannot be read" in result.message


async def test_a_connection_that_breaks_in_the_middle_is_no_success(there, far, node):
    mark = "3600.451"
    going = asyncio.create_task(play(there(f"- name: Long\n  ansible.builtin.command: sleep {mark}\n")))
    assert await asyncio.to_thread(wait_until, lambda: bool(running(f"sleep {mark}")))
    far.cut()
    result, _ = await going
    assert not result.ok
    assert await asyncio.to_thread(wait_until, lambda: not running(mark))
    assert await asyncio.to_thread(wait_until, lambda: not list(node.glob("run-*")))


EVIL = """#!{python}
import base64, io, json, stat, sys, zipfile
held = io.BytesIO()
with zipfile.ZipFile(held, "w") as archive:
    link = zipfile.ZipInfo("x")
    link.external_attr = (stat.S_IFLNK | 0o777) << 16
    archive.writestr(link, {outside!r})
    archive.writestr("x/evil", "written by a node")
data = held.getvalue()
sys.stdout.buffer.write(b"have\\n")
sys.stdout.buffer.write(json.dumps({{"zipfile": len(data)}}).encode() + b"\\n" + base64.b64encode(data))
sys.stdout.buffer.write(json.dumps({{"eof": True}}).encode() + b"\\n")
sys.stdout.flush()
while b'"eof"' not in sys.stdin.buffer.readline(): pass
"""


async def test_a_node_writes_no_files_here(there, far, tmp_path):
    outside = tmp_path / "outside"
    outside.mkdir()
    far.program.write_text(EVIL.format(python=sys.executable, outside=str(outside)))
    result, _ = await play(there("- name: Say\n  ansible.builtin.debug: {msg: x}\n"))
    assert not result.ok
    assert list(outside.iterdir()) == []


@pytest.mark.parametrize(
    ("found", "told"),
    [
        ({"PYTHON_SAYS": "2.7"}, "the node has Python"),
        ({"DIGEST": "0" * 64}, "another sha256"),
    ],
)
async def test_what_does_not_fit_is_refused_with_the_reason(there, monkeypatch, found, told):
    if "PYTHON_SAYS" in found:
        monkeypatch.setattr(ansible_worker, "VERSION", found["PYTHON_SAYS"])
    else:
        packed = ansible_worker.Bundle.packed
        monkeypatch.setattr(ansible_worker.Bundle, "packed", lambda self: (found["DIGEST"], packed(self)[1]))
    result, _ = await play(there("- name: Say\n  ansible.builtin.debug: {msg: x}\n"))
    assert result.outcome is PlayOutcome.FAILED
    assert told in result.message


@pytest.mark.parametrize("how", ["timeout", "canceled"])
async def test_a_play_that_is_ended_leaves_nothing_on_the_node(there, node, how):
    mark = "3600.789"
    request = there(
        f"- name: Long\n  ansible.builtin.command: sleep {mark}\n",
        timeout_s=120.0 if how == "canceled" else 25.0,
    )
    seen: list[PlayEvent] = []
    cancel = asyncio.Event()
    async with PlayPool(1) as pool:
        going = asyncio.create_task(pool.run_play(request, on_event=seen.append, cancel=cancel))
        assert await asyncio.to_thread(wait_until, lambda: bool(running(f"sleep {mark}")))
        if how == "canceled":
            cancel.set()
        result = await going
    assert result.outcome is {"timeout": PlayOutcome.TIMED_OUT, "canceled": PlayOutcome.CANCELED}[how]
    assert await asyncio.to_thread(wait_until, lambda: not running(mark))
    assert await asyncio.to_thread(wait_until, lambda: not list(node.glob("run-*")))


async def test_who_comes_after_a_broken_connection_ends_what_that_one_left(there, far, tmp_path):
    mark = "3600.567"
    far.silent = True
    first = asyncio.create_task(play(there(f"- name: Long\n  ansible.builtin.command: sleep {mark}\n")))
    assert await asyncio.to_thread(wait_until, lambda: bool(running(f"sleep {mark}")))
    far.cut()
    assert not (await first)[0].ok
    assert running(f"sleep {mark}")
    again = replace(there("- name: Say\n  ansible.builtin.debug: {msg: x}\n"), artifacts=tmp_path / "second")
    result, _ = await play(again)
    assert result.ok, result
    assert not running(mark)


async def test_a_role_that_needs_a_reboot_gets_it_from_outside_once(there, monkeypatch, tmp_path):
    rebooted = tmp_path / "rebooted"
    outside = tmp_path / "reboot.yml"
    outside.write_text(
        f"{HEAD}"
        f"    - name: Reboot\n      ansible.builtin.copy: {{content: '', dest: {rebooted}, mode: '0600'}}\n"
    )
    monkeypatch.setattr("provision.ansible._REBOOT", outside)
    monkeypatch.setattr("provision.ansible_on_node._REBOOT_NOW", tmp_path)
    source = Path(ansible_worker.ansible_on_node.__file__).read_text()
    monkeypatch.setattr(
        ansible_worker, "source", lambda: source.replace("/run/muster-reboot/.now", f"{tmp_path}/now")
    )
    asks = (
        "- name: See whether it was rebooted\n  ansible.builtin.stat: {path: '%s'}\n  register: there\n"
        "- name: Ask\n  ansible.builtin.copy: {content: '', dest: '%s/now', mode: '0600'}\n"
        "  when: %s\n"
        "- name: Leave off\n  ansible.builtin.meta: end_host\n  when: %s\n"
        "- name: Go on\n  ansible.builtin.debug: {msg: after it}\n"
    )
    once = asks % (rebooted, tmp_path, "not there.stat.exists", "not there.stat.exists")
    result, seen = await play(there(once))
    assert result.ok, result
    assert [one.task for one in seen if one.kind is PlayEventKind.CHANGED] == ["Ask", "Reboot"]
    assert "Go on" in [one.task for one in seen if one.kind is PlayEventKind.OK]
    assert result.changed == 2
    always = asks % (rebooted, tmp_path, "true", "true")
    result, _ = await play(there(always))
    assert (result.outcome, result.message) == (PlayOutcome.FAILED, "a role asks for a second reboot")


async def test_what_was_played_before_a_reboot_does_not_count_after_it(there, monkeypatch, tmp_path):
    playbook = there("- name: Say\n  ansible.builtin.debug: {msg: x}\n")
    outside = tmp_path / "reboot.yml"
    outside.write_text(f"{HEAD}    - name: Reboot\n      ansible.builtin.debug: {{msg: done}}\n")
    monkeypatch.setattr("provision.ansible._REBOOT", outside)
    ended = iter([ansible_worker.Ended(ansible_worker.REBOOT), ansible_worker.Ended(0)])
    monkeypatch.setattr(ansible_worker, "run", lambda *_, **__: next(ended))
    result, _ = await play(playbook)
    assert (result.outcome, result.message) == (PlayOutcome.FAILED, "the node was not played")


def test_the_bundle_has_all_that_templates_ask(tmp_path):
    ansible_bundle.pack(ansible_bundle.CONTENTS["worker"], tmp_path / "worker.tar")
    with tarfile.open(tmp_path / "worker.tar") as tar:
        names = set(tar.getnames())
    assert {
        "ansible/plugins/test/core.py",
        "ansible_runner/display_callback/callback/awx_display.py",
    } <= names
    assert "provision/ansible_guard.py" in names
