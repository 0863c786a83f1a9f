"""No judge raises, and none passes what it could not read.

The property, for every check, on every recorded node, for every line named in `relied_on`, where the
node is otherwise well and the kernel's ring is the only witness of its log: the check neither passes nor
is skipped when, before the evidence was sealed,

- the line was removed;
- the line was cut anywhere before the end of its value;
- its value was replaced by nothing, or by what tools print where they have no value;
- the output ended anywhere before the end of that value;
- the output began anywhere after that value.

Where what is left of a cut value is another value of the same form (`FREE`), all of it must be lost.

And for every item: whatever bytes stand in it, no judge raises anything but HealthError, and the gate
does not raise at all. Evidence that was cut or changed after it was sealed is refused before any judge.
"""

from __future__ import annotations

import re
from dataclasses import replace
from functools import cache

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from benchmarks.mutation import bytes_faults
from benchmarks.recorded_nodes import NONCE, RecordedNode, load, names
from health.catalogue import CHECKS, check, required_checks
from health.check import Check, Level
from health.errors import EvidenceBroken, HealthError
from health.evidence import Evidence, Item, parse
from health.outcome import Status
from health.verdict import Answer, verdict
from tests.unit.health.cases import alike
from tests.unit.health.relied_on import RELIED_ON

ALL = Level.BURNIN
FUZZ = settings(max_examples=8, deadline=None, suppress_health_check=[HealthCheck.too_slow])
NO_VALUES = ("", "ERR!", "Unknown Error", "[Unknown Error]", "?", "<error>")
USUAL = {"disk.mounts": "/"}
FREE = frozenset({"kernel.taint"})
ROWS = [(id, item, pattern) for id, rows in RELIED_ON.items() for item, pattern in rows]


@cache
def node(name: str) -> RecordedNode:
    return load(name)


@cache
def witness(name: str) -> Evidence:
    """Return the healthy evidence of a node, without the journal, which repeats what the ring says."""
    found = node(name)
    evidence = found.evidence()
    kept = {id: item for id, item in evidence.items.items() if id != "kernel.journal"}
    context = replace(evidence.context, collected_at=found.collected_at, boots=alike(name))
    return replace(evidence, items=kept, context=context)


def with_text(evidence: Evidence, item: Item, text: str) -> Evidence:
    return replace(evidence, items={**evidence.items, item.id: replace(item, text=text)})


def status(row: Check, evidence: Evidence, name: str) -> Status:
    try:
        return row.judge(evidence, node(name).profile).status
    except HealthError:
        return Status.UNKNOWN


def filled(pattern: str, name: str) -> str:
    """Put what the profile says where a pattern names a limit."""

    def words(limit: re.Match[str]) -> str:
        value = node(name).profile.limits.get(limit[1], USUAL.get(limit[1], ()))
        each = value if isinstance(value, tuple | list) else (value,)
        return f"(?:{'|'.join(re.escape(str(word)) for word in each)})"

    return re.sub(r"\{([a-z_]+\.[a-z_]+)\}", words, pattern)


@cache
def places(name: str, item: str, pattern: str) -> tuple[tuple[int, int, bool], ...]:
    """Return begin and end of every value that a row names, and whether it is more than presence."""
    text = witness(name).items[item].text
    found = tuple(re.finditer(filled(pattern, name), text, re.MULTILINE))
    return tuple((*one.span(1 if one.re.groups else 0), bool(one.re.groups)) for one in found)


@st.composite
def damage(
    draw: st.DrawFn, text: str, value: tuple[int, int], cut_to: int, has_value: bool
) -> tuple[int, int, str]:
    """Draw one way to take a value away: what to replace, and by what. A cut falls before `cut_to`."""
    begin, end = value
    line = text.rfind("\n", 0, begin) + 1
    after = text.find("\n", end)
    after = len(text) if after < 0 else after
    kind = draw(st.sampled_from(("removed", "cut", "no value", "ended", "began")))
    if kind == "no value" and has_value:
        return begin, end, draw(st.sampled_from(NO_VALUES))
    if kind == "cut":
        return draw(st.integers(line, cut_to - 1)), after, ""
    if kind == "ended":
        return draw(st.integers(0, cut_to - 1)), len(text), ""
    if kind == "began":
        return 0, draw(st.integers(end, len(text))), ""
    return line, after + 1, ""


def test_every_check_says_what_it_relies_on() -> None:
    assert set(RELIED_ON) == {row.id for row in CHECKS}


@pytest.mark.parametrize("name", names())
def test_every_line_is_there_on_a_node_that_is_well(name: str) -> None:
    gated = {row.id for row in required_checks(node(name).profile, ALL)}
    missing = [row for row in ROWS if row[0] in gated and not places(name, row[1], row[2])]
    assert missing == []
    judged = {row.id: status(row, witness(name), name) for row in required_checks(node(name).profile, ALL)}
    assert {id for id, got in judged.items() if got not in (Status.PASS, Status.SKIPPED)} == set()


@pytest.mark.parametrize(("id", "item", "pattern"), ROWS)
@FUZZ
@given(data=st.data())
def test_does_not_pass_without_a_line_it_relies_on(
    id: str, item: str, pattern: str, data: st.DataObject
) -> None:
    name = data.draw(st.sampled_from(names()))
    evidence = witness(name)
    if item not in evidence.items or status(check(id), evidence, name) is not Status.PASS:
        return
    text = evidence.items[item].text
    begin, end, has_value = data.draw(st.sampled_from(places(name, item, pattern)))
    cut_to = begin + 1 if id in FREE else end
    first, last, new = data.draw(damage(text, (begin, end), cut_to, has_value))
    changed = text[:first] + new + text[last:]
    got = status(check(id), with_text(evidence, evidence.items[item], changed), name)
    assert got not in (Status.PASS, Status.SKIPPED)


ANYTHING = st.one_of(
    st.text(max_size=300),
    st.binary(max_size=300).map(lambda data: data.decode("utf-8", "replace")),
    st.sampled_from(
        ("\r\n", "\x1b[31mred\x1b[0m\n", "\0" * 40, "{", "[]", "null", "{}", "==> a <==\n", "1\n" * 50)
    ),
)


@pytest.mark.parametrize("row", CHECKS, ids=lambda row: row.id)
@FUZZ
@given(data=st.data())
def test_raises_nothing_of_its_own_on_any_bytes(row: Check, data: st.DataObject) -> None:
    name = data.draw(st.sampled_from(names()))
    evidence = witness(name)
    for collect in row.collects:
        item = evidence.item(collect.id)
        if item is None:
            continue
        text = item.text
        at = data.draw(st.integers(0, len(text)))
        until = data.draw(st.integers(at, min(len(text), at + 200)))
        new = data.draw(ANYTHING)
        whole = data.draw(st.booleans())
        evidence = with_text(evidence, item, new if whole else text[:at] + new + text[until:])
    status(row, evidence, name)


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(data=st.data())
def test_the_gate_stays_shut_and_whole_when_an_item_is_not_what_it_should_be(data: st.DataObject) -> None:
    name = data.draw(st.sampled_from(names()))
    found = node(name)
    evidence = found.evidence()
    gated = {row.id for row in required_checks(found.profile, ALL)}
    wanted = sorted({item for id, item, _ in ROWS if id in gated})
    item = evidence.items[data.draw(st.sampled_from(wanted))]
    noise = data.draw(st.text(alphabet=st.characters(blacklist_categories=("Nd", "Cs")), max_size=200))
    changed = with_text(evidence, item, noise)
    judged = verdict(changed, found.profile, ALL, collected_at=found.collected_at)
    assert judged.answer is not Answer.YES
    assert judged.reasons
    assert verdict(changed, found.profile, ALL, collected_at=found.collected_at) == judged


@pytest.mark.parametrize("name", names())
def test_evidence_changed_after_its_seal_is_refused(name: str) -> None:
    for raw in bytes_faults(node(name)):
        with pytest.raises(EvidenceBroken):
            parse(raw, nonce=NONCE)


@settings(max_examples=60, deadline=None)
@given(data=st.data())
def test_no_cut_and_no_changed_byte_of_sealed_evidence_is_taken(data: st.DataObject) -> None:
    raw = sealed_evidence()
    at = data.draw(st.integers(0, len(raw) - 2))
    kind = data.draw(st.sampled_from(("cut", "changed", "added")))
    if kind == "cut":
        changed = raw[:at]
    elif kind == "added":
        changed = raw[:at] + data.draw(st.binary(min_size=1, max_size=3)) + raw[at:]
    else:
        changed = raw[:at] + bytes([raw[at] ^ data.draw(st.integers(1, 127))]) + raw[at + 1 :]
    try:
        evidence = parse(changed, nonce=NONCE)
    except EvidenceBroken:
        return
    # White space between the words of JSON, or another way to write a letter, says the same.
    assert evidence == parse(raw, nonce=NONCE)


@cache
def sealed_evidence() -> bytes:
    return node(names()[0]).raw()
