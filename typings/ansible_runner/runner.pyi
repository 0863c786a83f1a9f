from collections.abc import Callable
from typing import Any

from ansible_runner.config.runner import RunnerConfig

class Runner:
    rc: int | None
    def __init__(
        self,
        config: RunnerConfig,
        *,
        event_handler: Callable[[dict[str, Any]], bool] | None = ...,
    ) -> None: ...
    def run(self) -> tuple[str, int]: ...
