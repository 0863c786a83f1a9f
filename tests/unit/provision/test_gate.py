"""One node before the gate: what comes back, and what it was judged with."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from health.check import Level
from health.evidence import Context, Evidence
from health.verdict import Answer
from inventory.model import Profile
from provision.gate import Question, judge_node
from provision.ssh import SshTarget

SSH = """#!/bin/sh
for last; do :; done
exec /bin/sh -c "$last"
"""
PROFILE = Profile("light", "V", "M", checks=("host.os",), limits={"os.releases": ["debian 12", "debian 13"]})


def target(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, ssh: str) -> SshTarget:
    """A node whose SSH is the given program."""
    (tmp_path / "ssh").write_text(ssh)
    (tmp_path / "ssh").chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    return SshTarget("n1", "127.0.0.9", 22, "u", tmp_path / "key", tmp_path / "known")


async def test_evidence_comes_back_with_what_it_was_judged_with(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    node = target(tmp_path, monkeypatch, SSH)
    asked: list[float] = []

    def knowing(found: Evidence, at: float) -> Context:
        asked.append(at)
        return Context(collected_at=at, medians={"boot": found.began.wall_clock})

    result = await judge_node(Question(node, PROFILE, knowing, become=False), Level.QUICK)
    assert result.found is not None
    assert result.found.context.medians == {"boot": result.found.began.wall_clock}
    assert result.found.context.collected_at == asked[0] == result.collected_at.timestamp()
    unasked = await judge_node(Question(node, PROFILE, become=False), Level.QUICK)
    assert unasked.found is not None
    assert unasked.found.context.collected_at == unasked.collected_at.timestamp()


async def test_a_node_that_breaks_off_in_the_middle_is_unknown(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    node = target(
        tmp_path, monkeypatch, SSH.replace('exec /bin/sh -c "$last"', '/bin/sh -c "$last" | head -c 900')
    )
    result = await judge_node(Question(node, PROFILE, become=False), Level.QUICK)
    assert (result.verdict.answer, result.found) == (Answer.UNKNOWN, None)
    assert result.lost.startswith("no evidence: ")
