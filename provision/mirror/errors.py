"""What can go wrong with the file mirror, as its users see it."""

from __future__ import annotations

from provision.errors import ProvisionError


class MirrorError(ProvisionError):
    """Base of everything that the mirror's client raises on purpose."""


class MirrorUnreachable(MirrorError):
    """Nothing answers at the mirror's address, or the connection broke too often."""

    def __init__(self, url: str, reason: str) -> None:
        super().__init__(f"mirror: {url}: {reason}")
        self.url = url


class MirrorAuthRejected(MirrorError):
    """The mirror does not take our token or certificate for a write."""

    def __init__(self, detail: str) -> None:
        super().__init__("mirror: it does not let us write")
        self.detail = detail


class MirrorFull(MirrorError):
    """The mirror has no room for a file beside its reserve or quota; nothing was written."""

    def __init__(self, detail: str) -> None:
        super().__init__("mirror: no room for this file")
        self.detail = detail


class MirrorRefused(MirrorError):
    """The mirror will not do this to a file: its name is taken, or it is pinned."""

    def __init__(self, what: str, detail: str, hint: str) -> None:
        super().__init__(f"mirror: {what}")
        self.detail = detail
        self.hint = hint


class MirrorBadAnswer(MirrorError):
    """What answers at the mirror's address does not speak as a mirror does."""

    def __init__(self, what: str) -> None:
        super().__init__(f"mirror: {what}")


class DigestMismatch(MirrorError):
    """Bytes are not those that their sha256 promises; they were thrown away."""

    def __init__(self, what: str, detail: str) -> None:
        super().__init__(f"mirror: {what} is not what its sha256 promises")
        self.detail = detail


class UnknownFile(MirrorError):
    """The mirror holds no file of this name or digest."""

    def __init__(self, name: str) -> None:
        super().__init__(f"mirror: it has no {name}")
        self.name = name


class SourceFailed(MirrorError):
    """A file could not be fetched from outside."""

    def __init__(self, url: str, reason: str) -> None:
        super().__init__(f"mirror: {url}: {reason}")
        self.url = url
