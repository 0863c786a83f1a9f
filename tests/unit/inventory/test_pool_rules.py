"""Who gets a node into which pool: a model that knows the rules in its own words, against the store."""

from __future__ import annotations

import tempfile
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from inventory.errors import BreakerOpen, HeldByHuman, NotAdmissible, StoreError
from inventory.model import Pool, Stage
from inventory.records import AUTOMATION, EventKind
from inventory.store import Store

NODES = st.sampled_from(["n1", "n2"])
WHO = st.sampled_from([AUTOMATION, "ana"])
POOLS = st.none() | st.sampled_from(Pool)
HOLDS = {Pool.QUARANTINE, Pool.REPAIR, Pool.RETIRED}


@dataclass
class Believed:
    """What the model knows of a node."""

    stage: Stage = Stage.RACKED
    pool: Pool | None = None
    by: str | None = None
    answer: str | None = None
    deployed_at: int = -1
    dark_at: int = -1
    judged_at: int = -1
    doubted_at: int = -1


class PoolRules(RuleBasedStateMachine):
    """Random commands, deployments, power losses, verdicts and failures."""

    def __init__(self) -> None:
        super().__init__()
        memory = Path("/dev/shm")  # every step is several synchronous commits
        self.folder = tempfile.TemporaryDirectory(dir=memory if memory.is_dir() else None)
        self.seconds = 0
        self.store = Store.open(f"sqlite:///{self.folder.name}/s", clock=self.tick)
        self.nodes = {"n1": Believed(), "n2": Believed()}

    def teardown(self) -> None:
        self.store.close()
        self.folder.cleanup()

    def tick(self) -> datetime:
        self.seconds += 1
        return self.at(self.seconds)

    @staticmethod
    def at(seconds: int) -> datetime:
        return datetime(2026, 1, 1, tzinfo=UTC) + timedelta(seconds=seconds)

    def proven(self, name: str) -> bool:
        """Whether the model says that the node has a fresh yes."""
        node = self.nodes[name]
        fresh = node.judged_at > max(node.deployed_at, node.dark_at, node.doubted_at)
        return node.stage is Stage.VERIFIED and node.answer == "yes" and fresh

    def evict(self, name: str) -> None:
        """The model leaves the admitted pools once its proof is older than what happened."""
        node = self.nodes[name]
        fresh = node.judged_at > max(node.deployed_at, node.dark_at)
        if node.pool in {Pool.RELIABLE, Pool.SPARE} and not (node.stage is Stage.VERIFIED and fresh):
            node.pool, node.by = None, AUTOMATION

    @rule(name=NODES, stage=st.sampled_from(Stage))
    def reach(self, name: str, stage: Stage) -> None:
        self.store.reach(name, stage, run=None)
        self.nodes[name].stage = stage
        self.evict(name)

    @rule(name=NODES)
    def deploy(self, name: str) -> None:
        self.seconds += 1
        self.nodes[name].deployed_at = self.seconds
        self.store.reach(name, Stage.DEPLOYED, run=None, deployed_at=self.at(self.seconds))
        self.nodes[name].stage = Stage.DEPLOYED
        self.evict(name)

    @rule(name=NODES)
    def lose_power(self, name: str) -> None:
        self.seconds += 1
        self.nodes[name].dark_at = self.seconds
        self.store.observe(name, last_power_loss_at=self.at(self.seconds))
        self.evict(name)

    @rule(name=NODES, stage=st.sampled_from(Stage))
    def fail(self, name: str, stage: Stage) -> None:
        self.nodes[name].doubted_at = self.seconds + 1  # the store's next look at the clock
        self.store.fail(name, stage, run=None, code="x", reason="x", next="x")

    @rule(name=NODES, answer=st.sampled_from(["yes", "no", "unknown"]), age=st.integers(0, 5))
    def judge(self, name: str, answer: str, age: int) -> None:
        self.seconds += 1
        when = max(0, self.seconds - age)
        self.store.record_verdict(
            name, run=None, level="full", answer=answer, reasons=[], evidence=None, collected_at=self.at(when)
        )
        node = self.nodes[name]
        if when >= node.judged_at:
            node.judged_at, node.answer = when, answer

    @rule(name=NODES, pool=POOLS, who=WHO)
    def move(self, name: str, pool: Pool | None, who: str) -> None:
        node = self.nodes[name]
        held = node.pool in HOLDS and node.by != AUTOMATION
        now = self.seconds + 1  # the store's next look at the clock
        refusal = self.refusal(name, pool, who)
        if isinstance(refusal, HeldByHuman):
            assert held
            assert who == AUTOMATION
            assert (refusal.node, refusal.pool, refusal.by) == (name, node.pool, node.by)
            return
        if isinstance(refusal, NotAdmissible):
            assert pool in {Pool.RELIABLE, Pool.SPARE}
            assert not self.proven(name)
            return
        if isinstance(refusal, BreakerOpen):
            assert who == AUTOMATION
            assert node.pool is Pool.RELIABLE
            assert pool in HOLDS
            assert self.store.breaker().tripped_at is not None
            return
        assert not (held and who == AUTOMATION and pool != node.pool), "automation lifted what a human placed"
        if pool in {Pool.RELIABLE, Pool.SPARE}:
            assert self.proven(name), "admitted without a fresh yes"
        if who == AUTOMATION and pool == node.pool:
            return
        if pool in HOLDS or (node.pool in HOLDS and pool is None):
            node.doubted_at = now
        node.pool, node.by = pool, who

    def refusal(self, name: str, pool: Pool | None, who: str) -> StoreError | None:
        """Ask the store for a move and return how it refuses."""
        try:
            self.store.set_pool(name, pool, by=who, why="because")
        except (BreakerOpen, HeldByHuman, NotAdmissible) as refusal:
            return refusal
        return None

    @rule()
    def resume_breaker(self) -> None:
        self.store.resume_breaker(by="ana", why="looked at it")

    @rule()
    def restart(self) -> None:
        self.store.close()
        self.store = Store.open(f"sqlite:///{self.folder.name}/s", clock=self.tick)

    @invariant()
    def store_and_model_agree(self) -> None:
        for name, node in self.nodes.items():
            state = self.store.node(name)
            assert (state.pool, state.stage) == (node.pool, node.stage)
            assert node.pool is None or state.pool_by == node.by

    @invariant()
    def nobody_is_admitted_on_a_proof_older_than_what_happened(self) -> None:
        for state in self.store.nodes().values():
            if state.pool in {Pool.RELIABLE, Pool.SPARE}:
                assert state.stage is Stage.VERIFIED
                assert state.last_verdict_at is not None
                for happened in (state.deployed_at, state.last_power_loss_at):
                    assert happened is None or state.last_verdict_at > happened

    @invariant()
    def the_journal_tells_the_same_story(self) -> None:
        for name in self.nodes:
            moves = self.store.events(node=name, kinds=[EventKind.POOL])
            assert (moves[-1].data["to"] if moves else None) == self.store.node(name).pool


PoolRules.TestCase.settings = settings(
    max_examples=25,
    stateful_step_count=25,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
)


TestPoolRules = pytest.mark.timeout(120)(PoolRules.TestCase)


@pytest.fixture
def store(tmp_path: Path) -> Store:
    """A store whose clock never stands still."""
    seconds = iter(range(10**6))
    return Store.open(f"sqlite:///{tmp_path}/s", clock=lambda: PoolRules.at(next(seconds)))


def admit(store: Store, name: str = "n1") -> None:
    """Bring a node into the reliable pool."""
    store.reach(name, Stage.VERIFIED, run="r")
    judge(store, name)
    store.set_pool(name, Pool.RELIABLE, by=AUTOMATION, why="gate")


def judge(store: Store, name: str = "n1", answer: str = "yes") -> None:
    """Record a verdict as of now."""
    store.record_verdict(name, run="r", level="full", answer=answer, reasons=[], evidence=None)


@pytest.mark.parametrize("pool", [Pool.RELIABLE, Pool.SPARE])
@pytest.mark.parametrize("who", [AUTOMATION, "ana"])
def test_nobody_admits_a_node_that_was_never_judged(store: Store, pool: Pool, who: str) -> None:
    store.reach("n1", Stage.VERIFIED, run="r")
    with pytest.raises(NotAdmissible, match="n1: not admitted: the gate has not judged it"):
        store.set_pool("n1", pool, by=who, why="trust me")
    store.close()


def test_a_refusal_says_what_is_in_the_way(store: Store) -> None:
    def refusal() -> str:
        with pytest.raises(NotAdmissible) as caught:
            store.set_pool("n1", Pool.RELIABLE, by=AUTOMATION, why="gate")
        return caught.value.reason

    store.reach("n1", Stage.CONFIGURED, run="r")
    assert refusal() == "its stage is configured, not verified"
    store.reach("n1", Stage.VERIFIED, run="r")
    judge(store, answer="unknown")
    assert refusal() == "the gate's last answer is unknown"
    judge(store)
    store.fail("n1", Stage.VERIFIED, run="r", code="x", reason="x", next="x")
    assert refusal() == "the gate has not judged it since it failed at verified"
    judge(store)
    store.set_pool("n1", Pool.REPAIR, by="ana", why="fan")
    store.set_pool("n1", None, by="ana", why="fan replaced")
    assert refusal() == "the gate has not judged it since it left repair"
    judge(store)
    store.observe("n1", last_power_loss_at=store.node("n1").last_verdict_at)
    assert refusal() == "the gate has not judged it since its last power loss"
    store.close()


def test_a_yes_from_before_quarantine_does_not_lift_it(store: Store) -> None:
    admit(store)
    store.set_pool("n1", Pool.QUARANTINE, by=AUTOMATION, why="Xid 79")
    with pytest.raises(NotAdmissible, match="since it was put into quarantine"):
        store.set_pool("n1", Pool.RELIABLE, by=AUTOMATION, why="it said yes once")
    judge(store)
    store.set_pool("n1", Pool.RELIABLE, by=AUTOMATION, why="gate")
    assert store.node("n1").pool is Pool.RELIABLE
    store.observe("n1", boot_id="b")  # leaving quarantine for reliable casts no new doubt
    assert store.node("n1").pool is Pool.RELIABLE
    store.close()


def test_a_human_confirms_what_automation_placed_and_then_holds_it(store: Store) -> None:
    store.set_pool("n1", Pool.QUARANTINE, by=AUTOMATION, why="Xid 79")
    store.set_pool("n1", Pool.QUARANTINE, by="ana", why="do not touch")
    store.set_pool("n1", Pool.QUARANTINE, by=AUTOMATION, why="Xid 79 again")
    state = store.node("n1")
    assert (state.pool_by, state.pool_why) == ("ana", "do not touch")
    with pytest.raises(HeldByHuman, match="held in quarantine by ana: do not touch"):
        store.set_pool("n1", None, by=AUTOMATION, why="looks fine")
    store.close()


@pytest.mark.parametrize("hold", sorted(HOLDS))
def test_automation_moves_nothing_out_of_a_human_s_hold_and_a_human_does(store: Store, hold: Pool) -> None:
    store.set_pool("n1", hold, by="ana", why="mine")
    for other in (None, *Pool):
        if other is not hold:
            with pytest.raises(HeldByHuman):
                store.set_pool("n1", other, by=AUTOMATION, why="mine now")
    assert (store.node("n1").pool, store.node("n1").pool_by) == (hold, "ana")
    store.set_pool("n1", None, by="tom", why="done")
    store.set_pool("n1", Pool.QUARANTINE, by=AUTOMATION, why="Xid 79")
    store.set_pool("n1", None, by=AUTOMATION, why="gone")
    assert store.node("n1").pool is None
    store.close()


def test_a_deployment_ends_a_stay_in_the_reliable_pool_and_says_so(store: Store) -> None:
    admit(store)
    store.reach("n1", Stage.DEPLOYED, run="r2", deployed_at=PoolRules.at(10**5))
    state = store.node("n1")
    assert (state.pool, state.pool_by) == (None, AUTOMATION)
    assert state.pool_why == "its stage is deployed, not verified"
    store.close()


def test_a_later_no_leaves_the_pool_to_the_circuit_breaker(store: Store) -> None:
    admit(store)
    judge(store, answer="no")
    store.fail("n1", Stage.VERIFIED, run="r", code="gate-no", reason="x", next="x")
    store.observe("n1", boot_id="b")
    assert store.node("n1").pool is Pool.RELIABLE
    store.close()


def test_evidence_from_the_future_does_not_outlast_the_next_deployment(store: Store) -> None:
    store.reach("n1", Stage.VERIFIED, run="r")
    future = PoolRules.at(10**6)
    store.record_verdict(
        "n1", run="r", level="full", answer="yes", reasons=[], evidence=None, collected_at=future
    )
    store.set_pool("n1", Pool.RELIABLE, by=AUTOMATION, why="gate")
    store.observe("n1", deployed_at=PoolRules.at(1000))
    assert store.node("n1").pool is None
    store.close()


def test_a_verdict_on_evidence_from_before_the_power_loss_does_not_admit(store: Store) -> None:
    store.reach("n1", Stage.VERIFIED, run="r", last_power_loss_at=PoolRules.at(5000))
    store.record_verdict(
        "n1", run="r", level="full", answer="yes", reasons=[], evidence=None, collected_at=PoolRules.at(4999)
    )
    with pytest.raises(NotAdmissible, match="since its last power loss"):
        store.set_pool("n1", Pool.RELIABLE, by=AUTOMATION, why="gate")
    store.close()
