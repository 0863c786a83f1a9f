"""What every request of the service works with."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from provision.mirror.access_log import AccessLog
from provision.mirror.config import Config
from provision.mirror.counters import Counters
from provision.mirror.store import Store
from provision.mirror.uploads import Uploads


@dataclass(slots=True)
class Desk:
    """The parts of one running service. `needed` tells which content peers are fetching now."""

    config: Config
    store: Store
    uploads: Uploads
    counters: Counters
    log: AccessLog
    needed: Callable[[], frozenset[str]] = frozenset
