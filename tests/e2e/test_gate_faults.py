"""Each fault that a check can see, put into a running node from outside, gets its answer from the gate.

One lab, three rounds, one fault a node; a node without a fault beside them must still get its yes.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass

import pytest

from tests.e2e.conftest import Rack

pytestmark = [pytest.mark.lab, pytest.mark.timeout(400)]

HEALTHY = "lab-n10"


@dataclass(frozen=True)
class Expected:
    """What the gate must say of a fault: its answer, a check that names it, and what to do next."""

    answer: str
    check: str
    action: str


# What of a round can be taken away without a trace comes first; the kernel's log forgets nothing.
ROUNDS: tuple[dict[str, Expected], ...] = (
    {
        "gpu-throttle": Expected("no", "gpu.throttle", "investigate"),
        "gpu-pcie-width": Expected("no", "gpu.pcie", "reseat"),
        "nvlink-inactive": Expected("no", "nvlink.links", "gpu_reset"),
        "ib-port-down": Expected("no", "ib.ports", "reseat"),
        "dimm-missing": Expected("no", "host.dimms", "reseat"),
        "mount-missing": Expected("no", "host.mounts", "reimage"),
        "swap-on": Expected("no", "host.swap", "reimage"),
        "docker-dead": Expected("no", "container.runtime", "restart_service"),
        "docker-no-nvidia": Expected("no", "container.runtime", "reimage"),
    },
    {
        "driver-version": Expected("no", "driver.version", "reimage"),
        "driver-mismatch": Expected("no", "gpu.count", "reboot"),
        "fabric-manager-stopped": Expected("no", "fabric_manager.service", "restart_service"),
        "fabric-manager-version": Expected("no", "fabric_manager.service", "reimage"),
        "smi-cut": Expected("unknown", "gpu.count", "investigate"),
        "service-failed": Expected("no", "host.services", "restart_service"),
        "disk-full": Expected("no", "host.disk_space", "reimage"),
        "kernel-tainted": Expected("no", "kernel.taint", "reboot"),
        "stuck-processes": Expected("no", "host.processes", "reboot"),
    },
    {
        "clock-back": Expected("no", "host.time", "restart_service"),
        "xid": Expected("no", "gpu.xid", "gpu_reset"),
        "sxid": Expected("no", "nvswitch.sxid", "reseat"),
        "gpu-ecc": Expected("no", "gpu.ecc", "gpu_reset"),
        "gpu-remap-pending": Expected("no", "gpu.remap", "gpu_reset"),
        "gpu-remap-failed": Expected("no", "gpu.remap", "vendor_ticket"),
        "gpu-lost": Expected("no", "gpu.count", "power_cycle"),
        "gpu-missing": Expected("no", "gpu.count", "power_cycle"),
        "smi-hangs": Expected("unknown", "gpu.count", "investigate"),
    },
)


def test_each_fault_is_named_with_what_to_do_and_the_healthy_still_pass(
    untouched: Rack, tell: Callable[[list[str]], None]
) -> None:
    done = untouched.invoke("bringup", "--nodes", "lab-n[01-10]", "--until", "deployed", "--yes")
    assert done.status == 0, done.err
    rows, wrong = [], []
    for faults in ROUNDS:
        struck = {f"lab-n{place:02}": fault for place, fault in enumerate(faults, start=1)}
        for node, fault in struck.items():
            untouched.lab("fault", "--nodes", node, "--fault", fault)
        said = verdicts(untouched)
        for node, fault in struck.items():
            rows.append(row(fault, faults[fault], said[node]))
            if not agrees(faults[fault], said[node]):
                wrong.append(f"{fault}: {said[node]['summary']}")
        assert said[HEALTHY]["answer"] == "yes", said[HEALTHY]["summary"]
        untouched.lab("fault", "--nodes", "lab-n[01-10]", "--clear")
    tell(rows)
    assert not wrong, "\n".join(wrong)
    assert len(rows) == len(set(rows)) == 27


def verdicts(rack: Rack) -> dict[str, dict[str, object]]:
    done = rack.invoke("verify", "--nodes", "lab-n[01-10]", "--level", "quick", "--output", "json")
    assert done.status == 2, done.err
    return {verdict["node"]: verdict for verdict in json.loads(done.out)["verdicts"]}


def agrees(expected: Expected, verdict: dict[str, object]) -> bool:
    return verdict["answer"] == expected.answer and reason(expected, verdict) is not None


def reason(expected: Expected, verdict: dict[str, object]) -> dict[str, str] | None:
    reasons = verdict["reasons"]
    assert isinstance(reasons, list)
    for one in reasons:
        if (one["check"], one["action"]) == (expected.check, expected.action):
            return dict(one)
    return None


def row(fault: str, expected: Expected, verdict: dict[str, object]) -> str:
    found = reason(expected, verdict)
    told = (
        f"{found['check']}: {found['message'][:72]} ({found['identity'][:40]})"
        if found
        else verdict["summary"]
    )
    return f"{fault:<24} {verdict['answer']:<8} {expected.action:<16} {told}"
