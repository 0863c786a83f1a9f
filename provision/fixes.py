"""The fix ladder's hands: evidence saved, one fix, the whole gate again, until a yes or a human looks."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path

from bmc.capability import PowerAction, PowerState
from bmc.drivers import connect
from bmc.errors import BmcError
from health.check import Level
from health.verdict import Verdict
from inventory.admission import ADMITTED
from inventory.errors import HeldByHuman, InventoryError
from inventory.model import Node, Pool
from inventory.records import AUTOMATION, RunState
from provision import evidence, fixing, flow, gate, guards, judging, planning, runs, ssh
from provision.access import Access
from provision.errors import NodeFailed, ProvisionError, SshFailed
from provision.fixing import Fix, Rung, Stop
from provision.gate_memory import REPAIRED, GateMemory
from provision.guards import Asking, Consent
from provision.stages.job import Options
from provision.stages.reachable import check_identity
from provision.waiting import Seen, until

FIX = "fix"  # the kind of event that is written before each fix
MEMORY = timedelta(days=30)
_AT_ONCE = 32
_COLD_S = 10.0  # without power, so that what is charged is empty
_RUN_S = 4 * 3600.0
_BOOT_ID = ["cat", "/proc/sys/kernel/random/boot_id"]
_DISTURBING = frozenset({Rung.GPU_RESET, Rung.REBOOT, Rung.POWER_CYCLE, Rung.REIMAGE})
# What the node logged before these is about a state that is gone.
_ACKNOWLEDGED = frozenset({Rung.GPU_RESET, Rung.POWER_CYCLE})


@dataclass(frozen=True, slots=True)
class Step:
    """One rung that was tried: on what, why, and what came of it."""

    rung: Rung
    parts: tuple[str, ...]
    why: str
    came: str


@dataclass(frozen=True, slots=True)
class Climbed:
    """How a ladder ended: the last verdict, the rungs, and why it stopped where it did without a yes."""

    node: str
    verdict: Verdict
    steps: tuple[Step, ...]
    stop: Stop | None
    evidence: Path


@dataclass
class Ladder:
    """The ladder of one node. `say` is called with each thing that is done."""

    access: Access
    node: Node
    level: Level
    consent: Consent
    highest: Rung
    say: Callable[[str], None]
    _memory: GateMemory = field(init=False)
    _folder: Path = field(init=False)
    _steps: list[Step] = field(default_factory=list)

    def __post_init__(self) -> None:
        if self.node.name not in self.consent.nodes:
            raise ValueError(f"nobody has agreed to fix {self.node.name}")
        self._memory = GateMemory(self.access)
        when = f"{datetime.now(UTC):%Y%m%dT%H%M%S.%fZ}"
        self._folder = self.access.settings.state / "fixes" / self.node.name / when
        self._folder.mkdir(parents=True)

    async def climb(self) -> Climbed:
        """Fix the node as far as `highest`, each rung once. Raises what the store raises."""
        verdict = await self._judge()
        before = _ladders_before(self.access, self.node.name, fixing.faults(verdict))
        while True:
            tried = {step.rung for step in self._steps}
            choice = fixing.choose(verdict, tried, before=before, highest=self.highest)
            if isinstance(choice, Fix) and choice.rung is not Rung.RERUN:
                choice = await self._out_of_the_pool(verdict) or choice
            if not isinstance(choice, Fix):
                break
            stop = await self._carry_out(choice, verdict)
            if stop is not None:
                choice = stop
                break
            verdict = await self._judge()
        if choice is not None and choice.repair:
            self._to_repair(choice)
        return Climbed(self.node.name, verdict, tuple(self._steps), choice, self._folder)

    async def _judge(self) -> Verdict:
        """Ask the whole gate; its evidence is kept before anything is done."""
        question = judging.question(self.access, self.node, self._memory)
        result = await gate.judge_node(question, self.level)
        path = self._folder / f"gate-{len(self._steps)}.json"
        judging.record(self._memory, self.node, self.level, result, path)
        return result.verdict

    async def _carry_out(self, fix: Fix, verdict: Verdict) -> Stop | None:
        """Do one fix, evidence first. What fails has been tried.

        A stop where the node has come into use meanwhile, or another machine answers in its place.
        """
        if fix.rung in _DISTURBING and self.consent.overridden != "in-use":
            refusal = await guards.in_use(self.access, self.node)
            if refusal is not None:
                return Stop(refusal.reason, "docs/runbooks/in-use.md")
        what = " ".join((str(fix.rung), *fix.parts))
        self.say(f"{self.node.name}: {what}: {fix.why}")
        data = {"rung": str(fix.rung), "ladder": self._folder.name, "faults": sorted(fixing.faults(verdict))}
        self._event(FIX, f"{what}: {fix.why}", data)
        if fix.rung is not Rung.RERUN:
            await evidence.save_bmc(self.access.bmc(self.node), self._folder)
        came, stop = "done", None
        try:
            await _ACTS[fix.rung](self, fix.parts)
            if fix.rung in _ACKNOWLEDGED:
                self._event(REPAIRED, f"repaired by {what}", {})
        except (ProvisionError, BmcError, InventoryError) as error:
            came = f"failed: {error}"
            self._event("fix.failed", f"{what} {came}", {})
            self.say(f"{self.node.name}: {what} {came}")
            if isinstance(error, NodeFailed) and error.code == "identity":
                stop = Stop(str(error), "docs/runbooks/identity.md")
        self._steps.append(Step(fix.rung, fix.parts, fix.why, came))
        return stop

    async def _out_of_the_pool(self, verdict: Verdict) -> Stop | None:
        """Quarantine the node before it is touched. A stop where the breaker keeps it in its pool."""
        if self.access.store.node(self.node.name).pool not in ADMITTED:
            return None
        await flow.quarantine(self.access, self.node.name, run=None, why=f"gate: {verdict.summary}")
        if self.access.store.node(self.node.name).pool in ADMITTED:
            why = "too many reliable nodes have left within an hour, so that it stays in its pool"
            return Stop(why, "docs/runbooks/breaker.md")
        return None

    def _to_repair(self, stop: Stop) -> None:
        serial = self.node.serial
        try:
            self.access.store.set_pool(
                self.node.name, Pool.REPAIR, by=AUTOMATION, why=stop.why, run=None, serial=serial
            )
        except HeldByHuman as held:
            self.say(str(held))

    async def rerun(self, _parts: tuple[str, ...]) -> None:
        """Do nothing: the gate is asked again."""

    async def restart_services(self, parts: tuple[str, ...]) -> None:
        """Restart units, as an operator would."""
        await self._root("systemctl", "reset-failed", *parts, must=False)
        await self._root("systemctl", "restart", *parts)

    async def reset_gpus(self, parts: tuple[str, ...]) -> None:
        """Reset some GPUs, or all."""
        named = ("-i", ",".join(parts)) if parts else ()
        await self._root("nvidia-smi", "--gpu-reset", *named)

    async def reboot(self, _parts: tuple[str, ...]) -> None:
        """Reboot from inside, and wait until the node has started again."""
        before = await self._boot_id()
        await self._root("systemctl", "reboot", must=False)
        await self._started(before.value)

    async def power_cycle(self, _parts: tuple[str, ...]) -> None:
        """Cut the power of the right machine until it is cold, and wait until it has started again."""
        before = await self._boot_id()
        pace = self.access.settings.pace
        async with connect(self.access.bmc(self.node)) as bmc:
            identity = await bmc.identity()
            check_identity(self.node.name, expected=self.node.serial, found=identity.serial)

            async def power_is(wanted: PowerState) -> Seen[bool]:
                found = await bmc.power_state()
                return Seen(True if found is wanted else None, f"power {found}")

            await bmc.set_power(PowerAction.OFF)
            self.access.store.observe(self.node.name, last_power_loss_at=datetime.now(UTC))
            await until(lambda: power_is(PowerState.OFF), waited_for="power off", deadline_s=60, pace=pace)
            await pace.sleep(_COLD_S)
            await bmc.set_power(PowerAction.ON)
            await until(lambda: power_is(PowerState.ON), waited_for="power on", deadline_s=60, pace=pace)
        await self._started(before.value)

    async def reimage(self, _parts: tuple[str, ...]) -> None:
        """Write the OS image again, in a run of its own, and wait for its end."""
        reason = self.consent.reason or "the fix ladder came to its last rung"
        plan = planning.plan_reimage(self.access, [self.node], Options(reason=reason, reimage=True))
        asking = Asking(yes=True, typed=None, override=self.consent.overridden, reason=reason)
        consent = guards.ask(self.access, plan.nodes, action="reimage", plan="", asking=asking)
        run = await asyncio.to_thread(runs.submit, self.access, plan, consent)
        self.say(f"{self.node.name}: re-imaged by {run}")

        async def look() -> Seen[str]:
            state = self.access.store.run(run).state
            return Seen(None if state is RunState.RUNNING else str(state), str(state))

        await until(look, waited_for=f"the end of {run}", deadline_s=_RUN_S, pace=self.access.settings.pace)

    async def _root(self, *words: str, must: bool = True) -> None:
        command = ["sudo", "-n", *words] if self.access.site.ssh.become else list(words)
        try:
            result = await ssh.run(self.access.ssh(self.node), command, timeout_s=120)
        except SshFailed:
            if must:
                raise
            return
        if must and result.status != 0:
            said = (result.stderr or result.stdout).decode("utf-8", "replace").strip().splitlines()
            reason = f"{words[0]} ended with {result.status}: {said[-1] if said else 'no message'}"
            raise SshFailed(self.node.name, reason, answered=True)

    async def _boot_id(self) -> Seen[str]:
        try:
            result = await ssh.run(self.access.ssh(self.node), _BOOT_ID, timeout_s=20)
        except SshFailed as error:
            return Seen(None, error.reason)
        return Seen(result.stdout.decode("ascii", "replace").strip() or None, "no boot id")

    async def _started(self, before: str | None) -> None:
        """Wait for another boot than `before`, until systemd has nothing more to start."""
        deadline = self.access.profile(self.node).deadlines.get("ssh", 900.0)

        async def look() -> Seen[str]:
            seen = await self._boot_id()
            same = seen.value is not None and seen.value == before
            return Seen(None, "still the boot before") if same else seen

        boot_id = await until(look, waited_for="SSH", deadline_s=deadline, pace=self.access.settings.pace)
        self.access.store.observe(self.node.name, boot_id=boot_id)
        await self._root("systemctl", "is-system-running", "--wait", must=False)

    def _event(self, kind: str, message: str, data: Mapping[str, object]) -> None:
        who = self.consent.who
        self.access.store.event(self.node.name, kind, actor=who, message=message, data=data)


Act = Callable[[Ladder, tuple[str, ...]], Awaitable[None]]
_ACTS: dict[Rung, Act] = {
    Rung.RERUN: Ladder.rerun,
    Rung.RESTART_SERVICE: Ladder.restart_services,
    Rung.GPU_RESET: Ladder.reset_gpus,
    Rung.REBOOT: Ladder.reboot,
    Rung.POWER_CYCLE: Ladder.power_cycle,
    Rung.REIMAGE: Ladder.reimage,
}


async def climb_all(ladders: Sequence[Ladder]) -> list[Climbed]:
    """Climb the ladders of several nodes side by side."""
    room = asyncio.Semaphore(_AT_ONCE)

    async def one(ladder: Ladder) -> Climbed:
        async with room:
            return await ladder.climb()

    return list(await asyncio.gather(*(one(ladder) for ladder in ladders)))


def _ladders_before(access: Access, node: str, faults: frozenset[str]) -> int:
    """Return how many ladders this node has had of late for one of these faults; re-runs do not count."""
    since = datetime.now(UTC) - MEMORY
    found = set()
    for event in access.store.events(node=node, kinds=[FIX], since=since, limit=1000):
        had = event.data.get("faults")
        if event.data.get("rung") != Rung.RERUN and isinstance(had, list) and faults & set(map(str, had)):
            found.add(event.data.get("ladder"))
    return len(found)
