"""Keeps what boots teach: boots, what was learned of each cohort, and the cards of what is odd.

One file each, in a folder of the state: they outlive every command. Writers take turns by a lock.
"""

from __future__ import annotations

import fcntl
import gzip
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from health import boots
from health.boots import BootModel, Card, Cohort, Decision, Decisions, SavedBoot
from health.errors import Unreadable
from inventory.nodeset import nearest
from provision.errors import UnknownCard

# A cohort is learned anew from every boot until enough are known, then when so many more have come.
_SHARE = 0.1


@dataclass
class Shelf:
    """The folder of one site's boots and cards. What was read is kept until its file has changed."""

    folder: Path
    _cards: tuple[int, dict[str, Card]] = field(default=(-1, {}), repr=False)
    _models: dict[Path, tuple[int, BootModel]] = field(default_factory=dict, repr=False)

    def cards(self) -> tuple[Card, ...]:
        """Return all cards, those on most nodes first. Raises Unreadable for one that is damaged."""
        return boots.in_order(self._by_id().values())

    def card(self, id: str) -> Card:
        """Return a card by its id, or by how its id begins. Raises UnknownCard, Unreadable."""
        known = self._by_id()
        found = [key for key in known if key.startswith(id)] if id and id not in known else [id]
        if len(found) != 1 or found[0] not in known:
            raise UnknownCard(id, nearest(id, known))
        return known[found[0]]

    def decisions(self) -> Decisions:
        """Return what operators have decided, to judge by. Raises Unreadable."""
        return boots.decisions(self._by_id().values())

    def decide(self, id: str, decision: Decision, *, by: str, at: float, why: str, until: float) -> Card:
        """Write down a decision for the card's whole cohort, which is learned anew. Raises UnknownCard."""
        with self._turn():
            card = boots.decide(self.card(id), decision, by=by, at=at, why=why, until=until)
            self._write(card)
            (self._place(card.cohort) / "learned").unlink(missing_ok=True)
        return card

    def note(self, node: str, anomalies: Iterable[boots.Anomaly], now: float) -> tuple[Card, ...]:
        """Note what is odd on a node; returns the cards that are new. Raises Unreadable."""
        odd = tuple(anomalies)
        if not odd:
            return ()
        with self._turn():
            known = self._by_id()
            changed = boots.note(known, node, odd, now)
            for card in changed:
                self._write(card)
        return tuple(card for card in changed if card.id not in known)

    def model(self, cohort: Cohort) -> BootModel | None:
        """Return what was learned of a cohort, or None. Raises Unreadable."""
        path = self._place(cohort) / "model.json"
        try:
            changed = path.stat().st_mtime_ns
        except FileNotFoundError:
            return None
        known = self._models.get(path)
        if known is None or known[0] != changed:
            known = (changed, boots.read_model(path.read_text(encoding="utf-8")))
            self._models[path] = known
        return known[1]

    def keep(self, saved: SavedBoot) -> None:
        """Keep a boot to learn from. Whether its node is reliable is asked when it teaches."""
        folder = self._place(saved.cohort) / "boots"
        folder.mkdir(parents=True, exist_ok=True)
        path = folder / f"{saved.node}.{saved.boot_id}.gz"
        if not path.exists():
            _replace(path, gzip.compress(saved.to_json().encode(), mtime=0))

    def learn(self, reliable: frozenset[str]) -> tuple[BootModel, ...]:
        """Learn each cohort anew of which enough boots have come; only nodes in `reliable` teach.

        Raises Unreadable for a boot or card that is damaged.
        """
        with self._turn():
            return tuple(
                self._learn(folder, reliable)
                for folder in sorted(self.folder.glob("cohorts/*"))
                if _is_due(folder, reliable)
            )

    def _learn(self, folder: Path, reliable: frozenset[str]) -> BootModel:
        saved = {path: _boot(path) for path in folder.glob("boots/*.gz")}
        kept = boots.worth_keeping(saved.values())
        for path, one in saved.items():
            if one not in kept:
                path.unlink()
        model = boots.learn_cohort(kept[0].cohort, kept, reliable=reliable, cards=self._by_id().values())
        _replace(folder / "model.json", model.to_json().encode())
        taught = sorted(path.name for path in folder.glob("boots/*.gz") if _node(path) in reliable)
        _replace(folder / "learned", "\n".join(taught).encode())
        return model

    def _by_id(self) -> dict[str, Card]:
        folder = self.folder / "cards"
        if not folder.is_dir():
            return {}
        changed = folder.stat().st_mtime_ns
        if self._cards[0] != changed:
            found = (boots.read_card(path.read_text(encoding="utf-8")) for path in folder.glob("*.json"))
            self._cards = (changed, {card.id: card for card in found})
        return self._cards[1]

    def _write(self, card: Card) -> None:
        folder = self.folder / "cards"
        folder.mkdir(parents=True, exist_ok=True)
        _replace(folder / f"{card.id}.json", card.to_json().encode())

    def _place(self, cohort: Cohort) -> Path:
        return self.folder / "cohorts" / cohort.id

    @contextmanager
    def _turn(self) -> Iterator[None]:
        self.folder.mkdir(parents=True, exist_ok=True)
        with (self.folder / "lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            yield


def _is_due(folder: Path, reliable: frozenset[str]) -> bool:
    """Say whether enough boots have come that a model has not seen, or a decision has changed it."""
    known = {path.name for path in folder.glob("boots/*.gz") if _node(path) in reliable}
    try:
        before = set((folder / "learned").read_text(encoding="utf-8").split())
    except FileNotFoundError:
        return bool(known) or (folder / "model.json").exists()
    return len(known - before) > _SHARE * len(before)


def _node(path: Path) -> str:
    return path.name.rsplit(".", 2)[0]


def _boot(path: Path) -> SavedBoot:
    try:
        text = gzip.decompress(path.read_bytes()).decode("utf-8")
    except (OSError, EOFError, ValueError) as exc:
        raise Unreadable(str(path), f"it is damaged ({exc})") from exc
    return boots.read_saved(text)


def _replace(path: Path, data: bytes) -> None:
    fresh = path.with_name(f".{path.name}.part")
    fresh.write_bytes(data)
    fresh.replace(path)
