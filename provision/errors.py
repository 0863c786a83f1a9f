"""What can go wrong while acting. Low layers know no commands: advice.py turns these into next steps."""

from __future__ import annotations


class ProvisionError(Exception):
    """Base of everything that provision raises on purpose."""


class Refused(ProvisionError):
    """A guard said no; nothing was changed. `hint` is what leads on, where the runbook is not enough."""

    def __init__(self, guard: str, node: str, reason: str, *, detail: str = "", hint: str = "") -> None:
        super().__init__(f"{node}: refused by guard {guard}: {reason}")
        self.guard = guard
        self.node = node
        self.reason = reason
        self.detail = detail
        self.hint = hint


class Declined(ProvisionError):
    """The operator did not say yes, or nobody was there to ask."""


class NodeFailed(ProvisionError):
    """A node could not reach a stage. `code` names a runbook; `evidence` is a folder or empty."""

    def __init__(self, stage: str, code: str, reason: str, *, why: str = "", evidence: str = "") -> None:
        super().__init__(f"{stage}: {reason}")
        self.stage = stage
        self.code = code
        self.reason = reason
        self.why = why
        self.evidence = evidence


class StageTimeout(ProvisionError):
    """A wait ended without the wanted state. `waited_for` names it, `seconds` is how long."""

    def __init__(self, waited_for: str, seconds: float, *, last: str = "") -> None:
        seen = f"; last seen: {last}" if last else ""
        super().__init__(f"waited {seconds:.0f} s for {waited_for}{seen}")
        self.waited_for = waited_for
        self.seconds = seconds
        self.last = last


class SshFailed(ProvisionError):
    """SSH to a node did not work: no answer, refused, or the login failed."""

    def __init__(self, node: str, reason: str, *, answered: bool) -> None:
        super().__init__(f"{node}: ssh: {reason}")
        self.node = node
        self.reason = reason
        self.answered = answered


class RunnerBusy(ProvisionError):
    """Another process holds the state folder's runner lock."""

    def __init__(self, holder: str) -> None:
        super().__init__(f"the runner lock is held by {holder}")
        self.holder = holder


class RunnerStartFailed(ProvisionError):
    """The background runner did not come up. `log` is where it wrote why."""

    def __init__(self, log: str, reason: str) -> None:
        super().__init__(f"the runner did not start: {reason}")
        self.log = log
        self.reason = reason


class UnknownRun(ProvisionError):
    """No run has this id."""

    def __init__(self, run: str, latest: str | None) -> None:
        super().__init__(f"run {run} is not known")
        self.run = run
        self.latest = latest


class NodesBusy(ProvisionError):
    """Some of the nodes asked for are in a run that has not ended."""

    def __init__(self, run: str, nodes: tuple[str, ...]) -> None:
        super().__init__(f"{len(nodes)} of the nodes are in run {run}, which has not ended")
        self.run = run
        self.nodes = nodes


class NotEnough(ProvisionError):
    """Fewer nodes can be had than are wanted. `why` says what keeps the others back."""

    def __init__(self, wanted: int, why: str, hint: str, *, what: str) -> None:
        super().__init__(f"pool: not enough {what} nodes, {wanted} are wanted")
        self.wanted = wanted
        self.why = why
        self.hint = hint


class NameTaken(ProvisionError):
    """An allocation of this name belongs to somebody else."""

    def __init__(self, name: str, who: str) -> None:
        super().__init__(f"--name: {name} belongs to {who}")
        self.name = name
        self.who = who


class UnknownAllocation(ProvisionError):
    """No nodes are allocated under this name."""

    def __init__(self, name: str, nearest: str | None) -> None:
        super().__init__(f"--name: no nodes are allocated to {name}")
        self.name = name
        self.nearest = nearest


class UnknownCard(ProvisionError):
    """No triage card has this id, or several begin so."""

    def __init__(self, card: str, nearest: str | None) -> None:
        super().__init__(f"--card: no one card is called {card or 'so'}")
        self.card = card
        self.nearest = nearest


class SlurmFailed(ProvisionError):
    """Slurm could not be asked which nodes are in use."""

    def __init__(self, reason: str) -> None:
        super().__init__(f"slurm: {reason}")
        self.reason = reason


class RelaunchFailed(ProvisionError):
    """The operator's command, run once the nodes were replaced, did not succeed."""

    def __init__(self, command: str, status: int) -> None:
        super().__init__(f"--run: {command} ended with {status}")
        self.command = command
        self.status = status


class PrepareFailed(ProvisionError):
    """The site's `prepare` command did not succeed."""

    def __init__(self, site: str, command: str, reason: str) -> None:
        super().__init__(f"site {site}: preparing it failed: {reason}")
        self.site = site
        self.command = command
        self.reason = reason


class BadRequest(ProvisionError):
    """The request makes no sense. `option` is the flag, `hint` what to do instead."""

    def __init__(self, option: str, what: str, hint: str) -> None:
        super().__init__(f"{option}: {what}")
        self.option = option
        self.what = what
        self.hint = hint


class StateUnusable(ProvisionError):
    """The state folder cannot be written: full, read-only, or not ours."""

    def __init__(self, path: str, reason: str) -> None:
        super().__init__(f"{path}: {reason}")
        self.path = path
        self.reason = reason
