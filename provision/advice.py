"""What to do next: maps every error class and failure code to exit status, code and command.

Low layers know no commands; this is the only table that does. A test walks every leaf error class
and every code and fails where one has no row or no runbook.
"""

from __future__ import annotations

from dataclasses import dataclass

from bmc import errors as bmc
from health import errors as health
from inventory import errors as inventory
from provision import errors as provision
from provision.images import errors as images
from provision.maas import errors as maas
from provision.mirror import errors as mirror
from provision.ticket import errors as ticket

EXIT_OK = 0
EXIT_BUG = 1
EXIT_NODES_FAILED = 2
EXIT_REFUSED = 3
EXIT_NOT_ANSWERING = 4
EXIT_BAD_REQUEST = 5
EXIT_STILL_RUNNING = 6
EXIT_INTERRUPTED = 130


@dataclass(frozen=True, slots=True)
class Advice:
    """`code` names docs/runbooks/<code>.md; `next` is a command, `{node}` filled in."""

    exit: int
    code: str
    next: str


_SHOW = "invoke show --nodes {node}"
_CONSOLE = "invoke console.show --nodes {node}"
_AGAIN = "invoke bringup --nodes {node} --yes"

_CLASSES: tuple[tuple[type[Exception], Advice], ...] = (
    # what the operator asked
    (provision.BadRequest, Advice(EXIT_BAD_REQUEST, "bad-request", "{hint}")),
    (provision.UnknownRun, Advice(EXIT_BAD_REQUEST, "unknown-run", "invoke runs")),
    (
        inventory.SiteFileError,
        Advice(EXIT_BAD_REQUEST, "site-file", "correct the file, then: invoke inventory.check"),
    ),
    (
        inventory.NodeSetSyntax,
        Advice(EXIT_BAD_REQUEST, "node-set", "invoke nodes; node sets look like 'r1-n[01-04]' or '@r1'"),
    ),
    (inventory.UnknownNode, Advice(EXIT_BAD_REQUEST, "unknown-node", "invoke nodes")),
    (inventory.UnknownGroup, Advice(EXIT_BAD_REQUEST, "unknown-node", "invoke nodes")),
    (inventory.UnknownRack, Advice(EXIT_BAD_REQUEST, "unknown-node", "invoke status")),
    (
        inventory.EmptySelection,
        Advice(EXIT_BAD_REQUEST, "empty-selection", "name nodes with --nodes, --rack or --pool"),
    ),
    (inventory.SecretMissing, Advice(EXIT_BAD_REQUEST, "secret-missing", "docs/runbooks/secret-missing.md")),
    (inventory.UnknownRun, Advice(EXIT_BAD_REQUEST, "unknown-run", "invoke runs")),
    (provision.UnknownAllocation, Advice(EXIT_BAD_REQUEST, "unknown-allocation", "invoke pool.status")),
    (provision.UnknownCard, Advice(EXIT_BAD_REQUEST, "unknown-card", "invoke triage.list")),
    (health.HealthError, Advice(EXIT_NOT_ANSWERING, "health-data", "docs/runbooks/health-data.md")),
    (ticket.SecretInTicket, Advice(EXIT_BAD_REQUEST, "ticket-secret", "docs/runbooks/ticket-secret.md")),
    (ticket.TicketTooLarge, Advice(EXIT_BAD_REQUEST, "ticket-size", "docs/runbooks/ticket-size.md")),
    # what was refused
    (provision.Refused, Advice(EXIT_REFUSED, "refused", "docs/runbooks/{guard}.md")),
    (provision.Declined, Advice(EXIT_REFUSED, "declined", "run it again and confirm, or say --yes")),
    (provision.NodesBusy, Advice(EXIT_REFUSED, "nodes-busy", "invoke watch --run {run}")),
    (provision.RunnerBusy, Advice(EXIT_REFUSED, "runner-busy", "invoke runs")),
    (inventory.HeldByHuman, Advice(EXIT_REFUSED, "held", "invoke release --nodes {node} --reason '...'")),
    (inventory.NotAdmissible, Advice(EXIT_REFUSED, "not-admissible", "invoke verify --nodes {node}")),
    (inventory.NotFree, Advice(EXIT_REFUSED, "not-free", "invoke pool.status")),
    (provision.NotEnough, Advice(EXIT_REFUSED, "not-enough", "{hint}")),
    (provision.NameTaken, Advice(EXIT_REFUSED, "name-taken", "take another name; invoke pool.status")),
    (inventory.BreakerOpen, Advice(EXIT_REFUSED, "breaker", "docs/runbooks/breaker.md")),
    # what does not answer
    (provision.RunnerStartFailed, Advice(EXIT_NOT_ANSWERING, "runner-start", "read {log}")),
    (provision.PrepareFailed, Advice(EXIT_NOT_ANSWERING, "prepare-failed", "run it by hand: {command}")),
    (
        provision.StateUnusable,
        Advice(EXIT_NOT_ANSWERING, "state-unusable", "make room or mount it, then run this again"),
    ),
    (
        inventory.StoreBusy,
        Advice(EXIT_NOT_ANSWERING, "store-busy", "run it again; invoke doctor says who holds it"),
    ),
    (
        inventory.StoreFull,
        Advice(EXIT_NOT_ANSWERING, "state-unusable", "make room on the disk, then run this again"),
    ),
    (inventory.StoreBroken, Advice(EXIT_NOT_ANSWERING, "store-broken", "docs/runbooks/store-broken.md")),
    (
        inventory.StoreUnreachable,
        Advice(EXIT_NOT_ANSWERING, "store-unreachable", "check the database server"),
    ),
    (
        provision.SlurmFailed,
        Advice(EXIT_NOT_ANSWERING, "slurm-unanswered", "check sinfo here, then run this again"),
    ),
    (provision.SshFailed, Advice(EXIT_NOT_ANSWERING, "ssh-dead", _CONSOLE)),
    (
        maas.MaasUnreachable,
        Advice(EXIT_NOT_ANSWERING, "maas-unreachable", "check that MAAS runs, then run this again"),
    ),
    (maas.MaasUncertain, Advice(EXIT_NOT_ANSWERING, "maas-uncertain", _SHOW)),
    (
        maas.MaasBadAnswer,
        Advice(EXIT_NOT_ANSWERING, "maas-unreachable", "check the url in site.yaml and what answers there"),
    ),
    (
        maas.MaasUnavailable,
        Advice(EXIT_NOT_ANSWERING, "maas-unreachable", "MAAS is overloaded: wait, then run this again"),
    ),
    (maas.MaasNoRack, Advice(EXIT_NOT_ANSWERING, "maas-no-rack", "check the rack controller in MAAS")),
    (
        maas.MaasAuthRejected,
        Advice(EXIT_NOT_ANSWERING, "maas-key", "check the MAAS key that site.yaml names"),
    ),
    (maas.MaasBadKey, Advice(EXIT_BAD_REQUEST, "maas-key", "check the MAAS key that site.yaml names")),
    (
        maas.MaasClockSkew,
        Advice(EXIT_NOT_ANSWERING, "maas-clock", "set this host's clock, then run this again"),
    ),
    (maas.MaasForbidden, Advice(EXIT_REFUSED, "maas-key", "use a key of a MAAS administrator")),
    (maas.MaasLocked, Advice(EXIT_REFUSED, "locked", "docs/runbooks/locked.md")),
    (maas.MaasRejected, Advice(EXIT_NODES_FAILED, "maas-rejected", _SHOW)),
    (maas.MaasNotFound, Advice(EXIT_NODES_FAILED, "maas-mismatch", _SHOW)),
    (maas.MaasConflict, Advice(EXIT_NODES_FAILED, "maas-state", _SHOW)),
    (
        provision.RelaunchFailed,
        Advice(EXIT_NODES_FAILED, "relaunch-failed", "run it by hand: {command}"),
    ),
    # the file mirror and the image registry
    (mirror.MirrorUnreachable, Advice(EXIT_NOT_ANSWERING, "mirror-unreachable", "curl {url}/healthz")),
    (
        mirror.MirrorBadAnswer,
        Advice(
            EXIT_NOT_ANSWERING, "mirror-unreachable", "check mirror.url in site.yaml and what answers there"
        ),
    ),
    (
        mirror.MirrorAuthRejected,
        Advice(EXIT_BAD_REQUEST, "mirror-token", "check the token that mirror.token in site.yaml names"),
    ),
    (mirror.MirrorFull, Advice(EXIT_REFUSED, "mirror-full", "invoke mirror.gc --dry-run")),
    (mirror.MirrorRefused, Advice(EXIT_REFUSED, "mirror-refused", "{hint}")),
    (mirror.DigestMismatch, Advice(EXIT_NODES_FAILED, "mirror-digest", "docs/runbooks/mirror-digest.md")),
    (mirror.UnknownFile, Advice(EXIT_BAD_REQUEST, "mirror-unknown-file", "invoke mirror.list")),
    (mirror.SourceFailed, Advice(EXIT_NOT_ANSWERING, "mirror-source", "curl -I {url}")),
    (
        images.RegistryUnreachable,
        Advice(EXIT_NOT_ANSWERING, "registry-unreachable", "check registry.url in site.yaml: curl {url}/v2/"),
    ),
    (
        images.RegistryRejected,
        Advice(
            EXIT_BAD_REQUEST, "registry-auth", "check the user and password that registry in site.yaml names"
        ),
    ),
    (images.UnknownImage, Advice(EXIT_BAD_REQUEST, "unknown-image", "invoke images.push --help")),
    (images.PushFailed, Advice(EXIT_NODES_FAILED, "image-push", "docs/runbooks/image-push.md")),
    (images.PullFailed, Advice(EXIT_NODES_FAILED, "image-pull", "docs/runbooks/image-pull.md")),
    # one BMC
    (bmc.Unreachable, Advice(EXIT_NODES_FAILED, "bmc-unreachable", "docs/runbooks/bmc-unreachable.md")),
    (bmc.AuthRejected, Advice(EXIT_NODES_FAILED, "bmc-auth", "docs/runbooks/bmc-auth.md")),
    (bmc.PrivilegeTooLow, Advice(EXIT_NODES_FAILED, "bmc-auth", "docs/runbooks/bmc-auth.md")),
    (bmc.WrongSuite, Advice(EXIT_NODES_FAILED, "bmc-suite", "docs/runbooks/bmc-suite.md")),
    (bmc.Busy, Advice(EXIT_NODES_FAILED, "bmc-busy", "docs/runbooks/bmc-busy.md")),
    (bmc.Unsupported, Advice(EXIT_NODES_FAILED, "bmc-unsupported", "docs/runbooks/bmc-unsupported.md")),
    (
        bmc.RecordingFailed,
        Advice(EXIT_NOT_ANSWERING, "state-unusable", "make room on the disk, then run this again"),
    ),
    (
        bmc.CertificateRefused,
        Advice(EXIT_NODES_FAILED, "bmc-certificate", "docs/runbooks/bmc-certificate.md"),
    ),
    (bmc.PowerNotReached, Advice(EXIT_NODES_FAILED, "bmc-power", "docs/runbooks/bmc-power.md")),
    (bmc.BmcError, Advice(EXIT_NODES_FAILED, "bmc-bad-answer", "invoke bmc.reset --nodes {node}")),
    # one stage of one node
    (provision.StageTimeout, Advice(EXIT_NODES_FAILED, "stage-timeout", _SHOW)),
    (provision.NodeFailed, Advice(EXIT_NODES_FAILED, "stage-failed", _SHOW)),
)

# Why a refusal or failure happens, where the error itself carries no cause.
_WHY = {
    "bad-request": "the command was not started",
    "bmc-auth": "the BMC does not take the credential that the site files name",
    "bmc-unreachable": "nothing answers at this address on the management network",
    "declined": "what wipes, cuts power or changes a pool needs a yes",
    "empty-selection": "an empty selection never means all",
    "held": "automation lifts only what automation placed",
    "maas-unreachable": "nothing was changed",
    "mirror-full": "the mirror keeps a reserve; nothing was written",
    "mirror-token": "reading is open, writing needs a token or a client certificate",
    "mirror-unknown-file": "no name and no digest of the mirror is this",
    "mirror-unreachable": "what has arrived is kept; the same command goes on there",
    "name-taken": "a name gives the same nodes each time, to who took them",
    "nodes-busy": "two runs never share a node",
    "refused": "nothing was changed",
    "runner-busy": "one process executes the runs of a state folder",
    "secret-missing": "the site files hold references; the secret is read at the moment of use",
    "state-unusable": "without its state nothing is begun; what was recorded before is kept",
    "registry-auth": "it answered 401 or 403",
    "registry-unreachable": "nodes keep the container images that they have",
    "relaunch-failed": "the nodes are replaced and the hostfile is written",
    "slurm-unanswered": "what cannot be asked counts as in use",
    "health-data": "what the gate keeps for itself cannot be read, so it is not believed",
    "unknown-card": "a card is named by its id, or by enough of its beginning",
    "unknown-allocation": "it was never made, or all its nodes were returned",
    "ticket-secret": "a ticket leaves the house; nothing of it was left behind",
    "ticket-size": "what is left is small and cannot be cut; nothing of it was left behind",
    "unknown-image": "no such name, tag or digest was pushed",
    "unknown-run": "no run of this state folder has this id",
}

# A failure's code decides the next command where the error class does not.
_BY_CODE = {
    "alive": "docs/runbooks/alive.md",
    "ansible-missing": "install Ansible in this environment, then: invoke bringup --nodes {node}",
    "bug": "send us runner.log from the state folder, then: invoke bringup --nodes {node}",
    "commissioned-failed": _CONSOLE,
    "configured-timeout": _SHOW,
    "commissioned-timeout": _CONSOLE,
    "deployed-failed": _CONSOLE,
    "deployed-timeout": _CONSOLE,
    "gate-lost": _CONSOLE,
    "gate-no": _SHOW,
    "gate-unknown": _SHOW,
    "identity": "docs/runbooks/identity.md",
    "in-use": "docs/runbooks/in-use.md",
    "locked": "docs/runbooks/locked.md",
    "maas-mismatch": "docs/runbooks/maas-mismatch.md",
    "max-fail": "invoke show --nodes {node}",
    "maas-state": "docs/runbooks/maas-state.md",
    "not-healthy": "invoke verify --nodes {node}",
    "not-reliable": "docs/runbooks/not-reliable.md",
    "not-ours": "invoke reimage --nodes {node} --reason '...'",
    "other-image": "invoke reimage --nodes {node} --reason '...'",
    "play-failed": _SHOW,
    "play-unreachable": _CONSOLE,
    "released-failed": _SHOW,
    "released-timeout": _SHOW,
    "ssh-dead": _CONSOLE,
}

# With these the BMC cannot be asked for evidence.
BMC_CODES = frozenset({"bmc-unreachable", "bmc-auth", "bmc-suite", "bmc-busy", "identity", "secret-missing"})


# With these the node was not shown to be bad: we, MAAS or a human stood in the way.
NOT_THE_NODE = frozenset(
    {
        "ansible-missing",
        "bug",
        "in-use",
        "locked",
        "max-fail",
        "not-ours",
        "other-image",
        "secret-missing",
        "slurm-unanswered",
        "state-unusable",
    }
    | {advice.code for _, advice in _CLASSES if advice.code.startswith(("maas-", "store-"))}
)


def advice_for(error: BaseException) -> Advice | None:
    """Return the row of the closest class of `error`, or None for a bug of ours."""
    rows = dict(_CLASSES)
    for kind in type(error).__mro__:
        if kind in rows:
            return rows[kind]
    return None


def code_of(error: BaseException) -> str:
    """Return the code of a failure, which names its runbook."""
    if isinstance(error, provision.NodeFailed):
        return error.code
    advice = advice_for(error)
    return advice.code if advice else "bug"


def next_for(code: str, node: str) -> str:
    """Return the next command for a node that failed with `code`; a console cause leads to the console."""
    by_class = {advice.code: advice.next for _, advice in _CLASSES}
    template = _BY_CODE.get(code) or by_class.get(code) or _CONSOLE
    return template.replace("{node}", node)


def told(error: BaseException) -> tuple[str, str, str]:
    """Return an error as where, what and why: the three things that its lines say."""
    if isinstance(error, (inventory.UnknownNode, inventory.UnknownGroup, inventory.UnknownRack)):
        option = "--rack" if isinstance(error, inventory.UnknownRack) else "--nodes"
        return option, f"{error.name} is not in the inventory", f"there is {error.known or 'nothing like it'}"
    if isinstance(error, inventory.SiteFileError):
        place = f"{error.path}:{error.line}" if error.line else str(error.path)
        return place, error.what, causes(error) or "the site files are read as a whole; nothing was done"
    if isinstance(error, inventory.NodeSetSyntax):
        return "--nodes", f"'{error.text}' cannot be read: {error.what}", "it is no node set"
    where, colon, what = str(error).partition(": ")
    if not colon or " " in where:
        where, what = "muster", str(error)
    known = advice_for(error)
    why = causes(error) or getattr(error, "detail", "") or getattr(error, "why", "")
    if not why or why in what:
        why = _WHY.get(known.code if known else "", "it is so")
    return where, what, why


def next_after(error: BaseException) -> str:
    """Return the next command after `error`, its own facts filled in."""
    advice = advice_for(error)
    if advice is None:
        return "invoke doctor"
    text = advice.next
    if isinstance(error, provision.Refused) and error.hint:
        text = error.hint
    nearest = getattr(error, "nearest", None)
    if nearest:
        text = f"did you mean {nearest}?  {text}"
    for name in ("node", "guard", "run", "log", "command", "hint", "url"):
        value = getattr(error, name, None)
        if value is not None:
            text = text.replace("{" + name + "}", str(value))
    return text.replace("{node}", "NODE")


def causes(error: BaseException) -> str:
    """Return the chain of causes in one line, each said once; empty when there is none."""
    said: list[str] = []
    cause = error.__cause__
    while cause is not None:
        told_by_system = isinstance(cause, OSError) and cause.strerror
        text = " ".join(str(told_by_system or cause).split()) or type(cause).__name__
        if text not in said and text not in str(error):
            said.append(text)
        cause = cause.__cause__
    return ": ".join(said)


def codes() -> frozenset[str]:
    """Return every code that needs a runbook."""
    return frozenset(_BY_CODE) | {advice.code for _, advice in _CLASSES}
