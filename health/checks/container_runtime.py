"""Does the container daemon answer, with the runtime that gives containers their GPUs?"""

from __future__ import annotations

from health import limits
from health.check import Check, Collect, Level
from health.checks.sources import whole
from health.errors import Unreadable
from health.evidence import Evidence
from health.outcome import Outcome, conclude
from health.readers.containers import read_docker
from health.rules.containers import judge_docker
from inventory.model import Profile

ID = "container.runtime"
DOCKER = Collect("container.docker", argv=("docker", "info", "--format", "{{json .}}"), needs_root=True)


def judge(evidence: Evidence, profile: Profile) -> Outcome:
    """Ask docker for its runtimes; `container.runtime` must be among them (nvidia where not stated)."""
    wanted = (limits.optional_words(profile, "container.runtime") or ("nvidia",))[0]
    info = read_docker(whole(evidence, DOCKER.id).text)
    if info.runtimes is None and not info.errors:
        raise Unreadable("docker info", "it lists no runtimes")
    return conclude(ID, judge_docker(info, runtime=wanted), f"docker {info.version} with {wanted}")


CHECK = Check(id=ID, level=Level.QUICK, collects=(DOCKER,), judge=judge)
