"""What can go wrong with container images."""

from __future__ import annotations

from provision.errors import ProvisionError


class ImagesError(ProvisionError):
    """Base of everything that the commands for container images raise on purpose."""


class RegistryUnreachable(ImagesError):
    """The registry does not answer, or not as a registry does."""

    def __init__(self, url: str, reason: str) -> None:
        super().__init__(f"registry: {url}: {reason}")
        self.url = url


class RegistryRejected(ImagesError):
    """The registry does not take our user and password."""

    def __init__(self, what: str) -> None:
        super().__init__(f"registry: it does not let us {what}")


class UnknownImage(ImagesError):
    """The registry has no image of this name."""

    def __init__(self, name: str) -> None:
        super().__init__(f"registry: it has no {name}")


class PushFailed(ImagesError):
    """An image could not be pushed; `detail` is the tool's last line."""

    def __init__(self, source: str, detail: str) -> None:
        super().__init__(f"registry: {source} was not pushed")
        self.detail = detail


class PullFailed(ImagesError):
    """A node could not pull an image, or holds other bytes."""

    def __init__(self, node: str, what: str, detail: str) -> None:
        super().__init__(f"{node}: {what}")
        self.node = node
        self.detail = detail
