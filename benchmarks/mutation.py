"""Tries to fool the gate: faults injected into healthy evidence of every recorded node.

    python benchmarks/mutation.py [--json] [--reruns N]

Each fault changes what a node sent before it was sealed, so the gate sees whole, well-formed evidence
of a node that is not well, or of tools that did not answer. A `yes` to any of them is a false yes.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from benchmarks.mutation_faults import CURATED, SEEN_BY
from benchmarks.recorded_nodes import NONCE, Document, RecordedNode, item, load, names, sealed, stream
from health.catalogue import required_checks
from health.check import Level
from health.errors import EvidenceBroken
from health.evidence import parse
from health.facts import Code, Gate, codes
from health.verdict import Answer, Verdict, verdict

Change = Callable[[Document], None]
_INCIDENTS = 7  # more than any count that is forgiven


@dataclass(frozen=True, slots=True)
class Fault:
    """One way to make a node unwell, or its evidence worthless."""

    kind: str
    name: str
    change: Change


def main() -> int:
    """Run all faults and print what got through."""
    options = argparse.ArgumentParser(description="inject faults into healthy evidence")
    options.add_argument("--json", action="store_true", help="print one JSON object")
    options.add_argument("--reruns", type=int, default=100, help="how often each node's verdict is repeated")
    chosen = options.parse_args()
    table: dict[str, Counter[str]] = {}
    false_yes, false_no, faults = [], [], 0
    for name in names():
        node = load(name)
        healthy = node.verdict(level=Level.BURNIN)
        if healthy.answer is not Answer.YES:
            false_no.append({"node": name, "answer": str(healthy.answer), "reason": healthy.summary})
        for fault in all_faults(node):
            faults += 1
            answer = judge(node, fault)
            table.setdefault(fault.kind, Counter())[str(answer)] += 1
            if answer is Answer.YES:
                false_yes.append({"node": name, "fault": fault.name, "kind": fault.kind})
    steady = all(same_again(load(name), chosen.reruns) for name in names())
    result = {
        "faults": faults,
        "false_yes": len(false_yes),
        "false_no": len(false_no),
        "nodes": len(names()),
        "verdicts_identical": steady,
        "reruns": chosen.reruns,
        "by_kind": {kind: dict(counts) for kind, counts in sorted(table.items())},
        "let_through": false_yes,
        "kept_out": false_no,
    }
    if chosen.json:
        sys.stdout.write(json.dumps(result) + "\n")
    else:
        _print(result, table)
    return 0 if not false_yes and not false_no and steady else 2


def all_faults(node: RecordedNode) -> Iterator[Fault]:
    """Give every fault for one node."""
    if "kernel.kmsg" in node.texts:
        yield from code_faults()
        yield Fault("document", "log begins late, journal lost", _late_log)
    yield from item_faults(node)
    yield from curated_faults(node)
    yield from document_faults()


def judge(node: RecordedNode, fault: Fault) -> Answer:
    """Return the gate's answer to a node with one fault."""
    raw = node.raw(fault.change)
    try:
        evidence = parse(raw, nonce=NONCE)
    except EvidenceBroken as broken:
        return verdict(None, node.profile, Level.BURNIN, problem=broken.reason).answer
    return verdict(evidence, node.profile, Level.BURNIN, collected_at=node.collected_at).answer


def same_again(node: RecordedNode, times: int) -> bool:
    """Say whether a node's verdict is the same every time, to the byte."""
    change = next(all_faults(node)).change

    def once(broken: bool) -> str:
        found: Verdict = node.verdict(change if broken else None, level=Level.BURNIN)
        return json.dumps(found.to_json(), sort_keys=True)

    first = once(False), once(True)
    return all((once(False), once(True)) == first for _ in range(times - 1))


# --- The catalogue: every code that is of consequence, as the driver prints it ---------------------


def code_faults() -> Iterator[Fault]:
    """Give a fault for every row of the catalogue that is more than a note."""
    for row in codes().values():
        if row.gate is Gate.NOTE:
            continue
        if row.rule == "remap":
            yield Fault(row.kind, f"{row.kind} {row.code}", _remapping(row))
            continue
        lines = _xid_lines(row) if row.kind == "xid" else _sxid_lines(row)
        yield Fault(row.kind, f"{row.kind} {row.code}", _appended(lines))


def catalogue_lines() -> Iterator[list[str]]:
    """Give what the driver logs for every code that is of consequence by itself."""
    for row in codes().values():
        if row.gate is not Gate.NOTE and row.rule != "remap":
            yield _xid_lines(row) if row.kind == "xid" else _sxid_lines(row)


def _xid_lines(row: Code) -> list[str]:
    bodies = {
        45: "pid=811, name=python3, Ch 00000008 caused by previous Xid 149",
        154: "GPU recovery action changed from 0x0 (None) to 0x1 (GPU Reset Required)",
    }
    body = bodies.get(row.code, "pid='<unknown>', name=<unknown>, event of the test")
    if row.rule == "severity" and row.gate is Gate.BLOCK:
        body = "UNIT_OF_TEST Fatal   XC0 i0 Link 04 (0x00000004 0x00000000)"
    line = f"NVRM: Xid (PCI:0000:9b:00): {row.code}, {body}"
    repeated = row.gate is Gate.COUNT or row.rule == "peer"
    return [line] * (_INCIDENTS if repeated else 1)


def _remapping(row: Code) -> Change:
    """Log the code about a GPU whose row waits for its remapping: that is when it is of consequence."""

    def change(document: Document) -> None:
        entry = item(document, "gpu.smi")
        report = entry["stdout"]["text"]
        bus = report.partition("\nGPU 0000")[2][:10]
        waiting = re.sub(r"(Remapped Rows\n(?:.*\n){2}\s+Pending\s+: )No", r"\g<1>Yes", report, count=1)
        entry["stdout"] = stream(waiting)
        _appended([f"NVRM: Xid (PCI:{bus}): {row.code}, pid='<unknown>', name=<unknown>, a row"])(document)

    return change


def _sxid_lines(row: Code) -> list[str]:
    severity = "Fatal, " if row.rule == "fatal" else "Non-fatal, " if row.rule == "nonfatal" else ""
    head = f"nvidia-nvswitch2: SXid (PCI:0000:85:00.0): {row.code}, {severity}Link 28 event of the test"
    more = f"nvidia-nvswitch2: SXid (PCI:0000:85:00.0): {row.code}, Severity 1 Engine instance 28"
    return [head, more] * (_INCIDENTS if row.gate is Gate.COUNT else 1)


def _appended(lines: list[str]) -> Change:
    """Append lines to the kernel's ring, a minute between them, with numbers that go on."""

    def change(document: Document) -> None:
        entry = item(document, "kernel.kmsg")
        text = entry["stdout"]["text"].removesuffix("# end of kmsg\n")
        number = text.count("\n")
        usec = 90_000_000_000
        for line in lines:
            text += f"3,{number},{usec},-;{line}\n"
            number, usec = number + 1, usec + 60_000_000
        entry["stdout"] = stream(text + "# end of kmsg\n")

    return change


# --- The items: each one absent, cut, doubled, late, hung, refused or unreadable --------------------


def item_faults(node: RecordedNode) -> Iterator[Fault]:
    """Give every way in which an item can fail, for every item that came back well."""
    for entry in node.document()["items"]:
        if entry["rc"] != 0:
            continue  # one of two ways to the same answer; the node has the other
        for kind, make in _ITEM_FAULTS.items():
            if (kind in _SECOND_WITNESS and entry["id"] in _WITNESSED) or (entry["id"], kind) in _NO_FAULT:
                continue
            yield Fault(kind, f"{entry['id']} {kind}", _on(entry["id"], make))


def _on(id: str, make: Callable[[Document, Document], None]) -> Change:
    return lambda document: make(document, item(document, id))


def _text(entry: Document, text: str) -> None:
    entry["stdout"] = stream(text)


def _half(text: str, part: int) -> str:
    """Return one half of a text, cut at the middle of its characters."""
    middle = len(text) // 2
    return text[:middle] if part == 0 else text[middle:]


def _removed(document: Document, entry: Document) -> None:
    document["items"].remove(entry)


_ITEM_FAULTS: dict[str, Callable[[Document, Document], None]] = {
    "removed": _removed,
    "empty": lambda _, entry: _text(entry, ""),
    "first half": lambda _, entry: _text(entry, _half(entry["stdout"]["text"], 0)),
    "second half": lambda _, entry: _text(entry, _half(entry["stdout"]["text"], 1)),
    "doubled": lambda _, entry: _text(entry, entry["stdout"]["text"] * 2),
    "late": lambda _, entry: entry.update(rc=None, timed_out=True, state="S", seconds=30.0),
    "hung": lambda _, entry: entry.update(rc=None, timed_out=True, state="D", abandoned="D", seconds=31.0),
    "refused": lambda _, entry: entry.update(rc=13, denied=True),
    "not installed": lambda _, entry: entry.update(rc=127, missing=True),
    "failed": lambda _, entry: entry.update(rc=3),
    "cut": lambda _, entry: entry["stdout"].update(truncated=True, cut_after=10),
    "binary": lambda _, entry: _text(entry, "\x7fELF\x02\x01\x00\x1b[2J\udcff" * 40),
    "usage": lambda _, entry: _text(entry, "usage: tool [options]\n\n  -h, --help   show this\n"),
    "another language": lambda _, entry: _text(entry, "Erreur : périphérique introuvable\n"),
}
# The journal is a second witness of what the ring already proves: without it nothing is lost.
_WITNESSED = frozenset({"kernel.journal"})
# A node without ZFS is what a profile without pools wants.
_NO_FAULT = frozenset({("disk.pools", "not installed")})
_SECOND_WITNESS = frozenset(_ITEM_FAULTS) - {"removed"}


def curated_faults(node: RecordedNode) -> Iterator[Fault]:
    """Give faults of the parts that a node has: one line says what a broken part makes its tool say."""
    present = {entry["id"] for entry in node.document()["items"]}
    gated = {row.id for row in required_checks(node.profile, Level.BURNIN)}
    for name, id, edit in CURATED:
        if SEEN_BY.get(name, "host.boot") not in gated:
            continue
        if id in present and edit(node.texts[id]) != node.texts[id]:
            yield Fault("part", name, _edited(id, edit))


def _edited(id: str, edit: Callable[[str], str]) -> Change:
    def change(document: Document) -> None:
        entry = item(document, id)
        entry["stdout"] = stream(edit(entry["stdout"]["text"]))

    return change


# --- The document as a whole -----------------------------------------------------------------------


def document_faults() -> Iterator[Fault]:
    """Give ways in which the whole evidence is not this node's, of this boot and this moment."""
    yield Fault("document", "another request", lambda document: document.update(nonce="0" * 32))
    yield Fault("document", "another schema", lambda document: document.update(schema=99))
    yield Fault(
        "document", "rebooted meanwhile", lambda document: document["ended"].update(boot_id="another-boot")
    )
    yield Fault("document", "no boot id", lambda document: document["began"].update(boot_id=""))
    yield Fault("document", "clock years back", lambda document: _clock(document, -3.0e8))
    yield Fault("document", "clock a minute ahead", lambda document: _clock(document, 60.0))
    yield Fault("document", "clock jumps", lambda document: document["ended"].update(wall_clock=1.0))
    yield Fault("document", "an item twice", lambda document: document["items"].append(document["items"][0]))
    yield Fault("document", "no items", lambda document: document.update(items=[]))


def _late_log(document: Document) -> None:
    ring = item(document, "kernel.kmsg")
    _text(ring, "\n".join(ring["stdout"]["text"].split("\n")[5:]))
    item(document, "kernel.journal").update(rc=1)


def _clock(document: Document, by: float) -> None:
    for moment in ("began", "ended"):
        document[moment] = {**document[moment], "wall_clock": document[moment]["wall_clock"] + by}


def bytes_faults(node: RecordedNode) -> Iterator[bytes]:
    """Give evidence that was cut or changed on the way, after it was sealed."""
    raw = node.raw()
    yield from (raw[: len(raw) * part // 10] for part in range(10))
    yield raw.replace(b"Enabled", b"Disable", 1)
    yield raw + raw
    yield sealed(node.document())[:-2] + b", }\n"


def _print(result: dict[str, object], table: dict[str, Counter[str]]) -> None:
    answers = [str(answer) for answer in Answer]
    sys.stdout.write(f"{'kind of fault':20}" + "".join(f"{answer:>10}" for answer in answers) + "\n")
    for kind, counts in sorted(table.items()):
        sys.stdout.write(f"{kind:20}" + "".join(f"{counts[answer]:>10}" for answer in answers) + "\n")
    sys.stdout.write(
        f"\n{result['faults']} faults on {result['nodes']} nodes: {result['false_yes']} false yes, "
        f"{result['false_no']} false no; verdicts identical over {result['reruns']} reruns: "
        f"{result['verdicts_identical']}\n"
    )
    for name in ("let_through", "kept_out"):
        for row in result[name]:  # type: ignore[attr-defined]
            sys.stdout.write(f"{name}: {row}\n")


if __name__ == "__main__":
    sys.exit(main())
