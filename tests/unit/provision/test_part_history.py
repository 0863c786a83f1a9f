"""Parts and links over time, read from the evidence that was saved with each verdict."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from benchmarks.mutation import all_faults
from benchmarks.recorded_nodes import Document, item, load, stream
from inventory.records import Answer, VerdictRecord
from provision.part_history import link_flaps, part_offenders

NODE = load("xe9680-h100")
START = datetime(2026, 3, 3, 9, 0, tzinfo=UTC)


@dataclass
class Site:
    """A site of two nodes, and the verdicts on them."""

    folder: Path
    records: list[VerdictRecord] = field(default_factory=list)

    @property
    def access(self) -> Any:
        def verdicts(node: str, *, limit: int) -> tuple[VerdictRecord, ...]:
            return tuple(one for one in self.records if one.node == node)[:limit]

        nodes = tuple(SimpleNamespace(name=name) for name in ("r1-n01", "r1-n02"))
        return SimpleNamespace(
            site=SimpleNamespace(nodes=nodes),
            store=SimpleNamespace(verdicts=verdicts),
            profile=lambda _node: NODE.profile,
        )

    def judged(self, node: str, hours: int, raw: bytes, answer: Answer = Answer.NO) -> None:
        path = self.folder / f"{node}-{hours}.json"
        path.write_bytes(raw)
        at = START + timedelta(hours=hours)
        self.records.append(VerdictRecord(len(self.records), node, at, None, "quick", answer, (), str(path)))


def test_a_part_that_takes_its_fault_to_another_node_is_named(tmp_path: Path) -> None:
    site = Site(tmp_path)
    fault = next(one for one in all_faults(NODE) if one.name == "row remap failed")
    site.judged("r1-n01", 0, NODE.raw(fault.change))
    site.judged("r1-n02", 48, NODE.raw(fault.change))
    site.judged("r1-n01", 50, b"cut")
    (found,) = part_offenders(site.access, START, least=2)
    assert found.serial.startswith("GPU ")
    assert (found.nodes, found.moved, found.checks) == (("r1-n01", "r1-n02"), True, ("gpu.remap",))
    assert part_offenders(site.access, START + timedelta(hours=3), least=2) == ()


def test_a_link_that_goes_down_again_and_again_is_named(tmp_path: Path) -> None:
    site = Site(tmp_path)

    def counted(hours: int) -> bytes:
        def change(document: Document) -> None:
            changes = item(document, "net.carrier_changes")
            text = changes["stdout"]["text"]
            old = "bond0/carrier_changes <==\n2"
            assert old in text
            changes["stdout"] = stream(text.replace(old, f"bond0/carrier_changes <==\n{2 + 3 * hours}"))
            for moment in ("began", "ended"):
                at = (START + timedelta(hours=hours)).timestamp()
                document[moment] = {**document[moment], "wall_clock": at}

        return NODE.raw(change)

    for hours in range(4):
        site.judged("r1-n01", hours, counted(hours), Answer.YES)
    (found,) = link_flaps(site.access, START, least=5, window_s=86_400.0)
    assert (found.link, found.times) == ("r1-n01 bond0", 9)
    assert link_flaps(site.access, START, least=10, window_s=86_400.0) == ()
