"""The fleet: which parts offend again, whose links flap, and what parts are called."""

from __future__ import annotations

import pytest

from benchmarks.recorded_nodes import load
from health.fleet import Offence, Reading, flap_windows, offences, repeat_offenders
from health.outcome import Action, Finding, Outcome, Status
from health.parts import part_serials, serial_of

DAY = 86_400.0


def offence(serial: str, at: float, node: str = "n1", check: str = "gpu.xid") -> Offence:
    return Offence(serial, "gpu", node, check, at)


def test_a_part_that_fails_again_is_an_offender_wherever_it_sits() -> None:
    seen = [offence("A", 0), offence("A", DAY, "n2"), offence("B", DAY), offence("C", 0), offence("C", 60)]
    (only,) = repeat_offenders(seen, since=0)
    assert (only.serial, only.times, only.nodes, only.moved) == ("A", 2, ("n1", "n2"), True)


def test_a_fault_that_is_looked_at_again_is_one_fault() -> None:
    looks = [offence("A", minute * 60.0) for minute in range(50)]
    assert repeat_offenders(looks, since=0) == ()
    (only,) = repeat_offenders([*looks, offence("A", 2 * DAY)], since=0)
    assert only.times == 2
    assert not only.moved


def test_what_was_long_ago_is_forgotten() -> None:
    assert repeat_offenders([offence("A", 0), offence("A", 9 * DAY)], since=DAY) == ()


def test_offences_name_the_part_and_not_its_place() -> None:
    parts = part_serials(load("xe9680-h100").evidence())
    finding = Finding("gpu", "0000:9b:00", "Xid 79", Action.REBOOT)
    twice = Outcome("gpu.xid", Status.FAIL, (finding, finding), "")
    mild = Outcome("gpu.remap", Status.WARN, (Finding("gpu", "x", "y", Action.NONE, Status.WARN),), "")
    (only,) = offences("n1", [twice, mild], parts, 5.0)
    assert only == Offence("GPU 1680860714159", "gpu", "n1", "gpu.xid", 5.0)


@pytest.mark.parametrize("name", ["xe9680-h100", "dgx-h100", "hgx-h200"])
def test_every_gpu_adapter_and_dimm_has_a_name_of_its_own(name: str) -> None:
    node = load(name)
    parts = part_serials(node.evidence())
    kinds = [serial.split()[0] for serial in parts.values()]
    assert kinds.count("GPU") == 8
    assert kinds.count("adapter") >= 8
    assert kinds.count("DIMM") == node.profile.limit("host.dimms")
    assert len(set(parts.values())) == len(parts)


@pytest.mark.parametrize(
    "identity",
    ["0000:9b:00", "0000:9b:00.0", "PCI:0000:9b:00", "00000000:9B:00.0", "1680860714159 at 0000:9b:00.0"],
)
def test_a_part_is_found_by_any_form_of_its_address(identity: str) -> None:
    parts = part_serials(load("xe9680-h100").evidence())
    assert serial_of(identity, parts) == "GPU 1680860714159"
    assert serial_of("/scratch", parts) == "/scratch"


def readings(*counts: int, boot: str = "a", step: float = 3600.0) -> list[Reading]:
    return [Reading(at * step, boot, count) for at, count in enumerate(counts)]


def test_a_link_that_goes_often_within_a_day_flaps() -> None:
    found = flap_windows({"mlx5_0": readings(0, 2, 2, 5, 6), "mlx5_1": readings(0, 0, 1, 1, 2)})
    assert [(one.link, one.times) for one in found] == [("mlx5_0", 6)]
    assert (found[0].began, found[0].ended) == (0.0, 4 * 3600.0)


def test_the_same_over_weeks_does_not() -> None:
    slow = readings(0, 1, 2, 3, 4, 5, 6, step=2 * DAY)
    assert flap_windows({"mlx5_0": slow}) == ()
    assert flap_windows({"mlx5_0": slow}, window_s=30 * DAY)[0].times == 6


def test_another_boot_begins_anew() -> None:
    mixed = [*readings(0, 3), *(Reading(9000.0 + at, "b", count) for at, count in enumerate((0, 3)))]
    assert flap_windows({"x": mixed}, least=6)[0].times == 6
    fell = readings(9, 0, 9)
    assert flap_windows({"x": fell}, least=1)[0].times == 9
