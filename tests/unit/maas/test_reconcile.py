"""Site files against MAAS: every way to disagree, and what is done about it."""

from __future__ import annotations

from dataclasses import replace

import pytest
import yaml

from inventory.site import load
from provision.maas.differences import DifferenceKind, SeenMachine, WantedMachine, compare
from provision.maas.import_site import import_site
from provision.maas.model import Machine, MachineStatus, PowerParameters
from provision.maas.reconcile import Create, Retag, Update, plan, wanted_machines

SECRET = "hush-hush"


def wanted(number: int = 1, **changes: object) -> WantedMachine:
    plain = WantedMachine(
        name=f"r7-n{number:02}",
        macs=(f"02:00:00:00:07:{number:02x}",),
        serial=f"SN-{number}",
        power={"power_address": f"10.9.7.{number}", "power_user": "bringer", "power_pass": SECRET},
        pool="reliable",
        zone="row-b",
    )
    return replace(plain, **changes)  # type: ignore[arg-type]


def seen(number: int = 1, *, power: dict[str, str] | None = None, **changes: object) -> SeenMachine:
    """A machine that agrees with `wanted` of the same number, but for the changes."""
    plain = Machine(
        system_id=f"sys{number}",
        hostname=f"r7-n{number:02}",
        status=MachineStatus.READY,
        status_name="Ready",
        power_type="ipmi",
        pool="reliable",
        zone="row-b",
        macs=(f"02:00:00:00:07:{number:02x}", f"02:00:00:00:08:{number:02x}"),
        serial=f"SN-{number}",
    )
    values = {"power_address": f"10.9.7.{number}", "power_user": "bringer", "power_pass": SECRET} | (
        power or {}
    )
    return SeenMachine(replace(plain, **changes), PowerParameters(values["power_address"], values))  # type: ignore[arg-type]


def kinds(nodes: list[WantedMachine], machines: list[SeenMachine], **options: object) -> list[DifferenceKind]:
    return [one.kind for one in compare(nodes, machines, **options).differences]  # type: ignore[arg-type]


def test_a_site_that_agrees_has_no_differences():
    comparison = compare([wanted(1), wanted(2)], [seen(2), seen(1)])
    assert comparison.differences == ()
    assert {name: machine.system_id for name, machine in comparison.matched.items()} == {
        "r7-n01": "sys1",
        "r7-n02": "sys2",
    }


@pytest.mark.parametrize(
    ("machine", "kind", "found"),
    [
        (seen(hostname="misty-owl"), DifferenceKind.RENAMED, "misty-owl"),
        (seen(macs=("02:00:00:00:09:01",)), DifferenceKind.WRONG_MAC, "02:00:00:00:09:01"),
        (seen(power={"power_address": "10.9.7.99"}), DifferenceKind.WRONG_POWER, "power_address 10.9.7.99"),
        (seen(power={"power_user": "root"}), DifferenceKind.WRONG_POWER, "power_user root"),
        (seen(power={"power_pass": "old"}), DifferenceKind.WRONG_POWER, "power_pass differs"),
        (seen(pool="default"), DifferenceKind.WRONG_POOL, "default"),
        (seen(zone="row-a"), DifferenceKind.WRONG_ZONE, "row-a"),
    ],
)
def test_a_machine_that_disagrees(machine, kind, found):
    (difference,) = compare([wanted()], [machine]).differences
    assert (difference.kind, difference.found) == (kind, found)
    assert (difference.node, difference.system_id) == ("r7-n01", "sys1")
    assert SECRET not in f"{difference!r} {wanted()!r} {machine!r}"
    assert "old" not in difference.wanted + difference.found


def test_what_the_site_does_not_say_is_not_compared():
    silent = wanted(pool=None, zone=None, power={"power_address": "10.9.7.1"}, serial=None)
    assert kinds([silent], [seen(pool="x", zone="y", power={"power_pass": "z"}, serial=None)]) == []
    assert kinds([wanted()], [replace(seen(), power=None)]) == []


def test_only_our_tags_are_compared():
    machine = seen(tags=("gpu", "theirs", "stale"))
    ours = ["gpu", "stale", "fresh"]
    assert kinds([wanted(tags=frozenset({"gpu", "stale"}))], [machine], managed_tags=ours) == []
    comparison = compare([wanted(tags=frozenset({"gpu", "fresh"}))], [machine], managed_tags=ours)
    (difference,) = comparison.differences
    assert (difference.wanted, difference.found) == ("fresh, gpu", "gpu, stale")
    (change,) = plan(comparison, [wanted(tags=frozenset({"gpu", "fresh"}))]).changes
    assert change == Retag("r7-n01", "sys1", frozenset({"fresh"}), frozenset({"stale"}))


def test_missing_and_extra():
    comparison = compare([wanted(1)], [seen(2)])
    missing, extra = comparison.differences
    assert (missing.kind, missing.node) == (DifferenceKind.MISSING, "r7-n01")
    assert (extra.kind, extra.node, extra.by_hand) == (DifferenceKind.EXTRA, "r7-n02", True)


def test_a_name_alone_never_makes_a_match():
    other = seen(9, hostname="r7-n01")
    comparison = compare([wanted(1)], [other])
    assert comparison.differences[0].kind is DifferenceKind.NAME_TAKEN
    assert comparison.matched == {}
    assert plan(comparison, [wanted(1)]).changes == ()


def test_a_moved_cable_is_shown_and_nothing_is_guessed():
    """The BMC of node 1 answers for one machine, its MAC is in another."""
    first = seen(1, macs=("02:00:00:00:07:02",))
    second = seen(2, macs=("02:00:00:00:07:01",))
    comparison = compare([wanted(1)], [first, second])
    (difference,) = comparison.differences
    assert difference.kind is DifferenceKind.AMBIGUOUS
    assert "sys1" in difference.found
    assert "sys2" in difference.found
    assert plan(comparison, [wanted(1)]).by_hand == (difference,)


def test_two_machines_at_one_bmc_are_named_together():
    twin = seen(2, hostname="r7-n01-old", serial=None, power={"power_address": "10.9.7.1"})
    comparison = compare([wanted(1)], [seen(1), twin])
    duplicate = next(one for one in comparison.differences if one.kind is DifferenceKind.DUPLICATE_BMC)
    assert duplicate.found == "r7-n01 (sys1), r7-n01-old (sys2)"
    assert duplicate.by_hand


def test_a_locked_machine_is_left_to_people():
    comparison = compare([wanted()], [seen(pool="default", locked=True)])
    made = plan(comparison, [wanted()])
    assert made.changes == ()
    assert [one.kind for one in made.by_hand] == [DifferenceKind.WRONG_POOL]


def test_a_plan_creates_and_updates_and_shows_no_secret():
    nodes = [wanted(1), wanted(2, power_type="ipmi", tags=frozenset({"gpu"}))]
    made = plan(compare(nodes, [seen(1, power={"power_pass": "old"})]), nodes)
    update, create = made.changes
    assert isinstance(update, Update)
    assert update.fields == {
        "power_parameters_power_address": "10.9.7.1",
        "power_parameters_power_user": "bringer",
        "power_parameters_power_pass": SECRET,
    }
    assert isinstance(create, Create)
    assert (create.new.hostname, create.groups) == ("r7-n02", {"pool": "reliable", "zone": "row-b"})
    assert create.tags == {"gpu"}
    assert SECRET not in repr(made)


def test_swapped_names_are_renamed_by_way_of_a_third():
    nodes = [wanted(1), wanted(2)]
    made = plan(compare(nodes, [seen(1, hostname="r7-n02"), seen(2, hostname="r7-n01")]), nodes)
    names = [(one.system_id, one.fields["hostname"]) for one in made.changes if isinstance(one, Update)]
    assert names == [
        ("sys1", "sys1-renamed"),
        ("sys2", "sys2-renamed"),
        ("sys1", "r7-n01"),
        ("sys2", "r7-n02"),
    ]


SITE = """\
name: taken-over
maas: {url: "http://maas.site.test:5240/MAAS", key: "file:maas-key"}
ssh: {user: ubuntu, key: "file:ssh_key"}
"""


def test_an_imported_site_agrees_with_the_maas_that_it_came_from(tmp_path):
    machines = [
        seen(1),
        seen(2, zone="Row C/2", architecture="arm64/generic"),
        seen(3, power={"power_pass": "another"}, serial=None),
        seen(4, hostname="virtual", power_type="manual"),
        seen(5, hostname="twin", power={"power_address": "10.9.7.1"}),
        seen(6, hostname="Nameless_6"),
        seen(7, power={"power_user": ""}),
    ]
    imported = import_site(machines, profile="gpu")
    assert [(one.hostname, one.why.split()[0]) for one in imported.skipped] == [
        ("Nameless_6", "Nameless_6"),
        ("r7-n07", "MAAS"),
        ("twin", "its"),
        ("virtual", "its"),
    ]
    assert SECRET not in imported.racks + imported.credentials_yaml() + repr(imported)

    (tmp_path / "racks.yaml").write_text(imported.racks)
    (tmp_path / "site.yaml").write_text(SITE + imported.credentials_yaml())
    (tmp_path / "profiles.yaml").write_text(yaml.safe_dump({"profiles": {"gpu": {"vendor": "Example"}}}))
    site = load(tmp_path)
    passwords = {one.name: one.password for one in imported.credentials}
    nodes = wanted_machines(site, password=lambda node: passwords[node.bmc.credential])
    assert compare(nodes, machines[:3]).differences == ()
    assert {node.name: node.rack for node in site.nodes}["r7-n02"] == "row-c-2"
