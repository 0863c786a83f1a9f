"""Keeps boots of reliable nodes, and what was learned of them, in a folder: one folder a cohort."""

from __future__ import annotations

import gzip
import hashlib
import json
from pathlib import Path

from health.bootlog.boot import Boot, Cohort
from health.bootlog.learn import learn
from health.bootlog.masks import mask
from health.bootlog.model import BootModel, read_model
from health.errors import Unreadable

# More boots of one node teach nothing new, and boots of long ago are of a system that has changed since.
BOOTS_A_NODE = 5


class Library:
    """Boots by cohort. Not safe for two writers of one cohort at once."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def add(self, cohort: Cohort, boot: Boot, boot_id: str) -> None:
        """Keep one boot; the caller answers for its node being reliable. The oldest of a node make room."""
        if boot.gap is not None:
            return
        folder = self._place(cohort) / "boots"
        folder.mkdir(parents=True, exist_ok=True)
        packed = gzip.compress(json.dumps({"node": boot.node, "lines": boot.texts}).encode(), mtime=0)
        path = folder / f"{_slug(boot.node)}.{_slug(boot_id)}.json.gz"
        _replace(path, packed)
        own = sorted(folder.glob(f"{_slug(boot.node)}.*.json.gz"), key=lambda path: path.stat().st_mtime_ns)
        for old in own[:-BOOTS_A_NODE]:
            old.unlink()

    def boots(self, cohort: Cohort) -> tuple[Boot, ...]:
        """Return the boots kept of a cohort. Raises Unreadable for a file that is damaged."""
        return tuple(_read(path) for path in sorted(self._place(cohort).glob("boots/*.json.gz")))

    def learn(self, cohort: Cohort, *, denied: frozenset[str] = frozenset()) -> BootModel:
        """Learn a cohort anew from all its boots, and keep what was learned."""
        model = learn(cohort, self.boots(cohort), denied=denied)
        self._place(cohort).mkdir(parents=True, exist_ok=True)
        _replace(self._place(cohort) / "model.json", model.to_json().encode())
        return model

    def model(self, cohort: Cohort) -> BootModel | None:
        """Return what was learned of a cohort, or None. Raises Unreadable for a file that is damaged."""
        path = self._place(cohort) / "model.json"
        if not path.exists():
            return None
        model = read_model(path.read_text(encoding="utf-8"))
        if model.cohort != cohort:
            raise Unreadable(str(path), f"it is of {model.cohort.name}")
        return model

    def _place(self, cohort: Cohort) -> Path:
        digest = hashlib.sha256(cohort.name.encode()).hexdigest()[:8]
        return self._folder / f"{_slug(cohort.profile)}-{digest}"


def _slug(text: str) -> str:
    return "".join(sign if sign.isalnum() or sign == "-" else "_" for sign in text)


def _replace(path: Path, data: bytes) -> None:
    fresh = path.with_name(f".{path.name}.part")
    fresh.write_bytes(data)
    fresh.replace(path)


def _read(path: Path) -> Boot:
    try:
        document = json.loads(gzip.decompress(path.read_bytes()))
        texts = tuple(map(str, document["lines"]))
        return Boot(str(document["node"]), tuple(mask(text) for text in texts), texts)
    except (OSError, EOFError, ValueError, KeyError, TypeError) as exc:
        raise Unreadable(str(path), f"it is damaged ({exc})") from exc
