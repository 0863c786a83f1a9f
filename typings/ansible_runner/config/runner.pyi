class RunnerConfig:
    command: list[str]
    env: dict[str, str]
    def __init__(
        self,
        private_data_dir: str,
        playbook: str | None = ...,
        inventory: str | None = ...,
        *,
        extravars: str | None = ...,
        forks: int | None = ...,
        cmdline: str | None = ...,
        settings: dict[str, object] | None = ...,
        fact_cache_type: str = ...,
        quiet: bool = ...,
        suppress_env_files: bool = ...,
        suppress_output_file: bool = ...,
    ) -> None: ...
    def prepare(self) -> None: ...
