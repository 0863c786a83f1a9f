"""What an operator reads when Muster refuses, fails or cannot: every error of the interface's samples.

Each case sets a scene, types one command line, and compares status, stdout and stderr with
`refusals/<case>.txt`. MUSTER_GOLDEN=write writes the files anew; read what changed before you commit it.

The samples and rules of the operators' interface, and the cases that hold them:
- refused by a guard, three lines, status 3: in-use, in-use-slurm, in-use-deaf, serves-others, blast-radius
- what never yields: override-identity; identity at a BMC: wrong-machine; --override: override-without-reason
- unknown node with the nearest name: unknown-node; unknown-group, unknown-rack, bad-node-set,
  nothing-selected
- a dry run with nodes left out: dry-run-left-out; nobody to ask: declined; a reason is required: no-reason
- Invoke's own flags: invoke-dry; a stage, a level, a transport that does not exist: unknown-stage,
  unknown-level, unknown-transport
- status 2, failures last and folded: run-failed; one line an event: run-failed; status 6: still-running
- two runs never share a node: nodes-busy; unknown run: unknown-run; status 4: maas-away, bmc-away
- status 5: site-file, secret-missing, not-shared; the breaker: breaker-open
"""

from __future__ import annotations

import asyncio
import os
import re
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from invoke.collection import Collection
from invoke.program import Program
from invoke.tasks import Task

from inventory.model import Pool, Stage
from inventory.records import RunState
from lab.bmc import BmcSpec, BmcUser, start_rack
from lab.bmc.light import LightChassis
from lab.maas import MaasConfig, StubPower, User, start_maas
from provision import flow, runner
from provision.access import Access
from provision.cli.namespace import collection
from provision.settings import Settings
from tests.unit.provision.making import admit

KEY = "a:b:c"
HERE = Path(__file__).parent / "refusals"
_CHANGING = (
    (re.compile(r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d(:\d\dZ|Z)"), "TIME"),
    (re.compile(r"\b([bi])-\d{4}-\d{6}(-\d+)?\b"), "RUN"),
    (re.compile(r"\b\d+(\.\d+)? (s|h)\b"), "AGE"),
    (re.compile(r"\b\d+[smhd]\b(?= |$)"), "AGE"),
    (re.compile(r"\b127\.0\.0\.1:\d+\b"), "MAAS"),
    (re.compile(r"\d+ MiB free"), "N MiB free"),
    (re.compile(r"bmc-\d+T\d+Z"), "bmc-TIME"),
)
SITE = """
name: t
maas: {url: "URL", key: "file:key"}
ssh: {user: ubuntu, key: "file:ssh"}
credentials: {bmc: {username: admin, password: "file:pw"}}
"""
RACKS = """
racks:
  r1:
    profile: p
    bmc: {credential: bmc, protocol: ipmi}
    nodes:
      "r1-n[01-32]": {bmc: "127.0.9.{n}", serial: "S{n}", address: "127.0.9.{n}", ssh_port: 22}
      r1-i01: {bmc: 127.0.9.99, serial: I1, roles: [kraken_origin]}
      r1-w01: {bmc: {host: 127.0.0.1, port: PORT}, serial: ELSEWHERE, address: 127.0.9.98}
  r2:
    profile: p
    bmc: {credential: bmc, protocol: ipmi}
    nodes:
      "r2-n[01-02]": {bmc: "127.0.8.{n}", serial: "T{n}", address: "127.0.8.{n}"}
"""
PROFILES = """
profiles:
  p: {vendor: V, model: M, os_image: custom/debian-12, limits: {gpu.count: 8}}
"""


class Services:
    """A BMC and a MAAS in a thread, once for all cases."""

    def __init__(self) -> None:
        self.port = 0
        self.maas = ""
        up = threading.Event()
        threading.Thread(target=lambda: asyncio.run(self._serve(up)), daemon=True).start()
        up.wait()

    async def _serve(self, up: threading.Event) -> None:
        chassis = LightChassis(name="w", serial="HERE")
        spec = BmcSpec(chassis=chassis, host="127.0.0.1", port=0, users=(BmcUser("admin", KEY),))
        rack = await start_rack([spec])
        maas = await start_maas(MaasConfig(users=(User(api_key=KEY),)), StubPower())
        self.port, self.maas = rack.bmc("w").port, maas.url
        up.set()
        await asyncio.Event().wait()


@pytest.fixture(scope="module")
def services() -> Services:
    return Services()


@dataclass
class Scene:
    """One case's site, and what it needs to get where the case begins."""

    access: Access
    programs: Path
    site: Path
    stack: ExitStack = field(default_factory=ExitStack)

    def answers(self, name: str, body: str) -> None:
        """Put a program of this name first on PATH."""
        path = self.programs / name
        path.write_text(f"#!/bin/sh\n{body}\n")
        path.chmod(0o755)

    def hold_runner(self) -> None:
        """Be the runner that takes up runs, and execute none."""
        self.stack.enter_context(runner.lock(self.access.settings.state))(True)


@pytest.fixture
def scene(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, services: Services) -> Iterator[Scene]:
    site, state, programs = (tmp_path / name for name in ("site", "state", "bin"))
    for folder in (site, state, programs):
        folder.mkdir(mode=0o700)
    racks = RACKS.replace("PORT", str(services.port))
    for name, text in (
        ("site", SITE.replace("URL", services.maas)),
        ("racks", racks),
        ("profiles", PROFILES),
    ):
        (site / f"{name}.yaml").write_text(text)
    for name in ("key", "ssh", "pw"):
        (state / name).touch(mode=0o600)
        (state / name).write_text(KEY)
    environment = {"MUSTER_SITE": str(site), "MUSTER_STATE": str(state), "MUSTER_WHO": "marta"}
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    monkeypatch.delenv("MUSTER_DATABASE_URL", raising=False)
    monkeypatch.setenv("PATH", f"{programs}:{os.environ['PATH']}")
    made = Scene(Access.open(Settings.from_environment(environment)), programs, site)
    yield made
    made.stack.close()
    made.access.store.close()


def nothing(_: Scene) -> None:
    """The site as it is."""


def busy(scene: Scene) -> None:
    admit(scene.access, "r1-n05")
    scene.answers("ssh", "echo '4711, python3'")


def busy_in_slurm(scene: Scene) -> None:
    path = scene.site / "site.yaml"
    path.write_text(path.read_text() + "slurm: true\n")
    admit(scene.access, "r1-n05")
    scene.answers("scontrol", "echo NodeName=r1-n05 State=ALLOCATED")
    scene.answers("squeue", "echo 'job 88123 (ana)'")


def deaf(scene: Scene) -> None:
    admit(scene.access, "r1-n05")
    scene.access.store.set_pool("r1-n05", Pool.QUARANTINE, by="automation", why="gate: no")
    scene.answers("ssh", "echo 'ssh: connect to host 127.0.9.5: No route to host' >&2; exit 255")


def idle_reliable(scene: Scene) -> None:
    admit(scene.access, *(f"r1-n{number:02}" for number in range(1, 33)), "r2-n01")
    scene.answers("ssh", "exit 0")


def left_out(scene: Scene) -> None:
    busy(scene)
    scene.access.store.set_pool("r1-n05", None, by="automation", why="gate: no")
    scene.access.store.set_pool("r1-n31", Pool.QUARANTINE, by="ana", why="PSU smell")


def retired(scene: Scene) -> None:
    scene.access.store.set_pool("r1-n31", Pool.RETIRED, by="ana", why="scrapped")


def maas_away(scene: Scene) -> None:
    path = scene.site / "site.yaml"
    path.write_text(re.sub(r'url: "[^"]*"', 'url: "http://127.0.0.1:1/MAAS"', path.read_text()))


def failed_run(scene: Scene) -> None:
    store = scene.access.store
    names = [f"r1-n{number:02}" for number in (1, 12, 19, 32)]
    store.claim_run("b-0821-140300", kind="bringup", nodes=names, who="marta", options={"until": "pool"})
    why = 'MAAS "Failed deployment": no DHCP lease in 20 min'
    for name in ("r1-n12", "r1-n19"):
        store.begin(name, Stage.DEPLOYED, run="b-0821-140300")
        store.fail(
            name, Stage.DEPLOYED, run="b-0821-140300", code="no-dhcp-lease", reason=why,
            next=f"invoke console.show --nodes {name}",
        )  # fmt: skip
    store.fail(
        "r1-n32", Stage.VERIFIED, run="b-0821-140300", code="gate-no", evidence="runs/b-0821-140300/r1-n32",
        reason="gpu.count: 7 of 8 GPUs; missing PCI 0000:9b:00.0 (slot GPU5)",
        next="invoke show --nodes r1-n32",
    )  # fmt: skip
    store.reach("r1-n01", Stage.VERIFIED, run="b-0821-140300")
    store.record_verdict(
        "r1-n01", run="b-0821-140300", level="quick", answer="yes", reasons=[], evidence=None
    )
    store.set_pool("r1-n01", Pool.RELIABLE, by="automation", why="verified", run="b-0821-140300")
    store.end_run("b-0821-140300", RunState.FAILED)


def runs_elsewhere(scene: Scene) -> None:
    scene.hold_runner()
    scene.access.store.claim_run("b-0821-150000", kind="bringup", nodes=["r1-n01"], who="ana")


def breaker_open(scene: Scene) -> None:
    admit(scene.access, *(f"r1-n{number:02}" for number in range(1, 7)))
    for name in ("r1-n01", "r1-n02", "r1-n03"):
        asyncio.run(flow.quarantine(scene.access, name, run=None, why="gate: no"))


def held_by_ana(scene: Scene) -> None:
    idle_reliable(scene)
    scene.access.store.allocate("train", ["r1-n05"], who="ana", why="pretraining")


def broken_racks(scene: Scene) -> None:
    path = scene.site / "racks.yaml"
    path.write_text(path.read_text().replace("serial: I1", "serail: I1"))


def no_key(scene: Scene) -> None:
    (scene.access.settings.state / "key").unlink()


@dataclass(frozen=True)
class Case:
    """A scene and a command line."""

    name: str
    scene: Callable[[Scene], None]
    words: tuple[str, ...]


def case(name: str, scene: Callable[[Scene], None], *words: str) -> Case:
    return Case(name, scene, words)


CASES = (
    case("in-use", busy, "reimage", "--nodes", "r1-n05", "--reason", "repaired, RMA 48211", "--yes"),
    case("in-use-slurm", busy_in_slurm, "reimage", "--nodes", "r1-n05", "--reason", "repaired", "--yes"),
    case("in-use-deaf", deaf, "power.cycle", "--nodes", "r1-n05", "--yes"),
    case("in-use-allocated", held_by_ana, "power.off", "--nodes", "r1-n05", "--yes"),
    case("serves-others", nothing, "power.off", "--nodes", "r1-i01", "--yes"),
    case("blast-radius", idle_reliable, "power.cycle", "--nodes", "r1-n[01-08]", "--yes"),
    case("wrong-machine", nothing, "power.cycle", "--nodes", "r1-w01", "--yes"),
    case("override-identity", nothing, "power.off", "--nodes", "r1-n01", "--override", "identity", "--yes"),
    case("override-without-reason", busy, "power.off", "--nodes", "r1-n05", "--override", "in-use"),
    case("declined", idle_reliable, "power.off", "--nodes", "r1-n01"),
    case("retired", retired, "reimage", "--nodes", "r1-n31", "--reason", "again", "--yes"),
    case("no-reason", nothing, "reimage", "--nodes", "r1-n01"),
    case("unknown-node", nothing, "power.cycle", "--nodes", "r1-n33"),
    case("unknown-group", nothing, "nodes", "--nodes", "@r9x"),
    case("unknown-rack", nothing, "bringup", "--rack", "r3", "--yes"),
    case("bad-node-set", nothing, "nodes", "--nodes", "r1-n[01-"),
    case("nothing-selected", nothing, "power.off", "--yes"),
    case("dry-run-left-out", left_out, "bringup", "--nodes", "r1-n[01-06,31]", "--dry-run"),
    case("invoke-dry", nothing, "bringup", "--nodes", "r1-n01", "--dry"),
    case("unknown-stage", nothing, "bringup", "--nodes", "r1-n01", "--until", "imaged"),
    case("unknown-transport", nothing, "bringup", "--nodes", "r1-n01", "--transport", "carrier"),
    case("unknown-level", nothing, "verify", "--nodes", "r1-n01", "--level", "deep"),
    case("bad-max-fail", nothing, "bringup", "--nodes", "r1-n01", "--max-fail", "some"),
    case("run-failed", failed_run, "watch", "--run", "b-0821-140300", "--exit-status"),
    case("still-running", runs_elsewhere, "bringup", "--nodes", "r1-n02", "--yes", "--timeout", "1s"),
    case("nodes-busy", runs_elsewhere, "bringup", "--nodes", "r1-n[01-02]", "--yes"),
    case("unknown-run", failed_run, "watch", "--run", "b-0821-140301"),
    case("cancel-nothing", nothing, "cancel"),
    case("maas-away", maas_away, "bringup", "--nodes", "r1-n01", "--yes"),
    case("bmc-away", nothing, "power.status", "--nodes", "r1-n[01-02]"),
    case("site-file", broken_racks, "nodes"),
    case("secret-missing", no_key, "bringup", "--nodes", "r1-n01", "--yes"),
    case("not-shared", nothing, "adopt", "--host", "alpha", "--yes"),
    case("breaker-open", breaker_open, "status"),
    case("not-enough", idle_reliable, "pool.allocate", "--count", "64"),
)


def tasks(namespace: Collection) -> Iterator[Task[object]]:
    yield from namespace.tasks.values()
    for branch in namespace.collections.values():
        yield from tasks(branch)


def typed(words: tuple[str, ...], capsys: pytest.CaptureFixture[str]) -> str:
    """Type a command line, and return it with all that an operator sees."""
    namespace = collection()
    helps = [(task, dict(task.help)) for task in tasks(namespace)]
    status = 0
    try:
        Program(namespace=namespace, name="invoke", binary="invoke").run(["invoke", *words])
    except SystemExit as end:
        status = int(end.code or 0)
    finally:
        for task, texts in helps:  # Invoke's parser takes them out as it reads them
            task.help = dict(texts)
    out, err = capsys.readouterr()
    line = " ".join(f"'{word}'" if " " in word or "[" in word else word for word in words)
    parts = [f"$ invoke {line}", f"status {status}", "-- stdout", out.rstrip(), "-- stderr", err.rstrip()]
    return "\n".join(part for part in parts if part) + "\n"


def normal(text: str, scene: Scene) -> str:
    text = text.replace(str(scene.access.settings.state), "STATE").replace(str(scene.site), "SITE")
    for pattern, word in _CHANGING:
        text = pattern.sub(word, text)
    return text


@pytest.mark.parametrize("one", CASES, ids=lambda one: one.name)
def test_an_operator_reads_what_is_wrong_why_and_what_next(
    one: Case, scene: Scene, capsys: pytest.CaptureFixture[str]
) -> None:
    one.scene(scene)
    capsys.readouterr()
    found = normal(typed(one.words, capsys), scene)
    path = HERE / f"{one.name}.txt"
    if os.environ.get("MUSTER_GOLDEN") == "write":
        path.write_text(found)
    assert found == path.read_text(encoding="utf-8")


def test_every_file_belongs_to_a_case() -> None:
    assert {path.stem for path in HERE.glob("*.txt")} == {one.name for one in CASES}
