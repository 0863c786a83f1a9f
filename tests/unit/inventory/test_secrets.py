"""Secrets: found by reference, shown by nobody."""

from __future__ import annotations

import copy
import json
import pickle
from pathlib import Path

import pytest

from inventory.errors import SecretMissing
from inventory.secrets import Secret, resolve, secret_path


def put(path: Path, data: bytes, mode: int = 0o600) -> Path:
    """Write a file with a mode."""
    path.write_bytes(data)
    path.chmod(mode)
    return path


def test_shows_stars_and_gives_itself_only_when_asked() -> None:
    secret = Secret("s3cret")
    assert (str(secret), repr(secret), f"{secret}", f"{secret:>5}") == ("***", "***", "***", "  ***")
    assert repr([secret]) == "[***]"
    assert secret.reveal() == "s3cret"
    assert secret == Secret("s3cret")
    assert secret != Secret("other")
    assert len({secret, Secret("s3cret")}) == 1


@pytest.mark.parametrize("leak", [pickle.dumps, copy.copy, copy.deepcopy, json.dumps, vars])
def test_is_not_pickled_copied_or_serialised(leak: object) -> None:
    assert callable(leak)
    with pytest.raises(TypeError):
        leak(Secret("s3cret"))


def test_reads_the_environment(tmp_path: Path) -> None:
    assert resolve("env:BMC", base=tmp_path, environ={"BMC": "pw"}).reveal() == "pw"


@pytest.mark.parametrize(("environ", "words"), [({}, "is not set"), ({"BMC": ""}, "is empty")])
def test_names_a_variable_that_is_missing(tmp_path: Path, environ: dict[str, str], words: str) -> None:
    with pytest.raises(SecretMissing, match=words) as caught:
        resolve("env:BMC", base=tmp_path, environ=environ)
    assert caught.value.ref == "env:BMC"
    assert caught.value.remedy == "export BMC"


@pytest.mark.parametrize(
    ("data", "value"),
    [(b"pw", "pw"), (b"pw\n", "pw"), (b"pw\n\n", "pw\n"), (b" pw \r\n", " pw "), ("pä".encode(), "pä")],
)
def test_reads_a_file_without_its_last_newline(tmp_path: Path, data: bytes, value: str) -> None:
    put(tmp_path / "pw", data)
    assert resolve("file:pw", base=tmp_path).reveal() == value
    assert resolve(f"file:{tmp_path / 'pw'}", base=Path("/nowhere")).reveal() == value


@pytest.mark.parametrize("mode", [0o644, 0o604, 0o602, 0o666])
def test_refuses_a_file_that_is_open_to_everybody(tmp_path: Path, mode: int) -> None:
    path = put(tmp_path / "pw", b"pw", mode)
    with pytest.raises(SecretMissing, match="open to every user") as caught:
        resolve("file:pw", base=tmp_path)
    assert caught.value.remedy == f"chmod 600 {path}"


@pytest.mark.parametrize("mode", [0o600, 0o400, 0o640])
def test_takes_a_file_of_owner_or_group(tmp_path: Path, mode: int) -> None:
    put(tmp_path / "pw", b"pw", mode)
    assert resolve("file:pw", base=tmp_path).reveal() == "pw"


def test_names_a_file_that_is_missing_empty_a_folder_or_no_text(tmp_path: Path) -> None:
    with pytest.raises(SecretMissing, match="does not exist"):
        resolve("file:pw", base=tmp_path)
    put(tmp_path / "pw", b"\n")
    with pytest.raises(SecretMissing, match="is empty"):
        resolve("file:pw", base=tmp_path)
    put(tmp_path / "pw", b"\xff\xfesecret")
    with pytest.raises(SecretMissing, match="is not text") as caught:
        resolve("file:pw", base=tmp_path)
    assert caught.value.__cause__ is None
    with pytest.raises(SecretMissing, match="cannot be read"):
        resolve("file:.", base=tmp_path)


@pytest.mark.parametrize("text", ["hunter2", "env:", "file:", "vault:x", ""])
def test_does_not_repeat_a_text_that_is_no_reference(tmp_path: Path, text: str) -> None:
    with pytest.raises(SecretMissing, match="not a reference") as caught:
        resolve(text, base=tmp_path)
    assert not text or text not in str(caught.value).replace("env:NAME or file:PATH", "")


def test_the_path_of_a_file_reference_is_found_without_reading_it(tmp_path: Path) -> None:
    assert secret_path("file:keys/ssh", base=tmp_path) == tmp_path / "keys" / "ssh"
    with pytest.raises(SecretMissing):
        secret_path("env:KEY", base=tmp_path)
