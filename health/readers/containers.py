"""Reads `docker info`, as text or JSON."""

from __future__ import annotations

import re
from dataclasses import dataclass

from health.errors import Unreadable
from health.readers.json_text import read_object


@dataclass(frozen=True, slots=True)
class DockerInfo:
    """What the daemon says. `runtimes` None: it is too old to list them."""

    version: str
    runtimes: tuple[str, ...] | None
    default_runtime: str
    storage: str
    errors: tuple[str, ...]


def read_docker(text: str) -> DockerInfo:
    """Read `docker info`. Raises Unreadable where no daemon answered."""
    if text.lstrip().startswith("{"):
        return _from_json(text)
    fields: dict[str, str] = {}
    for line in text.splitlines():
        label, sign, value = line.partition(":")
        if sign:
            fields[label.strip().lower()] = value.strip()
    errors = tuple(re.findall(r"^(?:ERROR|errors?): .*", text, re.MULTILINE | re.IGNORECASE))
    if "server version" not in fields and not errors:
        raise Unreadable("docker info", " ".join(text.split())[:100] or "it is empty")
    runtimes = fields.get("runtimes")
    return DockerInfo(
        fields.get("server version", ""),
        None if runtimes is None else tuple(runtimes.split()),
        fields.get("default runtime", ""),
        fields.get("storage driver", ""),
        errors,
    )


def _from_json(text: str) -> DockerInfo:
    document = read_object("docker info", text)
    version = document.get("ServerVersion")
    errors = document.get("ServerErrors")
    runtimes = document.get("Runtimes")
    if not version and not errors:
        raise Unreadable("docker info", "no daemon answered")
    return DockerInfo(
        str(version or ""),
        tuple(runtimes) if isinstance(runtimes, dict) else None,
        str(document.get("DefaultRuntime") or ""),
        str(document.get("Driver") or ""),
        tuple(map(str, errors)) if isinstance(errors, list) else (),
    )
