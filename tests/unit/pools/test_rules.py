"""Random commands and faults against a model that knows the rules of pools in its own words."""

from __future__ import annotations

import asyncio
import dataclasses
import tempfile
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from inventory.errors import HeldByHuman, NotAdmissible, StoreError
from inventory.model import Node, Pool, Stage
from inventory.records import NodeState
from inventory.store import Store
from provision import flow
from provision.access import Access
from provision.errors import NotEnough, Refused
from provision.pools import allocation, replacing, spares
from provision.pools.choosing import Wanted
from provision.settings import Settings
from tests.unit.pools.conftest import PROFILES, RACKS, SITE
from tests.unit.pools.making import consent

NAMES = [f"a1-n{number:02}" for number in range(1, 7)] + [f"a2-n{number:02}" for number in range(1, 5)]
NODES = st.sampled_from(NAMES)
JOBS = st.sampled_from(["j1", "j2", "j3"])
HOLDS = {Pool.QUARANTINE, Pool.REPAIR, Pool.RETIRED}


def fresh(state: NodeState) -> bool:
    """Whether the gate said yes after everything that casts doubt, in the model's own words."""
    told = [state.deployed_at, state.last_power_loss_at, state.doubted_at]
    judged = state.last_verdict_at
    return (
        state.last_verdict == "yes"
        and judged is not None
        and all(moment is None or judged > moment for moment in told)
    )


class Pools(RuleBasedStateMachine):
    """Operators, jobs, the gate and failing hardware on ten nodes of two racks."""

    def __init__(self) -> None:
        super().__init__()
        memory = Path("/dev/shm")
        self.folder = tempfile.TemporaryDirectory(dir=memory if memory.is_dir() else None)
        site, state = Path(self.folder.name, "site"), Path(self.folder.name, "state")
        site.mkdir()
        for name, text in (("site", SITE), ("racks", RACKS), ("profiles", PROFILES)):
            (site / f"{name}.yaml").write_text(text)
        environment = {"MUSTER_SITE": str(site), "MUSTER_STATE": str(state), "MUSTER_WHO": "marta"}
        opened = Access.open(Settings.from_environment(environment))
        opened.store.close()
        self.now = datetime.now(UTC)
        store = Store.open(opened.settings.database, clock=self.tick)
        self.access = dataclasses.replace(opened, store=store)
        self.given: dict[str, str] = {}  # node -> job, as the model believes
        self.humans: dict[str, tuple[Pool, str]] = {}  # node -> its hold and why
        self.left: dict[str, datetime] = {}  # reliable nodes that automation held since the last resume

    def teardown(self) -> None:
        self.access.store.close()
        self.folder.cleanup()

    def tick(self) -> datetime:
        self.now += timedelta(seconds=1)
        return self.now

    @property
    def states(self) -> dict[str, NodeState]:
        found = self.access.store.nodes()
        return {name: found.get(name) or NodeState(name) for name in NAMES}

    @initialize()
    def begin(self) -> None:
        for name in NAMES[:8]:
            self.join(name)

    # -- what happens to nodes -----------------------------------------------------------------

    @rule(name=NODES)
    def join(self, name: str) -> None:
        """A bring-up ends: judged, and admitted unless a human holds it."""
        self.access.store.reach(name, Stage.VERIFIED, run=None)
        self.judge(name, "yes")
        before = self.states[name]
        if before.pool in {Pool.RELIABLE, Pool.SPARE}:
            return
        try:
            pool = spares.pool_for(self.access, self.access.node(name))
            self.access.store.set_pool(name, pool, by="automation", why="verified")
        except HeldByHuman:
            assert name in self.humans
            return
        assert name not in self.humans
        assert fresh(before)

    @rule(name=NODES, answer=st.sampled_from(["yes", "no", "unknown"]))
    def judge(self, name: str, answer: str) -> None:
        self.access.store.record_verdict(
            name, run=None, level="quick", answer=answer, reasons=[], evidence=None
        )

    @rule(name=NODES)
    def lose_power(self, name: str) -> None:
        left = self.states[name].pool is Pool.RELIABLE
        self.access.store.observe(name, last_power_loss_at=self.tick())
        if left:
            self.left[name] = self.now

    @rule(name=NODES)
    def break_down(self, name: str) -> None:
        """Automation finds a node bad, and quarantines it if it may."""
        before = self.states
        open_before = self.access.store.breaker().tripped_at is not None
        asyncio.run(flow.quarantine(self.access, name, run=None, why="Xid 79"))
        after = self.states[name]
        if name in self.humans:
            assert (after.pool, after.pool_why) == self.humans[name]
        elif before[name].pool is Pool.RELIABLE:
            assert after.pool is (Pool.RELIABLE if open_before else Pool.QUARANTINE)
            if not open_before:
                self.left[name] = self.now
                self.check_trip(before)
        else:
            assert after.pool in HOLDS

    def check_trip(self, before: dict[str, NodeState]) -> None:
        reliable = {name for name, state in before.items() if state.pool is Pool.RELIABLE}
        recent = {name for name, when in self.left.items() if self.now - when < timedelta(minutes=59)}
        size = len(reliable | recent)
        if len(recent) >= 2 and len(recent) > size / 10:
            assert self.access.store.breaker().tripped_at is not None, "too many left unnoticed"

    @rule(hours=st.integers(1, 30))
    def wait(self, hours: int) -> None:
        self.now += timedelta(hours=hours)

    # -- what operators do ---------------------------------------------------------------------

    @rule(name=NODES, pool=st.sampled_from(sorted(HOLDS)))
    def hold(self, name: str, pool: Pool) -> None:
        self.access.store.set_pool(name, pool, by="ana", why=f"ana said {pool}")
        self.humans[name] = (pool, f"ana said {pool}")

    @rule(name=NODES)
    def release(self, name: str) -> None:
        if self.states[name].pool in HOLDS:
            self.access.store.set_pool(name, None, by="ana", why="fixed")
            self.humans.pop(name, None)

    @rule()
    def resume(self) -> None:
        self.access.store.resume_breaker(by="ana", why="looked")
        self.left.clear()

    @rule(job=JOBS, count=st.integers(1, 4), same_pod=st.booleans(), healthiest=st.booleans())
    def allocate(self, job: str, count: int, same_pod: bool, healthiest: bool) -> None:
        before = self.states
        own = [name for name, owner in self.given.items() if owner == job]
        free = [
            name
            for name, state in before.items()
            if state.pool is Pool.RELIABLE and fresh(state) and name not in self.given
        ]
        wanted = Wanted(len(own) or count, same_pod, healthiest)
        try:
            result = asyncio.run(
                allocation.allocate(self.access, job, wanted, self.access.site.nodes, reason="")
            )
        except NotEnough:
            assert not own
            assert len(free) < count
            return
        names = [node.name for node in result.nodes]
        if own:
            assert (set(names), result.already) == (set(own), True)
            return
        assert len(names) == len(set(names)) == count
        assert set(names) <= set(free), "handed out what is held, unproven or taken"
        self.given |= dict.fromkeys(names, job)

    @rule(job=JOBS)
    def give_back(self, job: str) -> None:
        own = [name for name, owner in self.given.items() if owner == job]
        if own:
            assert set(allocation.give_back(self.access, consent(self.access, *own))) == set(own)
        for name in own:
            del self.given[name]

    @rule(names=st.lists(NODES, min_size=1, max_size=3, unique=True), partial=st.booleans())
    def replace(self, names: Sequence[str], partial: bool) -> None:
        before, nodes = self.states, [self.access.node(name) for name in names]
        usable = [
            name
            for name, state in before.items()
            if state.pool is Pool.SPARE and fresh(state) and name not in self.given and name not in names
        ]
        concerned = [name for name in names if name in self.given or before[name].pool is Pool.RELIABLE]
        try:
            plan = asyncio.run(replacing.plan(self.access, nodes, partial=partial))
        except NotEnough:
            assert not partial
            assert len(usable) < len(concerned)
            assert self.states == before
            return
        if not plan.failed:
            return
        failed = [node.name for node in plan.failed]
        replacing.carry_out(self.access, plan, consent(self.access, *failed))
        after = self.states
        for name in failed:
            spare = plan.spares.get(name)
            assert after[name].pool in HOLDS
            if name in self.humans:
                assert (after[name].pool, after[name].pool_why) == self.humans[name]
            elif after[name].pool_by == "marta":
                self.humans[name] = (Pool.QUARANTINE, "because")
            job = self.given.pop(name, None)
            if spare is not None:
                assert spare.name in usable
                assert after[spare.name].pool is Pool.RELIABLE
                if job is not None:
                    self.given[spare.name] = job

    @rule(busy=st.sets(NODES, max_size=3))
    def balance(self, busy: set[str]) -> None:
        async def in_use(_access: Access, node: Node) -> Refused | None:
            return Refused("in-use", node.name, "busy") if node.name in busy else None

        before = self.states
        moves = {move.node: move for move in asyncio.run(spares.plan(self.access, in_use))}
        if moves:
            asked = consent(self.access, *moves)
            assert spares.carry_out(self.access, list(moves.values()), asked) == ()
        for name, state in self.states.items():
            if name not in moves:
                assert state.pool == before[name].pool
                continue
            assert name not in self.given, "moved away from under a job"
            assert fresh(before[name])
            assert {before[name].pool, state.pool} == {Pool.RELIABLE, Pool.SPARE}
            assert state.pool is Pool.RELIABLE or name not in busy

    # -- what always holds ---------------------------------------------------------------------

    @invariant()
    def who_has_what_is_what_was_handed_out(self) -> None:
        assert {name: one.name for name, one in self.access.store.allocations().items()} == self.given

    @invariant()
    def humans_holds_stay(self) -> None:
        states = self.states
        for name, (pool, why) in self.humans.items():
            assert (states[name].pool, states[name].pool_why) == (pool, why), f"{name} was moved"
            assert states[name].pool_by != "automation"

    @invariant()
    def nobody_is_admitted_by_hand(self) -> None:
        for name, state in self.states.items():
            if state.pool is None and not fresh(state):
                with pytest.raises((NotAdmissible, StoreError)):
                    self.access.store.set_pool(name, Pool.RELIABLE, by="ana", why="trust me")


Pools.TestCase.settings = settings(
    max_examples=15,
    stateful_step_count=25,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
)
TestPools = pytest.mark.timeout(300)(Pools.TestCase)
