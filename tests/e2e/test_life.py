"""Random operators, faults and kills against a model of what must never happen.

The store, the plans, the guards, the flow and its rules are the product's; what stages do to a node
is replaced at the flow's seam by stand-ins that do what the stages' own tests prove of them.
"""

from __future__ import annotations

import asyncio
import os
import shutil
import tempfile
import threading
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import ClassVar

import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from inventory.errors import HeldByHuman, NotAdmissible
from inventory.model import Pool, Stage
from inventory.records import RunState
from lab.bmc import BmcSpec, BmcUser, start_rack
from lab.bmc.light import LightChassis
from provision import flow, guards
from provision.access import Access
from provision.errors import NodeFailed, Refused
from provision.guards import Asking
from provision.planning import plan_bringup, plan_reimage
from provision.settings import Settings
from provision.stages import admitted
from provision.stages.idle import refuse_in_use
from provision.stages.job import NodeJob, Options, Reached
from provision.stages.site_maas import SiteMaas
from provision.stages.site_memory import SiteMemory

NODES = ("n1", "n2", "n3")
Part = Callable[[NodeJob, "Truth"], Awaitable[None]]
SOME = st.one_of(st.just(set(NODES)), st.sets(st.sampled_from(NODES), min_size=1))
STEPS = st.integers(1, 5)
# Whoever is asked what runs on a node finds it in a file of the node's name.
SSH = """#!/bin/sh
for last; do :; done
while [ "$1" != -p ]; do shift; done
[ ! -e "$BUSY/$2" ] || echo "4711, python3"
"""


@dataclass
class Truth:
    """One node as it really is, and what the model expects of the product."""

    locked: bool = False
    wrong_machine: bool = False
    gate: str = "yes"
    breaks_at: str = ""
    fresh_yes: bool = False
    judged_inside: bool = False  # the last answer came while it was in the pool
    held: Pool | None = None  # by a human, until a human releases it
    run: str | None = None
    ahead: list[str] = field(default_factory=list)  # the steps that its run has not done
    touched: list[str] = field(default_factory=list)


class Bmcs:
    """A rack of BMCs in a thread, once for all sequences: a failure's evidence is read from them."""

    ports: ClassVar[dict[str, int]] = {}

    @classmethod
    def start(cls) -> dict[str, int]:
        if not cls.ports:
            up = threading.Event()
            threading.Thread(target=lambda: asyncio.run(cls._serve(up)), daemon=True).start()
            up.wait()
        return cls.ports

    @classmethod
    async def _serve(cls, up: threading.Event) -> None:
        user = BmcUser("admin", "pw")
        rack = await start_rack(
            [
                BmcSpec(chassis=LightChassis(name=name, serial=name), host="127.0.0.1", port=0, users=(user,))
                for name in NODES
            ]
        )
        cls.ports.update({bmc.name: bmc.port for bmc in rack})
        up.set()
        await asyncio.Event().wait()


def make_site(folder: Path) -> Settings:
    """Write a site; its store is made once and copied, because making it takes longer than a sequence."""
    site, state, programs = (folder / name for name in ("site", "state", "bin"))
    for made in (site, state, programs, folder / "busy"):
        made.mkdir(parents=True, mode=0o700)
    ports = Bmcs.start()
    (site / "site.yaml").write_text(
        'name: t\nmaas: {url: "http://127.0.0.1:1/MAAS", key: "file:key"}\nssh: {user: u, key: "file:ssh"}\n'
        'credentials: {bmc: {username: admin, password: "file:pw"}}\n'
    )
    rows = [
        f"      {name}: {{bmc: {{host: 127.0.0.1, port: {ports[name]}}}, serial: {name}, "
        f"address: 127.0.8.{number}, ssh_port: {number}}}\n"
        for number, name in enumerate(NODES, 1)
    ]
    (site / "racks.yaml").write_text(
        "racks:\n  r1:\n    profile: p\n    bmc: {credential: bmc, protocol: ipmi}\n    nodes:\n"
        + "".join(rows)
    )
    (site / "profiles.yaml").write_text(
        "profiles:\n  p: {vendor: V, model: M, os_image: custom/debian-12, limits: {gpu.count: 8}}\n"
    )
    for name, text in (("key", "a:b:c"), ("ssh", "-"), ("pw", "pw")):
        (state / name).touch(mode=0o600)
        (state / name).write_text(text)
    (programs / "ssh").write_text(SSH)
    (programs / "ssh").chmod(0o755)
    os.environ["BUSY"] = str(folder / "busy")
    return Settings.from_environment(
        {"MUSTER_SITE": str(site), "MUSTER_STATE": str(state), "MUSTER_WHO": "marta"}
    )


class Life(RuleBasedStateMachine):
    """Commands, faults and kills in any order; `advance` takes one node one step further in its run."""

    @initialize()
    def begin(self) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="life-"))
        self.path = os.environ["PATH"]
        made = make_site(self.folder)
        os.environ["PATH"] = f"{self.folder / 'bin'}:{self.path}"
        self.access = Access.open(made)
        self.truth = {name: Truth() for name in NODES}
        self.runs = 0
        self.going: dict[str, set[str]] = {}
        self.hands = flow.Hands(
            self.access,
            SiteMaas(self.access.maas_within),
            {
                "reachable": self._does(self._reachable),
                "enlisted": self._does(),
                "commissioned": self._does(self._changes),
                "released": self._does(self._changes),
                "deployed": self._does(self._changes, self._deployed),
                "configured": self._does(),
                "verified": self._does(self._verified),
                "pool": lambda job: admitted.reach(job, SiteMemory()),
            },
        )

    def teardown(self) -> None:
        if hasattr(self, "access"):
            self.access.store.close()
            os.environ["PATH"] = self.path
            shutil.rmtree(self.folder)

    # -- what stages do ----------------------------------------------------------------------

    def _does(
        self, *parts: Callable[[NodeJob, Truth], Awaitable[None]]
    ) -> Callable[[NodeJob], Awaitable[Reached]]:
        async def work(job: NodeJob) -> Reached:
            truth = self.truth[job.node.name]
            now = str(job.state.in_stage)
            for part in parts:
                await part(job, truth)
            if truth.breaks_at == now:
                raise NodeFailed(now, "bmc-busy", "broken")
            return Reached("done")

        return work

    async def _reachable(self, _: NodeJob, truth: Truth) -> None:
        if truth.wrong_machine:
            raise NodeFailed("reachable", "identity", "another serial")

    async def _changes(self, job: NodeJob, truth: Truth) -> None:
        """What wipes or cuts power looks at the lock, the serial and what runs first, as the stages do."""
        if truth.locked:
            raise NodeFailed("deployed", "locked", "locked in MAAS")
        if truth.wrong_machine:
            raise NodeFailed("deployed", "identity", "another serial")
        await refuse_in_use(job, "deployed")
        truth.fresh_yes = False
        truth.touched.append(job.run)

    async def _deployed(self, job: NodeJob, _: Truth) -> None:
        self.access.store.observe(job.node.name, run=job.run, deployed_at=datetime.now(UTC))

    async def _verified(self, job: NodeJob, truth: Truth) -> None:
        self._judge(job.node.name, job.run)
        if truth.gate != "yes":
            raise NodeFailed("verified", "bmc-busy", f"the gate says {truth.gate}")

    def _judge(self, node: str, run: str | None) -> None:
        truth = self.truth[node]
        told = ["not well"] if truth.gate != "yes" else []
        self.access.store.record_verdict(
            node, run=run, level="quick", answer=truth.gate, reasons=told, evidence=None
        )
        truth.fresh_yes = truth.gate == "yes"
        truth.judged_inside = self._pool(node) is Pool.RELIABLE

    # -- what operators do -------------------------------------------------------------------

    @rule(names=SOME, steps=STEPS)
    def bringup(self, names: set[str], steps: int) -> None:
        nodes = [self.access.node(name) for name in sorted(names)]
        plan = asyncio.run(plan_bringup(self.access, nodes, Options()))
        for name in plan.names:
            assert self.truth[name].held is None
            assert not self._busy(name)
        self._start(plan.names, "bringup", Options())
        self._advance(names, steps, killed=False)

    @rule(names=SOME, steps=STEPS)
    def reimage(self, names: set[str], steps: int) -> None:
        options = Options(reimage=True, reason="new start", who="marta")
        plan = plan_reimage(self.access, [self.access.node(name) for name in sorted(names)], options)
        asked = Asking(yes=True, typed=None, reason="new start")
        busy = {name for name in plan.names if self._busy(name)}
        try:
            asyncio.run(guards.guard(self.access, plan.nodes, action="reimage", asking=asked))
        except Refused:
            assert busy
            return
        assert not busy
        if self._start(plan.names, "reimage", options):
            for name in plan.names:
                # The operator said so: `runs.submit` takes them out of their pools first.
                if self._pool(name) is not None:
                    self.access.store.set_pool(name, None, by="marta", why="re-image")
                self.truth[name].held = None
                self.truth[name].fresh_yes = False
        self._advance(names, steps, killed=False)

    def _start(self, names: tuple[str, ...], kind: str, options: Options) -> bool:
        if not names:
            return False
        # A run holds all of its nodes until the last of them has ended.
        held = {name for members in self.going.values() for name in members}
        run = f"x-{self.runs}"
        self.runs += 1
        if self.access.store.claim_run(run, kind=kind, nodes=names, who="marta") is not None:
            assert held & set(names)
            return False
        assert not held & set(names)
        self.going[run] = set(names)
        for name in names:
            self._busy_file(name).unlink(missing_ok=True)  # what ran there is over; the guards allowed it
        for name in names:
            self.truth[name].run = run
            self.truth[name].ahead = [step.name for step in flow.way(options)]
        return True

    @rule(name=st.sampled_from(NODES), pool=st.sampled_from([Pool.QUARANTINE, Pool.REPAIR, Pool.RETIRED]))
    def hold(self, name: str, pool: Pool) -> None:
        self.access.store.set_pool(name, pool, by="marta", why="mine")
        self.truth[name].held = pool
        self.truth[name].fresh_yes = False

    @rule(name=st.sampled_from(NODES))
    def release(self, name: str) -> None:
        if self._pool(name) in (Pool.QUARANTINE, Pool.REPAIR, Pool.RETIRED):
            self.access.store.set_pool(name, None, by="marta", why="done")
            self.truth[name].held = None
            self.truth[name].fresh_yes = False

    @rule(name=st.sampled_from(NODES), by=st.sampled_from(["marta", "automation"]))
    def force(self, name: str, by: str) -> None:
        """Somebody tries to have a node admitted by hand, or automation to lift a hold."""
        try:
            self.access.store.set_pool(name, Pool.RELIABLE, by=by, why="please")
        except (NotAdmissible, HeldByHuman):
            return
        assert self.truth[name].fresh_yes
        if by != "automation":
            self.truth[name].held = None

    @rule(name=st.sampled_from(NODES))
    def verify(self, name: str) -> None:
        self._judge(name, None)
        if self.truth[name].gate == "no" and self._pool(name) in (Pool.RELIABLE, Pool.SPARE):
            asyncio.run(flow.quarantine(self.access, name, run=None, why="gate"))

    # -- what happens ------------------------------------------------------------------------

    @rule(names=SOME, steps=STEPS)
    def advance(self, names: set[str], steps: int) -> None:
        self._advance(names, steps, killed=False)

    @rule(names=SOME, steps=STEPS)
    def advance_after_a_kill(self, names: set[str], steps: int) -> None:
        self._advance(names, steps, killed=True)

    def _advance(self, names: set[str], steps: int, *, killed: bool) -> None:
        for name in sorted(names):
            for _ in range(steps):
                if self.truth[name].run is not None:
                    self._step(name, self.truth[name], killed=killed)

    def _step(self, name: str, truth: Truth, *, killed: bool) -> None:
        """Do what the engine's workflow of a node does; a killed step is begun once more."""
        assert truth.run is not None
        stop = flow.stop_reason(self.access, name, truth.run, Options())
        assert (stop is not None) == (truth.held is not None)
        if stop is not None:
            truth.ahead.clear()
        else:
            if killed:
                self.access.store.begin(name, flow._stage_of(truth.ahead[0]), run=truth.run)
            options = Options(who="marta", reimage="released" in truth.ahead)
            result = asyncio.run(flow.run_step(self.hands, truth.ahead.pop(0), name, truth.run, options))
            if not result.ok:
                truth.fresh_yes = False
                truth.ahead.clear()
        if not truth.ahead:
            self._leave(name)

    def _leave(self, name: str) -> None:
        run, self.truth[name].run = self.truth[name].run, None
        if run and all(other.run != run for other in self.truth.values()):
            self.access.store.end_run(run, RunState.DONE)
            del self.going[run]

    @rule(
        name=st.sampled_from(NODES),
        answer=st.sampled_from(["yes", "yes", "no", "unknown"]),
        stage=st.sampled_from(["", "", "commissioned", "deployed", "configured"]),
    )
    def falls_ill_or_well(self, name: str, answer: str, stage: str) -> None:
        self.truth[name].gate, self.truth[name].breaks_at = answer, stage

    @rule(name=st.sampled_from(NODES), locked=st.booleans(), wrong=st.booleans(), busy=st.booleans())
    def must_be_left_alone(self, name: str, locked: bool, wrong: bool, busy: bool) -> None:
        truth = self.truth[name]
        truth.locked, truth.wrong_machine = locked, wrong
        truth.touched.clear()
        self._busy_file(name).unlink(missing_ok=True)
        # Jobs are begun in the pool only, and stay when the node is moved out of it.
        if busy and self._pool(name) is Pool.RELIABLE and truth.run is None:
            self._busy_file(name).touch()

    @rule(name=st.sampled_from(NODES))
    def loses_power(self, name: str) -> None:
        self.access.store.observe(name, last_power_loss_at=datetime.now(UTC))
        self.truth[name].fresh_yes = False

    def _busy_file(self, name: str) -> Path:
        return self.folder / "busy" / str(NODES.index(name) + 1)

    def _busy(self, name: str) -> bool:
        return self._busy_file(name).exists()

    def _pool(self, name: str) -> Pool | None:
        return self.access.store.node(name).pool

    # -- what must never be ------------------------------------------------------------------

    @invariant()
    def nothing_is_reliable_without_a_fresh_yes(self) -> None:
        for name, truth in getattr(self, "truth", {}).items():
            state = self.access.store.node(name)
            if state.pool is Pool.RELIABLE:
                # What an answer of today makes of a node in the pool is for the breaker to say.
                stopped = self.access.store.breaker().tripped_at is not None
                assert truth.fresh_yes or truth.judged_inside or stopped, name
                assert state.stage is Stage.VERIFIED

    @invariant()
    def a_humans_hold_stands(self) -> None:
        for name, truth in getattr(self, "truth", {}).items():
            if truth.held is not None:
                state = self.access.store.node(name)
                assert (state.pool, state.pool_by) == (truth.held, "marta")

    @invariant()
    def what_must_not_be_touched_was_not(self) -> None:
        for name, truth in getattr(self, "truth", {}).items():
            if truth.locked or truth.wrong_machine or self._busy(name):
                assert truth.touched == [], name


Life.TestCase.settings = settings(
    max_examples=100,
    stateful_step_count=25,
    deadline=None,
    # A sequence has 25 steps and can be read as it is; to shrink one takes longer than all others together.
    phases=[Phase.explicit, Phase.reuse, Phase.generate],
    suppress_health_check=list(HealthCheck),
    print_blob=True,
)
TestLife = pytest.mark.timeout(900)(Life.TestCase)
