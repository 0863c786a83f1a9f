"""Who may write is a token's name or a certificate's, and never what a client says of itself."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest

from provision.mirror.config import ConfigError, load
from provision.mirror.identity import NOBODY, Tokens, identify

TOKENS = Tokens((("ana", hashlib.sha256(b"secret").hexdigest()),))
CERTIFICATE = {"x-client-verify": "SUCCESS", "x-client-name": "CN=infra-1,O=site"}


@pytest.mark.parametrize(
    ("headers", "behind_nginx", "who"),
    [
        ({"authorization": "Bearer secret"}, False, "ana"),
        ({"authorization": "bearer secret"}, False, "ana"),
        ({"authorization": "Bearer wrong"}, False, NOBODY),
        ({"authorization": "Basic secret"}, False, NOBODY),
        ({}, True, NOBODY),
        (CERTIFICATE, True, "cn:infra-1"),
        (CERTIFICATE, False, NOBODY),
        ({**CERTIFICATE, "x-client-verify": "FAILED:expired"}, True, NOBODY),
        ({**CERTIFICATE, "authorization": "Bearer wrong"}, True, NOBODY),
    ],
)
def test_who_asks(headers: dict[str, str], behind_nginx: bool, who: str) -> None:
    assert identify(headers, TOKENS, behind_nginx=behind_nginx) == who


def test_a_token_in_clear_is_refused_and_not_repeated(tmp_path: Path) -> None:
    (tmp_path / "tokens").write_text("# writers\nana my-own-token\n")
    with pytest.raises(ValueError, match=":2: a line is NAME") as refused:
        Tokens.read(tmp_path / "tokens")
    assert "my-own-token" not in str(refused.value)


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("listen: nowhere", "neither unix:PATH nor"),
        ("listen: 127.0.0.1:1\nreserve_bytes: -1", "reserve_bytes"),
        ("listen: 127.0.0.1:1\nresrve_bytes: 1", "no key resrve_bytes"),
        ("reserve_bytes: 1", "listen is missing"),
    ],
)
def test_a_configuration_is_refused_as_a_whole(tmp_path: Path, line: str, said: str) -> None:
    (tmp_path / "tokens").write_text("")
    (tmp_path / "c.yaml").write_text(f"root: {tmp_path}\ntokens: {tmp_path}/tokens\n{line}\n")
    with pytest.raises(ConfigError, match=said):
        load(tmp_path / "c.yaml")
