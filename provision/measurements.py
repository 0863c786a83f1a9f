"""Keeps what checks have measured of each node, and says what is usual for a profile.

One small file a node and profile in the state; the last value of a metric replaces the one before.
"""

from __future__ import annotations

import json
import statistics
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from health.errors import Unreadable
from health.outcome import Outcome

# Of fewer nodes the median says as much about the part as about its like.
ENOUGH = 5


@dataclass
class Measurements:
    """What was measured on the nodes of a site. Read once: a command judges all nodes by the same values."""

    folder: Path
    _read: dict[str, dict[str, dict[str, float]]] = field(default_factory=dict, repr=False)

    def of(self, profile: str) -> Mapping[str, Mapping[str, float]]:
        """Return metric values by node. Raises Unreadable for a file that is damaged."""
        if profile not in self._read:
            self._read[profile] = {
                path.stem: _values(path) for path in (self.folder / profile).glob("*.json")
            }
        return self._read[profile]

    def medians(self, profile: str, nodes: Callable[[], Collection[str]]) -> dict[str, float]:
        """Return the median of each metric over `nodes()` where enough have it. Raises Unreadable."""
        if not self.of(profile):
            return {}
        values: dict[str, list[float]] = defaultdict(list)
        counted = nodes()
        for name, own in self.of(profile).items():
            if name in counted:
                for metric, value in own.items():
                    values[metric].append(value)
        return {metric: statistics.median(found) for metric, found in values.items() if len(found) >= ENOUGH}

    def keep(self, profile: str, node: str, outcomes: Iterable[Outcome]) -> None:
        """Write down what outcomes have measured; metrics that they do not have stay as they were."""
        fresh = {metric: value for outcome in outcomes for metric, value in outcome.metrics.items()}
        if not fresh:
            return
        path = self.folder / profile / f"{node}.json"
        path.parent.mkdir(parents=True, exist_ok=True)
        known = _values(path) if path.exists() else {}
        part = path.with_name(f".{path.name}.part")
        part.write_text(json.dumps(known | fresh, sort_keys=True), encoding="utf-8")
        part.replace(path)


def _values(path: Path) -> dict[str, float]:
    try:
        document = json.loads(path.read_text(encoding="utf-8"))
        return {str(metric): float(value) for metric, value in document.items()}
    except (ValueError, TypeError, AttributeError) as exc:
        raise Unreadable(str(path), f"it is damaged ({exc})") from exc
