"""The last verdicts, the evidence behind the last one, and that of the last good one to compare with."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

from health import evidence, verdict
from health.check import Level
from health.checks.sources import NVIDIA_SMI
from health.errors import HealthError
from health.readers.smi import SmiReport, read_smi_parts
from inventory.records import Answer, VerdictRecord
from provision.ticket.artifact import Artifact, File, Json, Text
from provision.ticket.collecting import Case, Collector, Facts, Lane, Outcome, Result

_MOST_EVIDENCE = 64 << 20


async def _collect(case: Case) -> Result:
    records = await asyncio.to_thread(case.access.store.verdicts, case.node.name, limit=200)
    if not records:
        return Result((), Outcome.SKIPPED, "the gate has never judged this node")
    return await asyncio.to_thread(_found, case, records)


def _found(case: Case, records: tuple[VerdictRecord, ...]) -> Result:
    files = [File("health/verdicts.json", Json([_told(record) for record in records[:20]]))]
    missing: list[str] = []
    last = records[0]
    good = next((record for record in records if record.answer is Answer.YES), None)
    raw = _add(case, files, missing, "last", last)
    if good is not None and good is not last:
        raw = _add(case, files, missing, "last-good", good)
    elif good is None:
        missing.append("this node never passed the gate: there is nothing good to compare with")
    facts = Facts(good_smi=_smi(raw) if good is not None else None)
    return Result(tuple(files), Outcome.PARTIAL if missing else Outcome.COMPLETE, "; ".join(missing), facts)


def _told(record: VerdictRecord) -> dict[str, object]:
    return {
        "time": record.ts,
        "level": record.level,
        "answer": str(record.answer),
        "reasons": list(record.reasons),
        "run": record.run,
    }


def _add(case: Case, files: list[File], missing: list[str], name: str, record: VerdictRecord) -> bytes:
    """Add the evidence of a verdict, and what each check made of it. Returns the evidence as it was saved."""
    try:
        raw = _read(record)
    except OSError as exc:
        missing.append(f"{name} evidence: {exc.strerror or exc}")
        return b""
    files.append(File(f"health/evidence-{name}.json", _document(raw)))
    try:
        found = evidence.parse(raw, nonce=evidence.nonce_of(raw))
        judged = verdict.verdict(found, case.profile, Level(record.level), collected_at=record.ts.timestamp())
    except (HealthError, ValueError) as exc:
        missing.append(f"{name} evidence: {exc}")
        return raw
    files.append(File(f"health/results-{name}.json", Json(judged.to_json())))
    return raw


def _read(record: VerdictRecord) -> bytes:
    if record.evidence is None:
        raise FileNotFoundError(2, "none was kept")
    path = Path(record.evidence)
    if path.stat().st_size > _MOST_EVIDENCE:
        raise OSError(27, "larger than 64 MB")
    return path.read_bytes()


def _document(raw: bytes) -> Artifact:
    try:
        return Json(json.loads(raw[max(raw.find(b"{"), 0) :]))
    except ValueError:
        return Text(raw)


def _smi(raw: bytes) -> SmiReport | None:
    try:
        item = evidence.parse(raw, nonce=evidence.nonce_of(raw)).item(NVIDIA_SMI.id)
        return read_smi_parts(item.text) if item is not None else None
    except HealthError:
        return None


HEALTH = Collector("health", Lane.HERE, 120.0, _collect)
