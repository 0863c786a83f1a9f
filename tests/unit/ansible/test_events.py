"""What is read out of ansible-runner's events."""

from __future__ import annotations

import pytest

from provision.ansible_events import PlayEventKind, failure_message, one_line, read_event, read_stats


def raw(name: str, **data: object) -> dict[str, object]:
    return {"event": name, "created": "2026-11-02T08:00:01.5", "event_data": data}


def test_a_task_of_a_role_is_told_apart_from_its_role():
    event = read_event(
        raw("runner_on_ok", role="base", task="base : Write it", res={"changed": True}, duration=1.5)
    )
    assert event is not None
    assert (event.kind, event.role, event.task) == (PlayEventKind.CHANGED, "base", "Write it")
    assert event.seconds == 1.5
    assert event.at.isoformat() == "2026-11-02T08:00:01.500000+00:00"


@pytest.mark.parametrize(
    ("name", "data", "kind"),
    [
        ("playbook_on_task_start", {"task": "a"}, PlayEventKind.STARTED),
        ("runner_on_ok", {"task": "a", "res": {"changed": False}}, PlayEventKind.OK),
        ("runner_on_skipped", {"task": "a", "res": {}}, PlayEventKind.SKIPPED),
        ("runner_on_failed", {"task": "a", "res": {"msg": "x"}}, PlayEventKind.FAILED),
        (
            "runner_on_failed",
            {"task": "a", "ignore_errors": True, "res": {"msg": "x"}},
            PlayEventKind.IGNORED,
        ),
        ("runner_on_unreachable", {"task": "a", "res": {"msg": "x"}}, PlayEventKind.UNREACHABLE),
    ],
)
def test_kinds(name, data, kind):
    event = read_event(raw(name, **data))
    assert event is not None
    assert event.kind is kind


@pytest.mark.parametrize(
    "name", ["playbook_on_start", "playbook_on_play_start", "runner_item_on_ok", "nonsense"]
)
def test_events_that_say_nothing_of_a_task_are_left_out(name):
    assert read_event(raw(name)) is None


def test_totals_count_unreachable_nodes_that_ansible_calls_dark():
    stats = read_stats(raw("playbook_on_stats", ok={"n1": 3}, dark={"n1": 1}, failures={}, ignored={"n1": 2}))
    assert stats is not None
    assert (stats.ok, stats.unreachable, stats.failed, stats.ignored) == (3, 1, 0, 2)
    assert read_stats(raw("runner_on_ok")) is None


@pytest.mark.parametrize(
    ("result", "said"),
    [
        ({"msg": "No package matching 'x' is available"}, "No package matching 'x' is available"),
        (
            {"msg": "non-zero return code", "rc": 9, "stderr": "first\nno driver\n"},
            "exit status 9: no driver",
        ),
        ({"msg": "non-zero return code", "rc": 1, "stdout": "only stdout"}, "exit status 1: only stdout"),
        ({"msg": "MODULE FAILURE\nSee stdout", "module_stderr": "Traceback\nOSError: full"}, "OSError: full"),
        ({"results": [{"item": "a"}, {"item": "b", "failed": True, "msg": "bad"}]}, "b: bad"),
        ({"censored": "hidden", "msg": "s3cret"}, "the output is hidden (no_log)"),
        ({}, "no message"),
    ],
)
def test_the_line_that_says_most(result, said):
    assert said in failure_message(result)


def test_a_line_is_plain_and_short():
    assert one_line("\x1b[0;31mred\x1b[0m\n  and   more") == "red and more"
    assert len(one_line("x" * 1000)) == 400
