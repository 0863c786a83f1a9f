from collections.abc import Iterable, Iterator

from ClusterShell.NodeUtils import GroupResolver

RESOLVER_NOGROUP: int

class NodeSetException(Exception): ...

class NodeSet:
    def __init__(
        self,
        nodes: str | None = ...,
        autostep: int | None = ...,
        resolver: GroupResolver | int | None = ...,
    ) -> None: ...
    @classmethod
    def fromlist(
        cls, nodelist: Iterable[str], autostep: int | None = ..., resolver: GroupResolver | int | None = ...
    ) -> NodeSet: ...
    def __iter__(self) -> Iterator[str]: ...
    def __len__(self) -> int: ...
