"""What to send to a node: the collector with the items of a level inside."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from health.check import Collect

_COLLECTOR = Path(__file__).with_name("collector.py")
_ACTIVE = Path(__file__).with_name("active")
# Room for starting Python, and for the tools that must be killed at the end.
_OVERHEAD_S = 5.0


@dataclass(frozen=True, slots=True)
class CollectPlan:
    """The items of one collection, and the seconds after which none is waited for."""

    items: tuple[Collect, ...]
    total_s: float

    @property
    def digest(self) -> str:
        """Name this plan: evidence says which plan it was collected by."""
        packed = json.dumps([self._documents(), self.total_s], sort_keys=True)
        return hashlib.sha256(packed.encode()).hexdigest()[:16]

    @property
    def deadline_s(self) -> float:
        """The seconds within which a node that answers at all has printed its evidence."""
        return self.total_s + _OVERHEAD_S

    def script(self, nonce: str) -> bytes:
        """Return the Python source to pipe into `python3 -` on the node."""
        plan = {
            "nonce": nonce,
            "digest": self.digest,
            "total_s": self.total_s,
            "items": self._documents(),
        }
        source = _COLLECTOR.read_text(encoding="utf-8")
        packed = json.dumps(plan, ensure_ascii=True)
        return (
            f"import json\nPLAN = json.loads({packed!r})\nSOURCE = {source!r}\n"
            'exec(compile(SOURCE, "collector.py", "exec"))\n'
        ).encode("ascii", "backslashreplace")

    def _documents(self) -> list[dict[str, object]]:
        return [_document(item) for item in self.items]


def _document(item: Collect) -> dict[str, object]:
    argv = [_script(word) for word in item.argv]
    return {
        "id": item.id,
        **({"argv": argv} if argv else {"file": item.file}),
        **({"shown": list(item.argv)} if argv != list(item.argv) else {}),
        "timeout_s": item.timeout_s,
        "needs_root": item.needs_root,
        "limit_bytes": item.limit_bytes,
        **({"each": item.each} if item.each else {}),
        **({"after_s": item.after_s} if item.after_s else {}),
        **({"alone": True} if item.alone else {}),
    }


def _script(word: str) -> str:
    """Return the text of the script that a word names, or the word."""
    return (_ACTIVE / word[1:]).read_text(encoding="utf-8") if word.startswith("@") else word


def make_plan(items: Iterable[Collect], total_s: float) -> CollectPlan:
    """Fold items that several checks share into one plan. Raises ValueError when two differ by name only."""
    folded: dict[str, Collect] = {}
    for item in items:
        known = folded.setdefault(item.id, item)
        if known != item:
            raise ValueError(f"two checks collect {item.id} in different ways")
    return CollectPlan(tuple(folded.values()), total_s)
