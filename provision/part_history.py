"""Reads what saved evidence tells of parts over time: the same part at fault again, and links that flap."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path

from health import evidence as evidence_files
from health.check import Level
from health.errors import EvidenceBroken
from health.evidence import Evidence
from health.fleet import Flaps, Offence, Offender, Reading, flap_windows, offences, repeat_offenders
from health.links import link_readings
from health.parts import part_serials
from health.verdict import verdict
from inventory.records import Answer, VerdictRecord
from provision.access import Access

_LOOK_BACK = 50  # verdicts a node


def part_offenders(access: Access, since: datetime, *, least: int) -> tuple[Offender, ...]:
    """Return parts that verdicts since then have held at fault `least` times or more, most first."""
    seen: list[Offence] = []
    for node in access.site.nodes:
        for record in _records(access, node.name, since):
            found = _evidence(record) if record.answer == Answer.NO else None
            if found is not None:
                at = record.ts.timestamp()
                judged = verdict(found, access.profile(node), Level(record.level), collected_at=at)
                seen += offences(node.name, judged.outcomes, part_serials(found), at)
    return repeat_offenders(seen, since=since.timestamp(), least=least)


def link_flaps(access: Access, since: datetime, *, least: int, window_s: float) -> tuple[Flaps, ...]:
    """Return links that went down `least` times or more within a window, by what evidence has counted."""
    readings: dict[str, list[Reading]] = defaultdict(list)
    for node in access.site.nodes:
        for record in _records(access, node.name, since):
            found = _evidence(record)
            if found is not None:
                for link, reading in link_readings(found).items():
                    readings[f"{node.name} {link}"].append(reading)
    return flap_windows(readings, least=least, window_s=window_s)


def _records(access: Access, node: str, since: datetime) -> Iterator[VerdictRecord]:
    for record in access.store.verdicts(node, limit=_LOOK_BACK):
        if record.ts >= since:
            yield record


def _evidence(record: VerdictRecord) -> Evidence | None:
    """Return the evidence behind a verdict; None where there was none, or it is no longer kept."""
    if not record.evidence:
        return None
    try:
        raw = Path(record.evidence).read_bytes()
        return evidence_files.parse(raw, nonce=evidence_files.nonce_of(raw))
    except (OSError, EvidenceBroken):
        return None
