"""Which rung a verdict asks for: what findings name, each once, nothing by itself where hands are needed."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from health.check import Level
from health.outcome import Action, Status
from health.verdict import Answer, Reason, Verdict
from provision import fixing
from provision.fixing import LADDER, Fix, Rung, Stop

FIXABLE = [Action(str(rung)) for rung in Rung]
HANDS = [Action.RESEAT, Action.VENDOR_TICKET, Action.INVESTIGATE]


def reason(
    action: Action, check: str = "host.x", identity: str = "part", component: str = "host", **more: object
) -> Reason:
    status = more.get("status", Status.FAIL)
    assert isinstance(status, Status)
    return Reason(check, status, component, identity, "is bad", action, gates=bool(more.get("gates", True)))


def said(answer: Answer, *reasons: Reason) -> Verdict:
    return Verdict(answer, "p", Level.QUICK, (), reasons, "digest", "boot")


def test_a_yes_needs_nothing() -> None:
    assert fixing.choose(said(Answer.YES), ()) is None


def test_unknown_is_asked_again_and_then_only_a_human_acts() -> None:
    unknown = said(Answer.UNKNOWN, reason(Action.REBOOT, status=Status.UNKNOWN))
    assert fixing.choose(unknown, ()) == Fix(Rung.RERUN, (), unknown.summary)
    stop = fixing.choose(unknown, {Rung.RERUN})
    assert isinstance(stop, Stop)
    assert not stop.repair


@pytest.mark.parametrize(
    ("found", "rung", "parts"),
    [
        (reason(Action.RESTART_SERVICE, identity="nvidia-fabricmanager.service"), Rung.RESTART_SERVICE,
         ("nvidia-fabricmanager.service",)),
        (reason(Action.RESTART_SERVICE, "container.runtime", "docker"), Rung.RESTART_SERVICE,
         ("docker.service",)),
        (reason(Action.RESTART_SERVICE, "kernel.modules", "nvidia_peermem"), Rung.REBOOT, ()),
        (reason(Action.GPU_RESET, "gpu.remap", "1650 at 0000:3a:00.0", "gpu"), Rung.GPU_RESET,
         ("0000:3a:00.0",)),
        (reason(Action.GPU_RESET, "nvlink.links", "GPU-adde1dd4-e51a-6877-03ff-09a78d6f708c", "nvlink"),
         Rung.GPU_RESET, ("GPU-adde1dd4-e51a-6877-03ff-09a78d6f708c",)),
        (reason(Action.GPU_RESET, "gpu.x", "GPUs of this node", "gpu"), Rung.GPU_RESET, ()),
        (reason(Action.REBOOT), Rung.REBOOT, ()),
        (reason(Action.POWER_CYCLE, "gpu.count", "GPUs of this node", "gpu"), Rung.POWER_CYCLE, ()),
    ],
)  # fmt: skip
def test_the_rung_is_what_the_finding_names(found: Reason, rung: Rung, parts: tuple[str, ...]) -> None:
    choice = fixing.choose(said(Answer.NO, found), ())
    assert isinstance(choice, Fix)
    assert (choice.rung, choice.parts) == (rung, parts)


def test_the_strongest_fix_that_is_asked_for_is_the_one() -> None:
    both = said(Answer.NO, reason(Action.RESTART_SERVICE, identity="a.service"), reason(Action.POWER_CYCLE))
    choice = fixing.choose(both, ())
    assert isinstance(choice, Fix)
    assert choice.rung is Rung.POWER_CYCLE


def test_what_did_not_help_is_not_done_twice() -> None:
    bad = said(Answer.NO, reason(Action.GPU_RESET, "gpu.ecc", "0000:3a:00.0", "gpu"))
    tried: list[Rung] = []
    while isinstance(choice := fixing.choose(bad, tried, highest=Rung.REIMAGE), Fix):
        tried.append(choice.rung)
    assert tried == [Rung.GPU_RESET, Rung.REBOOT, Rung.POWER_CYCLE, Rung.REIMAGE]
    assert isinstance(choice, Stop)
    assert choice.repair


def test_a_gpu_is_not_reset_for_what_is_not_about_gpus() -> None:
    bad = said(Answer.NO, reason(Action.RESTART_SERVICE, identity="a.service"))
    choice = fixing.choose(bad, {Rung.RESTART_SERVICE})
    assert isinstance(choice, Fix)
    assert choice.rung is Rung.REBOOT


def test_no_disk_is_wiped_unless_it_is_allowed() -> None:
    bad = said(Answer.NO, reason(Action.REIMAGE, "driver.version", "driver"))
    stop = fixing.choose(bad, ())
    assert isinstance(stop, Stop)
    assert (stop.repair, stop.next) == (False, "invoke reimage --nodes {node} --reason '...'")
    choice = fixing.choose(bad, (), highest=Rung.REIMAGE)
    assert isinstance(choice, Fix)
    assert choice.rung is Rung.REIMAGE


@pytest.mark.parametrize("action", HANDS)
def test_where_one_part_needs_hands_nothing_is_tried(action: Action) -> None:
    stop = fixing.choose(said(Answer.NO, reason(Action.REBOOT), reason(action)), ())
    assert isinstance(stop, Stop)
    assert stop.repair is (action is not Action.INVESTIGATE)


def test_what_comes_again_after_two_ladders_goes_to_repair() -> None:
    bad = said(Answer.NO, reason(Action.REBOOT))
    assert isinstance(fixing.choose(bad, (), before=1), Fix)
    stop = fixing.choose(bad, (), before=2)
    assert isinstance(stop, Stop)
    assert stop.repair


def test_a_check_in_shadow_and_a_warning_ask_for_no_fix() -> None:
    quiet = reason(Action.RESEAT, gates=False)
    mild = reason(Action.VENDOR_TICKET, status=Status.WARN)
    choice = fixing.choose(said(Answer.NO, reason(Action.REBOOT), quiet, mild), ())
    assert isinstance(choice, Fix)
    assert fixing.faults(said(Answer.NO, reason(Action.REBOOT), quiet, mild)) == {"host.x part"}


@given(
    actions=st.lists(st.sampled_from([*FIXABLE, *HANDS]), min_size=1, max_size=5),
    tried=st.sets(st.sampled_from(list(Rung))),
    highest=st.sampled_from(list(Rung)),
    before=st.integers(0, 3),
    answer=st.sampled_from(list(Answer)),
)
def test_no_fix_is_beyond_what_is_allowed_or_a_second_time(
    actions: list[Action], tried: set[Rung], highest: Rung, before: int, answer: Answer
) -> None:
    choice = fixing.choose(
        said(answer, *(reason(action) for action in actions)), tried, before=before, highest=highest
    )
    if isinstance(choice, Fix):
        assert choice.rung not in tried
        assert answer is not Answer.YES
        assert choice.rung is Rung.RERUN or LADDER.index(choice.rung) <= LADDER.index(highest)
        assert choice.rung is Rung.RERUN or answer is Answer.NO
