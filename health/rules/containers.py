"""What the container daemon says."""

from __future__ import annotations

from health.outcome import Action, Finding
from health.readers.containers import DockerInfo


def judge_docker(info: DockerInfo, *, runtime: str = "nvidia") -> list[Finding]:
    """Judge the daemon: it answers, and it has the runtime that gives containers their GPUs."""
    findings = [Finding("service", "docker", error[:120], Action.RESTART_SERVICE) for error in info.errors]
    if not findings and info.runtimes is not None and runtime not in info.runtimes:
        has = ", ".join(info.runtimes)
        message = f"docker has no {runtime} runtime (it has {has})"
        findings.append(Finding("service", "docker", message, Action.REIMAGE))
    return findings
