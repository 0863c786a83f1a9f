"""A Redfish resource with typed ways into its JSON: what is absent or of another type is None."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

_EARLIEST_YEAR = 2000  # clocks that were never set say 1970, or 0000


@dataclass(frozen=True, slots=True)
class Resource:
    """One JSON object and the path that it came from."""

    path: str
    data: dict[str, Any]

    def at(self, *keys: str) -> object:
        """Return what lies under `keys`, None where the way ends."""
        found: object = self.data
        for key in keys:
            if not isinstance(found, dict):
                return None
            found = found.get(key)
        return found

    def text(self, *keys: str) -> str | None:
        """Return a text that says something: empty and blank ones are None."""
        found = self.at(*keys)
        return found.strip() or None if isinstance(found, str) else None

    def number(self, *keys: str) -> float | None:
        found = self.at(*keys)
        return float(found) if isinstance(found, int | float) and not isinstance(found, bool) else None

    def flag(self, *keys: str) -> bool | None:
        found = self.at(*keys)
        return found if isinstance(found, bool) else None

    def link(self, *keys: str) -> str | None:
        return self.text(*keys, "@odata.id")

    def links(self, *keys: str) -> tuple[str, ...]:
        return tuple(path for row in self.rows(*keys) if (path := row.text("@odata.id")))

    def rows(self, *keys: str) -> tuple[Resource, ...]:
        """Return the objects of a list; their path is their own where they have one."""
        return tuple(
            Resource(str(row.get("@odata.id") or self.path), row)
            for row in self._list(*keys)
            if isinstance(row, dict)
        )

    def texts(self, *keys: str) -> tuple[str, ...]:
        return tuple(row for row in self._list(*keys) if isinstance(row, str))

    def _list(self, *keys: str) -> Iterator[object]:
        found = self.at(*keys)
        return iter(found) if isinstance(found, list) else iter(())

    def action(self, name: str) -> str | None:
        """Return where an action such as "#ComputerSystem.Reset" is posted to."""
        return self.text("Actions", name, "target") or self.text("Actions", "Oem", name, "target")

    def health(self) -> str:
        """Return the health as we word it. Absent and disabled parts are unknown, whatever they say."""
        if self.text("Status", "State") in {"Absent", "Disabled", "UnavailableOffline"}:
            return "unknown"
        word = self.text("Status", "Health") or ""
        return {"OK": "ok", "Warning": "warning", "Critical": "critical"}.get(word, "unknown")


def parse_time(text: str | None) -> datetime | None:
    """Return a Redfish date; None where there is none or the clock was never set."""
    if not text:
        return None
    try:
        time = datetime.fromisoformat(text)
    except ValueError:
        return None
    if time.year < _EARLIEST_YEAR:
        return None
    return (time if time.tzinfo else time.replace(tzinfo=UTC)).astimezone(UTC)
