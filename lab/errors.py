"""What can go wrong in the lab, with the exit code and the next command an operator needs."""

from __future__ import annotations

from enum import IntEnum


class Exit(IntEnum):
    """Exit codes of the lab's own command, the same as the product's."""

    DONE = 0
    BUG = 1
    SOME_FAILED = 2
    REFUSED = 3
    NO_SERVICE = 4
    BAD_REQUEST = 5


class LabError(Exception):
    """Base of the lab's errors: where it happened, what, and what to do next."""

    code = Exit.SOME_FAILED
    sort = "the lab could not carry it out"

    def __init__(self, where: str, what: str, *, follow: str) -> None:
        super().__init__(what)
        self.where = where
        self.follow = follow

    @property
    def why(self) -> str:
        """The causes, nearest first; for an error without any, what sort of error it is."""
        found = []
        cause = self.__cause__
        while cause is not None:
            found.append(str(cause) or type(cause).__name__)
            cause = cause.__cause__
        return ": ".join(found) or self.sort


class Refused(LabError):
    """Nothing was changed, because a precondition is missing (root, a kernel feature)."""

    code = Exit.REFUSED
    sort = "a precondition is missing; nothing was changed"


class NoService(LabError):
    """A service that is needed does not answer: the daemon, the package archive."""

    code = Exit.NO_SERVICE
    sort = "something that the lab needs does not answer"


class BadRequest(LabError):
    """The request makes no sense: unknown node, fault, rack or value."""

    code = Exit.BAD_REQUEST
    sort = "the request does not fit this lab"
