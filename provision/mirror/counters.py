"""What the service counts, for /metrics."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field


@dataclass(slots=True)
class Counters:
    """Since the service began."""

    received: int = 0  # bytes
    published: int = 0  # files
    expired: int = 0  # uploads
    collected: int = 0  # files
    broken: int = 0  # files that no longer had their digest
    refused: Counter[str] = field(default_factory=Counter)  # by code
