"""What can go wrong between us and MAAS. Attributes carry the facts; no message carries a secret."""

from __future__ import annotations


class MaasError(Exception):
    """Base of everything this package raises."""


class MaasBadKey(MaasError):
    """The API key is not `consumer:token:secret`. The message does not quote it."""


class MaasUnreachable(MaasError):
    """MAAS gave no answer in time; nothing is known to have been done.

    `waited` is seconds since the first try, `why` the last thing that happened.
    """

    def __init__(self, url: str, waited: float, why: str) -> None:
        super().__init__(f"MAAS at {url} did not answer within {waited:.0f} s: {why}")
        self.url = url
        self.waited = waited
        self.why = why


class MaasUncertain(MaasUnreachable):
    """An acting call was sent and its answer was lost: it may have been carried out.

    Read the machine again before repeating `call`.
    """

    def __init__(self, url: str, waited: float, why: str, *, call: str, machine: str | None) -> None:
        super().__init__(url, waited, why)
        self.call = call
        self.machine = machine
        self.args = (
            f"MAAS may or may not have carried out {_what(call, machine)}: the answer was lost ({why})",
        )


class MaasBadAnswer(MaasError):
    """The answer is not what MAAS sends: HTML, a redirect, broken JSON, a missing field."""

    def __init__(self, call: str, what: str, *, status: int | None = None, excerpt: str = "") -> None:
        seen = f": {excerpt}" if excerpt else ""
        super().__init__(f"MAAS's answer to {call} cannot be read: {what}{seen}")
        self.call = call
        self.status = status
        self.excerpt = excerpt


class MaasRejected(MaasError):
    """MAAS answered and refused. `reason` is MAAS's own word, `machine` the node or system id."""

    def __init__(
        self,
        status: int,
        reason: str,
        *,
        call: str,
        machine: str | None = None,
        retry_after: float | None = None,
    ) -> None:
        super().__init__(f"MAAS refused {_what(call, machine)} ({status}): {reason}")
        self.status = status
        self.reason = reason
        self.call = call
        self.machine = machine
        self.retry_after = retry_after


class MaasAuthRejected(MaasRejected):
    """401: the API key is wrong, revoked, or missing."""


class MaasClockSkew(MaasRejected):
    """401 "Expired timestamp": this host's clock is behind MAAS's by more than 300 s."""


class MaasForbidden(MaasRejected):
    """403: the key's user may not do this."""


class MaasLocked(MaasForbidden):
    """403 on a machine that is locked in MAAS."""


class MaasNotFound(MaasRejected):
    """404: the machine or the object is not in MAAS."""


class MaasConflict(MaasRejected):
    """The machine's present status does not allow the call (409, and 400 for commission and test)."""


class MaasNoRack(MaasRejected):
    """No rack controller can reach the machine's BMC (503, and 500 for power on and deploy)."""


class MaasUnavailable(MaasRejected):
    """503 for longer than the deadline; `retry_after` is what MAAS last asked for, seconds."""


def _what(call: str, machine: str | None) -> str:
    return f"{call} of {machine}" if machine else call
