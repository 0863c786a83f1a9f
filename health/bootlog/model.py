"""What has been learned of a cohort's boots. Plain data: it is written to a file and read back."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from health.bootlog.boot import Cohort, read_cohort
from health.errors import Unreadable

SCHEMA = 1
WILD = "<*>"


@dataclass(frozen=True, slots=True)
class Template:
    """How one kind of line has been seen: on how many nodes, how often a boot, with what values.

    `least` is 0 where a healthy boot may do without. `steady` maps the place of a value to the one
    value that it always had.
    """

    nodes: int
    boots: int
    least: int
    most: int
    steady: Mapping[int, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class BootModel:
    """A cohort's boots.

    `before` holds pairs of templates of which the first always comes first where both are about one part
    of one subsystem; `beside` pairs that always come close together, in one order, wherever they are.
    """

    cohort: Cohort
    nodes: int
    boots: int
    templates: Mapping[str, Template]
    before: frozenset[tuple[str, str]]
    beside: frozenset[tuple[str, str]]

    def to_json(self) -> str:
        """Return the form that is kept in a file."""
        return json.dumps(
            {
                "schema": SCHEMA,
                "cohort": asdict(self.cohort),
                "nodes": self.nodes,
                "boots": self.boots,
                "templates": {
                    text: [one.nodes, one.boots, one.least, one.most, dict(one.steady)]
                    for text, one in sorted(self.templates.items())
                },
                "before": sorted(self.before),
                "beside": sorted(self.beside),
            }
        )


def read_model(text: str) -> BootModel:
    """Read what to_json wrote. Raises Unreadable."""
    try:
        document = json.loads(text)
        known = document["schema"] == SCHEMA
        model = _model(document) if known else None
    except (ValueError, KeyError, TypeError, AttributeError, IndexError) as exc:
        raise Unreadable("boot model", f"it is cut, or of another form ({exc})") from exc
    if model is None:
        raise Unreadable("boot model", f"schema {document['schema']!r}, expected {SCHEMA}")
    return model


def _model(document: Any) -> BootModel:
    return BootModel(
        cohort=read_cohort(document["cohort"]),
        nodes=int(document["nodes"]),
        boots=int(document["boots"]),
        templates={
            name: Template(
                nodes=int(row[0]),
                boots=int(row[1]),
                least=int(row[2]),
                most=int(row[3]),
                steady={int(at): str(value) for at, value in row[4].items()},
            )
            for name, row in document["templates"].items()
        },
        before=_pairs(document["before"]),
        beside=_pairs(document["beside"]),
    )


def _pairs(rows: Any) -> frozenset[tuple[str, str]]:
    return frozenset((str(first), str(second)) for first, second in rows)
