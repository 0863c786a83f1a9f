from collections.abc import Callable, Mapping
from typing import IO, Any

class Transmitter:
    def __init__(self, _output: IO[bytes] | None = None, **kwargs: Any) -> None: ...
    def run(self) -> tuple[str, int | None]: ...

class Processor:
    _input: IO[bytes]
    def __init__(
        self,
        _input: IO[bytes] | None = None,
        status_handler: Callable[..., None] | None = None,
        event_handler: Callable[[Mapping[str, Any]], bool] | None = None,
        **kwargs: Any,
    ) -> None: ...
    def artifacts_callback(self, artifacts_data: Mapping[str, Any]) -> None: ...
    def run(self) -> tuple[str, int | None]: ...
