"""Programs that put a node under load, and what their results are compared with."""

from __future__ import annotations

import importlib.util
import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from benchmarks.recorded_nodes import RecordedNode, load
from health.catalogue import check, plan, required_checks
from health.check import Level
from health.errors import Unreadable
from health.evidence import Context
from health.outcome import Outcome, Status
from health.readers.speed import read_products, read_stragglers
from health.verdict import verdict

ACTIVE = Path(__file__).parents[3] / "health" / "active"
NODE = load("xe9680-h100")
LOADS = (
    "disk.speed",
    "gpu.copy",
    "gpu.gemm",
    "host.memory_speed",
    "ib.loopback",
    "nccl.allreduce",
)


def run(*argv: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, *argv], capture_output=True, text=True, check=False, timeout=15, env={"PATH": ""}
    )


def test_products_of_the_cpu_are_right_and_timed() -> None:
    done = run(str(ACTIVE / "gemm.py"), "plain", "0.05", "16")
    assert done.returncode == 0, done.stderr
    products = read_products(done.stdout)
    assert {(one.gpu, one.kind) for one in products} == {(0, "fp16"), (0, "fp32"), (1, "fp16"), (1, "fp32")}
    assert all(one.wrong == 0 and one.rounds >= 2 and one.tflops > 0 for one in products)


def test_without_a_library_there_is_no_result() -> None:
    done = run(str(ACTIVE / "gemm.py"), "gpu", "0.05")
    assert done.returncode == 3
    assert "no GPU that torch or cupy can use" in done.stderr
    with pytest.raises(Unreadable):
        read_products(done.stdout)


@pytest.fixture
def gemm() -> ModuleType:
    spec = importlib.util.spec_from_file_location("gemm", ACTIVE / "gemm.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("kind", ["fp16", "fp32"])
def test_one_wrong_number_in_a_product_is_seen(gemm: ModuleType, kind: str) -> None:
    gpu = gemm.Plain(0)
    left, right = gpu.operand(12, 15, kind, 1), gpu.operand(12, 15, kind, 2)
    product = gpu.multiply(left, right)
    assert gpu.wrong(left, right, product, 3) == 0
    for row in range(12):
        for column in (0, 5, 11):
            product[row][column] += 1
            assert gpu.wrong(left, right, product, 3) == 1
            product[row][column] -= 1


def test_a_gpu_that_fails_is_told_as_its_result(gemm: ModuleType, capsys: Any, monkeypatch: Any) -> None:
    class Broken(gemm.Plain):  # type: ignore[misc,name-defined]
        def operand(self, *_: object) -> object:
            if self.index:
                raise RuntimeError("CUDA error: an illegal memory access was encountered")
            return super().operand(*_)

    monkeypatch.setattr(gemm, "load", lambda _: Broken)
    assert gemm.main(["plain", "0.01", "8"]) == 0
    with pytest.raises(Unreadable, match=r"GPU 1: .*illegal memory access"):
        read_products(capsys.readouterr().out)


def test_each_cpu_is_timed() -> None:
    done = run(str(ACTIVE / "stragglers.py"), "2", "2000")
    assert done.returncode == 0, done.stderr
    seconds = read_stragglers(done.stdout)
    assert len(seconds) == json.loads(done.stdout)["cpus"]
    assert all(value > 0 for value in seconds.values())


def judged(node: RecordedNode, id: str, medians: dict[str, float]) -> Outcome:
    evidence = replace(node.evidence(), context=Context(medians=medians))
    return check(id).judge(evidence, node.profile)


@pytest.mark.parametrize("id", LOADS)
def test_what_is_measured_is_also_compared_with_the_fleet(id: str) -> None:
    usual = judged(NODE, id, {})
    assert usual.status is Status.PASS
    assert usual.metrics
    for metric, value in usual.metrics.items():
        assert judged(NODE, id, {metric: value / 0.951}).status is Status.PASS
        slow = judged(NODE, id, {metric: value / 0.949})
        assert slow.status is Status.FAIL
        assert "under its like" in slow.summary


def test_metrics_are_in_the_verdict() -> None:
    document = NODE.verdict(level=Level.FULL).to_json()
    outcomes: Any = document["outcomes"]
    assert {row["check"] for row in outcomes if row["metrics"]} >= set(LOADS)


def test_loads_run_alone_and_only_in_a_full_gate() -> None:
    quick = {item.id for item in plan(NODE.profile, Level.QUICK).items}
    added = [item for item in plan(NODE.profile, Level.FULL).items if item.id not in quick]
    assert added
    assert all(item.alone for item in added)
    assert {row.id for row in required_checks(NODE.profile, Level.FULL)} >= set(LOADS)


def test_a_gate_that_asks_for_more_than_was_collected_is_unknown() -> None:
    """Evidence of a quick gate does not answer a full one."""
    evidence = NODE.evidence()
    quick = {item.id for item in plan(NODE.profile, Level.QUICK).items}
    short = replace(evidence, items={id: item for id, item in evidence.items.items() if id in quick})
    asked = verdict(short, NODE.profile, Level.FULL, collected_at=NODE.collected_at)
    assert asked.answer == "unknown"
    assert verdict(short, NODE.profile, Level.QUICK, collected_at=NODE.collected_at).answer == "yes"
