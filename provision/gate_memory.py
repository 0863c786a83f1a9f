"""What the gate knows of a node beside its evidence, and what it keeps for the next time.

The last acknowledged repair, an earlier reading of counters, what is usual for the profile, and what the
boots of its cohort have taught. Nothing of it opens the gate: a memory that cannot be read is left out.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path

from bmc.console.boots import boot
from bmc.console.render import stamp
from bmc.console.store import Chunk
from bmc.console.store import Event as ConsoleEvent
from bmc.console.store import EventKind as ConsoleKind
from health import boots
from health import evidence as evidence_files
from health.bootlog.console import Console
from health.boots import BootModel, Card, Cohort, Decisions
from health.errors import EvidenceBroken, HealthError
from health.evidence import Context, Evidence
from health.verdict import Answer, Verdict
from inventory.admission import ADMITTED, HELD
from inventory.model import Node, Profile
from inventory.records import AUTOMATION, Event, EventKind
from provision.access import Access
from provision.measurements import Measurements
from provision.triage import Shelf

log = logging.getLogger(__name__)

# Written when a fix has been carried out: what the node logged before it is forgiven.
REPAIRED = "repaired"
_LOOK_BACK = 20  # verdicts, for the last yes
_MOVES = 50


@dataclass
class GateMemory:
    """The memory of one command: what concerns all nodes is read once."""

    access: Access
    shelf: Shelf = field(init=False)
    measured: Measurements = field(init=False)
    problems: set[str] = field(default_factory=set)  # what could not be read, to be shown once

    def __post_init__(self) -> None:
        state = self.access.settings.state
        self.shelf = Shelf(state / "boots")
        self.measured = Measurements(state / "measured")

    @cached_property
    def reliable(self) -> frozenset[str]:
        """The nodes that teach what is usual: those that are reliable now."""
        return frozenset(name for name, state in self.access.store.nodes().items() if state.pool in ADMITTED)

    def context(self, node: Node, profile: Profile, found: Evidence, collected_at: float) -> Context:
        """Return what to judge a node's evidence with."""
        cohort, whole = boots.cohort_seen(found, profile)
        # Read only where it is needed: a recording is larger than all other evidence.
        console = None if whole else self._console(node.name)
        if console is not None:
            cohort, _ = boots.cohort_seen(replace(found, context=Context(console=console)), profile)
        return Context(
            collected_at=collected_at,
            repaired_at=self._repaired_at(node.name),
            baseline=self._baseline(node.name, found),
            medians=self._medians(profile),
            boots=self._model(cohort),
            triage=self._decisions(),
            console=console,
        )

    def remember(self, node: Node, profile: Profile, found: Evidence, verdict: Verdict) -> tuple[Card, ...]:
        """Keep what this verdict has to teach; returns triage cards that are new.

        Only a node that got its yes is measured and its boot kept; whether its boots teach is asked
        later, when it has become reliable, or has ceased to be.
        """
        at = found.context.collected_at or found.began.wall_clock
        try:
            odd = boots.oddities(found, profile, found.context.boots)
            fresh = self.shelf.note(node.name, odd, at)
            if verdict.answer is Answer.YES:
                self.measured.keep(profile.name, node.name, verdict.outcomes)
                saved = boots.saved_boot(found, profile, node.name, at)
                if saved is not None:
                    self.shelf.keep(saved)
        except (HealthError, OSError) as error:
            self._lost(error)
            return ()
        return fresh

    def learn(self) -> tuple[BootModel, ...]:
        """Learn anew where enough boots of reliable nodes have come."""
        self.__dict__.pop("reliable", None)
        try:
            return self.shelf.learn(self.reliable)
        except (HealthError, OSError) as error:
            self._lost(error)
            return ()

    def _repaired_at(self, node: str) -> float | None:
        """Return when a repair was last acknowledged: a fix of ours, or a human's release from a hold."""
        kinds = [REPAIRED, EventKind.POOL]
        events = self.access.store.events(node=node, kinds=kinds, limit=_MOVES)
        times = [event.ts.timestamp() for event in events if _acknowledges(event)]
        return max(times, default=None)

    def _baseline(self, node: str, found: Evidence) -> Evidence | None:
        """Return the evidence of the last yes, if it is of this boot: it makes a long window for counters."""
        for record in self.access.store.verdicts(node, limit=_LOOK_BACK):
            if str(record.answer) != Answer.YES or not record.evidence:
                continue
            try:
                raw = Path(record.evidence).read_bytes()
                earlier = evidence_files.parse(raw, nonce=evidence_files.nonce_of(raw))
            except (OSError, EvidenceBroken):
                return None
            return earlier if earlier.began.boot_id == found.began.boot_id else None
        return None

    def _medians(self, profile: Profile) -> Mapping[str, float]:
        try:
            return self.measured.medians(profile.name, lambda: self.reliable)
        except (HealthError, OSError) as error:
            self._lost(error)
            return {}

    def _model(self, cohort: Cohort | None) -> BootModel | None:
        if cohort is None:
            return None
        try:
            return self.shelf.model(cohort)
        except (HealthError, OSError) as error:
            self._lost(error)
            return None

    def _decisions(self) -> Decisions:
        try:
            return self.shelf.decisions()
        except (HealthError, OSError) as error:
            self._lost(error)
            return Decisions()

    def _console(self, node: str) -> Console | None:
        """Return what the node's console showed of its last boot, None where nobody recorded it."""
        try:
            shown = boot(self.access.settings.console_folder(node))
        except OSError as error:
            self._lost(error)
            return None
        return None if shown is None else Console(shown.data.decode("utf-8", "replace"), _gaps(shown.entries))

    def _lost(self, error: Exception) -> None:
        if str(error) not in self.problems:
            self.problems.add(str(error))
            log.warning("the gate judges without a part of its memory: %s", error)


def _gaps(entries: Sequence[Chunk | ConsoleEvent]) -> tuple[str, ...]:
    """Return where bytes may be missing: where the line was lost, or nobody recorded for a while."""
    gaps = []
    last: float | None = None  # when bytes last came
    broken = False
    for entry in entries:
        if isinstance(entry, Chunk):
            if broken and last is not None:
                gaps.append(f"nobody recorded it from {stamp(last)} on")
            last, broken = entry.time, False
        elif entry.kind in (ConsoleKind.STOPPED, ConsoleKind.STARTED, ConsoleKind.WAITING):
            broken = True  # a recorder that was killed leaves no word; its successor does
        elif entry.kind in (ConsoleKind.LOST, ConsoleKind.STOLEN, ConsoleKind.OVERRUN):
            gaps.append(f"{entry.kind} at {stamp(entry.time)}")
    return tuple(gaps)


def _acknowledges(event: Event) -> bool:
    if event.kind == REPAIRED:
        return True
    lifted = event.data.get("from") in {str(pool) for pool in HELD} and event.data.get("to") is None
    return lifted and event.actor != AUTOMATION
