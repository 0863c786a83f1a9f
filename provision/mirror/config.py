"""What the service is told: one YAML file, checked as a whole before anything is served."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import yaml

from provision.mirror.identity import Tokens
from provision.mirror.store import Limits

_KEYS = {
    "root",
    "listen",
    "tokens",
    "reserve_bytes",
    "quota_bytes",
    "quota_each_bytes",
    "max_file_bytes",
    "keep_days",
    "partial_days",
    "access_log",
}


class ConfigError(Exception):
    """The configuration file makes no sense; the message says why."""


@dataclass(frozen=True, slots=True)
class Config:
    """`listen` is unix:PATH (then what nginx says of a client is believed) or ADDRESS:PORT."""

    root: Path
    listen: str
    tokens: Tokens = field(repr=False)
    limits: Limits
    max_file: int = 0  # bytes; 0: no bound
    keep_days: float = 30.0
    partial_days: float = 7.0
    access_log: Path | None = None

    @property
    def behind_nginx(self) -> bool:
        """Whether only nginx can speak to us, so that its headers name the client."""
        return self.listen.startswith("unix:")


def load(path: Path) -> Config:
    """Read the configuration. Raises ConfigError."""
    try:
        read = yaml.safe_load(path.read_bytes())
    except (OSError, yaml.YAMLError) as error:
        raise ConfigError(f"{path}: {error}") from error
    values = _mapping(read, "the file", _KEYS)
    try:
        return _config(values)
    except KeyError as error:
        raise ConfigError(f"{path}: {error.args[0]} is missing") from error
    except (TypeError, ValueError, OSError) as error:
        raise ConfigError(f"{path}: {error}") from error


def _config(values: Mapping[str, object]) -> Config:
    listen = str(values["listen"])
    if not listen.startswith("unix:") and not listen.rpartition(":")[2].isdigit():
        raise ValueError(f"listen: {listen} is neither unix:PATH nor ADDRESS:PORT")
    log = values.get("access_log")
    return Config(
        root=Path(str(values["root"])).absolute(),
        listen=listen,
        tokens=Tokens.read(Path(str(values["tokens"]))),
        limits=Limits(
            reserve=_number(values, "reserve_bytes", 1 << 30),
            quota=_number(values, "quota_bytes", 0),
            quota_each=_number(values, "quota_each_bytes", 0),
        ),
        max_file=_number(values, "max_file_bytes", 0),
        keep_days=float(_number(values, "keep_days", 30)),
        partial_days=float(_number(values, "partial_days", 7)),
        access_log=Path(str(log)) if log else None,
    )


def _mapping(value: object, what: str, keys: set[str]) -> Mapping[str, object]:
    if not isinstance(value, dict):
        raise ConfigError(f"{what} is no mapping")
    unknown = sorted(set(value) - keys)
    if unknown:
        raise ConfigError(
            f"{what} has no key {', '.join(map(str, unknown))}; it has {', '.join(sorted(keys))}"
        )
    return value


def _number(values: Mapping[str, object], key: str, default: int) -> int:
    value = values.get(key, default)
    if not isinstance(value, int) or isinstance(value, bool) or value < 0:
        raise ValueError(f"{key}: {value} is no number of at least 0")
    return value
