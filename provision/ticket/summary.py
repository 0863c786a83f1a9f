"""One page for a human, the same for machines, and the five lines that a vendor's form asks for."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from health.readers.smi import Gpu, SmiReport
from inventory.model import Node
from inventory.model import Profile as HardwareProfile
from inventory.records import Answer, Event, EventKind, NodeState, VerdictRecord
from provision.ticket.collecting import Facts, Outcome, Report
from provision.ticket.pack import Cut

SCHEMA = 1

_OFTEN = timedelta(days=30)
_TRIED = ("power", "bmc-reset", "deploy-asked")
_MOST_TRIED = 12
_WORDS = {"deploy-asked": "deployment of "}


@dataclass(frozen=True, slots=True)
class Part:
    """The component that the ticket is about. `lost`: the gate saw it at its last yes, and it is gone now."""

    name: str
    pci: str = ""
    serial: str = ""
    uuid: str = ""
    part_number: str = ""
    slot: str = ""
    firmware: str = ""
    lost: bool = False


@dataclass(frozen=True, slots=True)
class Symptom:
    """What is wrong, in one line. `times`: how often in the last 30 days."""

    text: str
    since: datetime | None
    times: int


@dataclass(frozen=True, slots=True)
class Story:
    """All that the summary tells of a node."""

    node: Node
    hardware: HardwareProfile
    state: NodeState
    verdicts: Sequence[VerdictRecord]
    events: Sequence[Event]
    facts: Facts
    reports: Sequence[Report]
    cuts: Sequence[Cut]
    now: datetime
    component: str = ""

    @property
    def serial(self) -> str:
        found = self.facts.identity.serial if self.facts.identity else None
        return self.node.serial or found or ""

    @property
    def model(self) -> str:
        identity = self.facts.identity
        told = f"{identity.manufacturer} {identity.product}".strip() if identity else ""
        return told or f"{self.hardware.vendor} {self.hardware.model}".strip() or "unknown model"


# -- what it is about ----------------------------------------------------------------------------


def symptom(story: Story) -> Symptom:
    """Return the failure that stopped the node, else what the gate last found, else that there is none."""
    state = story.state
    if state.failed_stage is not None:
        text = f"{state.reason} (failed at {state.failed_stage}: {state.reason_code})"
        return Symptom(text, state.failed_at, _failures(story, state.reason_code))
    last = story.verdicts[0] if story.verdicts else None
    if last is not None and last.answer is not Answer.YES and last.reasons:
        same = [record for record in story.verdicts if record.reasons[:1] == last.reasons[:1]]
        return Symptom(last.reasons[0], min(record.ts for record in same), len(same))
    return Symptom("no failure is recorded of this node", None, 0)


def _failures(story: Story, code: str | None) -> int:
    oldest = story.now - _OFTEN
    return sum(
        event.kind == EventKind.STAGE_FAILED and event.ts >= oldest and event.data.get("code") == code
        for event in story.events
    )


def part(story: Story) -> Part | None:
    """Return what is known of the component; None where the ticket is about the whole node."""
    if not story.component:
        return None
    match = re.fullmatch(r"gpu(\d+)", story.component)
    if match:
        return _gpu(story, int(match[1]))
    for device, fields_ in (story.facts.fru or {}).items():
        if _plain(story.component) in _plain(device):
            serial = next((v for k, v in fields_.items() if "serial" in k), "")
            number = next((v for k, v in fields_.items() if "part" in k), "")
            return Part(story.component, serial=serial, part_number=number, slot=device)
    return Part(story.component)


def _plain(name: str) -> str:
    return re.sub(r"[^a-z0-9]", "", name.lower())


def _gpu(story: Story, index: int) -> Part:
    """Number GPUs as they were when all were there: one that has fallen off renumbers the rest."""
    good, now = story.facts.good_smi, story.facts.smi
    known = good or now
    if known is None or index >= len(known.gpus):
        return Part(story.component)
    gpu = known.gpus[index]
    here = now.gpu(gpu.address) if now else None
    return _describe(story.component, here or gpu, lost=now is not None and here is None)


def _describe(name: str, gpu: Gpu, *, lost: bool) -> Part:
    return Part(
        name=name,
        pci=gpu.address,
        serial=gpu.value("serial_number") or "",
        uuid=gpu.value("gpu_uuid") or "",
        part_number=gpu.value("board_part_number", "gpu_part_number") or "",
        slot=gpu.value("module_id") or "",
        firmware=gpu.value("vbios_version") or "",
        lost=lost,
    )


def warnings(story: Story) -> list[str]:
    """Return what a reader must know before he believes the rest."""
    told = story.facts.identity.serial if story.facts.identity else None
    if not told or not story.node.serial or told == story.node.serial:
        return []
    return [
        f"The BMC that answered is of {told}, not of {story.node.serial}: "
        "everything below bmc/ may be another node's (a wrong cable, or an old address)."
    ]


def missing(reports: Sequence[Report], cuts: Sequence[Cut]) -> list[str]:
    """Return what is not, or not wholly, in the ticket, collectors with the same reason in one line."""
    by_reason: dict[tuple[Outcome, str], list[str]] = {}
    for report in reports:
        if report.outcome is not Outcome.COMPLETE:
            by_reason.setdefault((report.outcome, report.reason), []).append(report.collector)
    every = [report.collector for report in reports]
    lines = [f"{_folded(names, every)} ({outcome}: {why})" for (outcome, why), names in by_reason.items()]
    return lines + [str(cut) for cut in cuts]


def _folded(names: Sequence[str], every: Sequence[str]) -> str:
    """Return names in one line; where all of a group are there, the group."""
    found: list[str] = []
    for name in names:
        group = name.partition(".")[0]
        whole = [other for other in every if other.startswith(f"{group}.")]
        found.append(f"{group}.*" if len(whole) > 1 and set(whole) <= set(names) else name)
    return ", ".join(dict.fromkeys(found))


# -- the forms -----------------------------------------------------------------------------------


def paste_lines(story: Story) -> list[str]:
    """Return what a vendor's form asks for, a line each; what is attached is the caller's to add."""
    seen, about = symptom(story), part(story)
    tried = [_act(event) for event in _tried(story)]
    return [
        f"Product: {story.model}, serial {story.serial or 'unknown'}",
        f"Part: {_part_line(about) if about else 'the whole node'}",
        f"Symptom: {seen.text}",
        f"Since: {_since(seen)}; tried: {'; '.join(tried[-3:]) or 'nothing yet'}",
    ]


def _part_line(about: Part) -> str:
    facts = [
        f"{word} {value}"
        for word, value in (
            ("PCI", about.pci),
            ("serial", about.serial),
            ("part number", about.part_number),
            ("slot", about.slot),
        )
        if value
    ]
    gone = ["no longer on the bus"] if about.lost else []
    if not facts:
        gone = ["which nothing here describes"]
    return ", ".join([about.name, *gone, *facts])


def _since(seen: Symptom) -> str:
    if seen.since is None:
        return "not known"
    return f"{_time(seen.since)}, {seen.times} time{'' if seen.times == 1 else 's'} in 30 days"


def _tried(story: Story) -> list[Event]:
    return [event for event in story.events if event.kind in _TRIED][-_MOST_TRIED:]


def _act(event: Event) -> str:
    return _WORDS.get(event.kind, "") + event.message


def document(story: Story, *, profile: str) -> dict[str, object]:
    """Return ticket.json."""
    seen, about, facts = symptom(story), part(story), story.facts
    return {
        "schema": SCHEMA,
        "node": story.node.name,
        "made_at": story.now,
        "profile": profile,
        "component": about,
        "symptom": seen,
        "warnings": warnings(story),
        "asked_for": _wanted(story),
        "product": {"model": story.model, "serial": story.serial, "hardware_profile": story.hardware.name},
        "identity": facts.identity,
        "power": str(facts.power) if facts.power else None,
        "stage": str(story.state.stage),
        "failed_stage": str(story.state.failed_stage) if story.state.failed_stage else None,
        "pool": str(story.state.pool) if story.state.pool else None,
        "image": story.state.image,
        "deployed_at": story.state.deployed_at,
        "gate": [
            {"time": record.ts, "answer": str(record.answer), "reasons": list(record.reasons)}
            for record in story.verdicts[:3]
        ],
        "serials": [{"device": d, "field": f, "value": v} for d, f, v in serials(facts)],
        "firmware": [{"name": name, "version": version} for name, version in _firmware(facts)],
        "tried": [{"time": event.ts, "kind": event.kind, "what": _act(event)} for event in _tried(story)],
        "missing": missing(story.reports, story.cuts),
    }


def markdown(story: Story) -> str:
    """Return SUMMARY.md."""
    seen, about = symptom(story), part(story)
    lines = [
        f"# {story.node.name}: {seen.text}",
        "",
        *(f"**{warning}**\n" for warning in warnings(story)),
        f"- Product: {story.model}, serial {story.serial or 'unknown'}",
        f"- Part: {_part_line(about) if about else 'the whole node'}",
        f"- Since: {_since(seen)}",
        f"- Stage {_stage(story.state)}, pool {story.state.pool or '-'}, "
        f"power {story.facts.power or 'unknown'}, image {story.state.image or '-'}",
        f"- Made: {_time(story.now)}",
        "",
        "## What we ask for",
        "",
        _wanted(story),
    ]
    lines += _section("What the gate found", _findings(story))
    lines += _section("What was tried", (f"{_time(event.ts)} {_act(event)}" for event in _tried(story)))
    lines += _section("Serial and part numbers", (f"{d}: {f} {v}" for d, f, v in serials(story.facts)))
    lines += _section("Firmware", (f"{name}: {version}" for name, version in _firmware(story.facts)))
    lines += _section("What is missing here", missing(story.reports, story.cuts))
    return "\n".join(lines) + "\n"


def _section(title: str, rows: Iterator[str] | Sequence[str]) -> list[str]:
    return ["", f"## {title}", "", *([f"- {' '.join(row.split())}" for row in rows] or ["- nothing"])]


def _findings(story: Story) -> Iterator[str]:
    for record in story.verdicts[:1]:
        yield f"{_time(record.ts)} level {record.level}: {record.answer}"
        yield from record.reasons


def _wanted(story: Story) -> str:
    about = part(story)
    what = about.name if about else "this node"
    return (
        f"Please tell what is wrong with {what}, and replace it where the evidence here confirms the fault."
    )


def _stage(state: NodeState) -> str:
    return f"failed at {state.failed_stage}" if state.failed_stage else str(state.stage)


def serials(facts: Facts) -> Iterator[tuple[str, str, str]]:
    """Yield device, field and value of every serial and part number that was found."""
    for device, fields_ in (facts.fru or {}).items():
        for name, value in fields_.items():
            if ("serial" in name or "part" in name) and value:
                yield device, name, value
    for gpu in _gpus(facts):
        for label, field_ in (
            ("serial", "serial_number"),
            ("part number", "board_part_number"),
            ("UUID", "gpu_uuid"),
        ):
            said = gpu.value(field_)
            if said:
                yield f"GPU {gpu.address}", label, said


def _firmware(facts: Facts) -> Iterator[tuple[str, str]]:
    if facts.identity is not None:
        yield "BMC", facts.identity.firmware
    for item in facts.firmware or ():
        yield item.name or item.id, item.version
    report: SmiReport | None = facts.smi or facts.good_smi
    if report is not None and report.driver:
        yield "GPU driver", report.driver
    for gpu in _gpus(facts):
        yield f"VBIOS of GPU {gpu.address}", gpu.value("vbios_version") or "unknown"


def _gpus(facts: Facts) -> Sequence[Gpu]:
    """Return the GPUs of now and, from the last good time, those that are missing now."""
    now, good = facts.smi, facts.good_smi
    found = {gpu.address: gpu for report in (good, now) if report is not None for gpu in report.gpus}
    return [found[address] for address in sorted(found)]


def _time(moment: datetime) -> str:
    return f"{moment:%Y-%m-%dT%H:%M:%SZ}"
