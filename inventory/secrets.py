"""References to secrets become secrets here, at the moment of use."""

from __future__ import annotations

import os
import stat
from collections.abc import Mapping
from pathlib import Path
from typing import NoReturn

from inventory.errors import SecretMissing

_KINDS = "env:NAME or file:PATH"
_WORLD_READABLE = stat.S_IROTH | stat.S_IWOTH


class Secret:
    """A value that shows itself only when asked by name."""

    __slots__ = ("_value",)

    def __init__(self, value: str) -> None:
        self._value = value

    def reveal(self) -> str:
        """Return the secret itself. Keep it out of logs, argv and exceptions."""
        return self._value

    def __repr__(self) -> str:
        return "***"

    __str__ = __repr__

    def __format__(self, spec: str) -> str:
        return format("***", spec)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Secret) and self._value == other._value

    def __hash__(self) -> int:
        return hash(self._value)

    def __reduce__(self) -> NoReturn:
        raise TypeError("a Secret is never pickled: pass its reference")


def resolve(reference: str, *, base: Path, environ: Mapping[str, str] = os.environ) -> Secret:
    """Return the secret behind `env:NAME` or `file:PATH`; a relative PATH starts at `base`.

    One newline at the end of a file is not part of the secret. Raises SecretMissing.
    """
    kind, _, rest = reference.partition(":")
    if kind == "env" and rest:
        return _from_environment(reference, rest, environ)
    if kind == "file" and rest:
        return Secret(_read(reference, secret_path(reference, base=base)))
    # The text may be a secret that somebody wrote in place of a reference.
    raise SecretMissing("(not shown)", "is not a reference", f"write {_KINDS} in the site file")


def secret_path(reference: str, *, base: Path) -> Path:
    """Return the path of a `file:` reference without reading it. Raises SecretMissing."""
    kind, _, rest = reference.partition(":")
    if kind != "file" or not rest:
        raise SecretMissing(reference, "is not a file", "write file:PATH in the site file")
    return (base / Path(rest).expanduser()).absolute()


def _from_environment(reference: str, name: str, environ: Mapping[str, str]) -> Secret:
    value = environ.get(name)
    if not value:
        state = "is empty" if value == "" else "is not set"
        raise SecretMissing(reference, f"the environment variable {name} {state}", f"export {name}")
    return Secret(value)


def _read(reference: str, path: Path) -> str:
    try:
        with path.open("rb") as file:
            # Asked of the open file, so that nobody swaps it between the check and the read.
            mode = os.fstat(file.fileno()).st_mode
            if mode & _WORLD_READABLE:
                raise SecretMissing(
                    reference, f"{path} is open to every user of this system", f"chmod 600 {path}"
                )
            text = file.read().decode("utf-8")
    except FileNotFoundError as exc:
        raise SecretMissing(
            reference, f"{path} does not exist", f"put the secret into {path}, mode 600"
        ) from exc
    except UnicodeDecodeError:
        # Not chained: the decoder's exception carries the bytes, which are the secret.
        raise SecretMissing(reference, f"{path} is not text", "write it again as UTF-8") from None
    except OSError as exc:
        raise SecretMissing(reference, f"{path} cannot be read", "check its owner and mode") from exc
    text = text.removesuffix("\n").removesuffix("\r")
    if not text:
        raise SecretMissing(reference, f"{path} is empty", f"put the secret into {path}, mode 600")
    return text
