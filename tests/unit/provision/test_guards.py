"""What stands between an operator and an accident."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from inventory.model import Node
from provision import guards
from provision.access import Access
from provision.errors import BadRequest, Declined, Refused
from provision.guards import Asking, Consent
from tests.unit.provision.making import admit


def answering(word: str, asked: list[str] | None = None) -> Callable[[str], str]:
    def typed(prompt: str) -> str:
        if asked is not None:
            asked.append(prompt)
        return word

    return typed


def rack(access: Access, name: str) -> tuple[Node, ...]:
    return tuple(node for node in access.site.nodes if node.rack == name)


def test_a_consent_cannot_be_made_by_hand() -> None:
    with pytest.raises(TypeError, match="made by guards"):
        Consent(("r1-n01",), "wipe", "me", "", "")


def test_without_a_terminal_and_without_yes_it_is_declined(access: Access) -> None:
    with pytest.raises(Declined, match="needs --yes"):
        guards.ask(access, access.site.nodes[:1], action="wipe", plan="", asking=Asking(False, None))


def test_up_to_four_nodes_a_yes_is_enough(access: Access) -> None:
    asked: list[str] = []
    consent = guards.ask(
        access,
        access.site.nodes[:4],
        action="wipe",
        plan="wipes.",
        asking=Asking(False, answering("yes\n", asked)),
    )
    assert consent.nodes == ("r1-n01", "r1-n02", "r1-n03", "r1-n04")
    assert asked == ["wipes.  type yes to go on: "]


def test_over_four_nodes_the_racks_name_must_be_typed(access: Access) -> None:
    nodes = rack(access, "r1")
    with pytest.raises(Declined):
        guards.ask(access, nodes, action="wipe", plan="", asking=Asking(False, answering("yes")))
    assert guards.ask(access, nodes, action="wipe", plan="", asking=Asking(False, answering("r1"))).nodes


def test_over_several_racks_the_number_of_nodes_must_be_typed(access: Access) -> None:
    nodes = access.site.nodes
    with pytest.raises(Declined):
        guards.ask(access, nodes, action="wipe", plan="", asking=Asking(False, answering("r1")))
    assert guards.ask(access, nodes, action="wipe", plan="", asking=Asking(False, answering("8"))).nodes


@pytest.mark.parametrize("guard", ["identity", "locked", "not-ours", "everything"])
def test_some_guards_never_yield(guard: str) -> None:
    with pytest.raises(BadRequest, match="cannot be overridden"):
        guards.check_override(Asking(True, None, override=guard, reason="hurry"))


def test_an_override_needs_a_reason() -> None:
    with pytest.raises(BadRequest, match="needs a reason"):
        guards.check_override(Asking(True, None, override="in-use", reason="  "))


async def test_a_reliable_node_that_cannot_be_asked_counts_as_in_use(access: Access) -> None:
    admit(access, "r1-n01")
    with pytest.raises(Refused, match="cannot be asked what runs on it") as refused:
        await guards.guard(access, access.site.nodes[:1], action="reimage", asking=Asking(True, None))
    assert refused.value.guard == "in-use"


async def test_an_override_passes_its_guard_only_and_is_journalled(access: Access) -> None:
    admit(access, "r1-n01")
    asking = Asking(True, None, override="in-use", reason="owner agreed")
    await guards.guard(access, access.site.nodes[:1], action="reimage", asking=asking)
    (event,) = access.store.events(kinds=["override"])
    assert event.node == "r1-n01"
    assert event.actor == "marta"
    assert "in-use overridden: owner agreed" in event.message


async def test_an_override_of_another_guard_does_not_help(access: Access) -> None:
    admit(access, "r1-n01")
    asking = Asking(True, None, override="blast-radius", reason="hurry")
    with pytest.raises(Refused, match="in-use"):
        await guards.guard(access, access.site.nodes[:1], action="reimage", asking=asking)


async def test_reliable_nodes_of_two_racks_at_once_are_too_many(access: Access) -> None:
    admit(access, "r1-n01", "r2-n01")
    nodes = [access.node("r1-n01"), access.node("r2-n01")]
    asking = Asking(True, None, override="in-use", reason="drained")
    with pytest.raises(Refused, match="2 racks") as refused:
        await guards.guard(access, nodes, action="reimage", asking=asking)
    assert refused.value.guard == "blast-radius"


async def test_new_nodes_pass(access: Access) -> None:
    await guards.guard(access, access.site.nodes, action="reimage", asking=Asking(True, None))
