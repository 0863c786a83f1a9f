"""What an upload is to become, and what uploads under way still claim."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Promise:
    """What a finished upload is to become. An empty name publishes under the digest only."""

    length: int
    sha256: str
    name: str
    replace: bool
    by: str
    created: float


@dataclass(frozen=True, slots=True)
class UnderWay:
    """Bytes that uploads under way still claim: of the disk, of all quota, and of the asker's quota."""

    disk: int = 0
    quota: int = 0
    quota_each: int = 0
