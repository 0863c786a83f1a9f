"""The secret scan: every known secret is found in every form, wherever it lies; nothing else is."""

from __future__ import annotations

import base64
import bz2
import gzip
import html
import io
import json
import lzma
import shlex
import tarfile
import textwrap
import zipfile
from collections.abc import Callable
from urllib.parse import quote, quote_plus, urlencode

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from provision.access import Access
from provision.ticket import scan
from provision.ticket.scan import Hit, make_needles, site_needles
from tests.unit.ticket.conftest import KEY, KEY_LINES, MAAS_KEY, PASSWORD

SECRETS = st.text(
    alphabet=st.characters(min_codepoint=33, max_codepoint=0x17F, exclude_categories=("C", "Z")),
    min_size=6, max_size=24,
)  # fmt: skip
AROUND = st.binary(max_size=40)

Encode = Callable[[str], bytes]


def wrapped_base64(secret: str) -> bytes:
    return "\n".join(textwrap.wrap(base64.b64encode(f"user:{secret}".encode()).decode(), 7)).encode()


FORMS: dict[str, Encode] = {
    "as it is": str.encode,
    "base64": lambda secret: base64.b64encode(secret.encode()),
    "base64 without padding": lambda secret: base64.b64encode(secret.encode()).rstrip(b"="),
    "base64 of user and password": lambda secret: base64.b64encode(f"u:{secret}".encode()),
    "base64 of more": lambda secret: base64.b64encode(f"ab:{secret}\nmore".encode()),
    "base64 in short lines": wrapped_base64,
    "base64 in short lines in JSON": lambda secret: json.dumps(wrapped_base64(secret).decode()).encode(),
    "base64 for URLs": lambda secret: base64.urlsafe_b64encode(f"{secret}~~~".encode()),
    "base64 in a URL": lambda secret: quote(base64.b64encode(secret.encode()), safe="").encode(),
    "URL": lambda secret: quote(secret, safe="").encode(),
    "URL with slashes": lambda secret: quote(secret).encode(),
    "URL, small letters": lambda secret: "".join(f"%{byte:02x}" for byte in secret.encode()).encode(),
    "form": lambda secret: urlencode({"password": secret}).encode(),
    "form value": lambda secret: quote_plus(secret).encode(),
    "hex": lambda secret: secret.encode().hex().encode(),
    "HEX": lambda secret: secret.encode().hex().upper().encode(),
    "JSON": lambda secret: json.dumps({"password": secret}).encode(),
    "JSON with letters as they are": lambda secret: json.dumps(secret, ensure_ascii=False).encode(),
    "HTML": lambda secret: html.escape(secret).encode(),
    "shell": lambda secret: shlex.quote(secret).encode(),
    "UTF-16": lambda secret: secret.encode("utf-16-le"),
}


@pytest.mark.parametrize("form", list(FORMS))
@settings(max_examples=40, deadline=None)
@given(secret=SECRETS, before=AROUND, after=AROUND)
def test_each_encoded_form_is_found_wherever_it_lies(
    form: str, secret: str, before: bytes, after: bytes
) -> None:
    needles = make_needles({"file:pw": secret})
    data = before + b" " + FORMS[form](secret) + b" " + after
    assert scan.scan({"a.txt": b"nothing", "b.txt": data}, needles) == Hit("b.txt", "file:pw")


@settings(deadline=None)
@given(st.text(alphabet="abcdefgh \n0123456789", max_size=200))
def test_what_is_not_there_is_not_found(text: str) -> None:
    data = text.encode()
    files = {
        "begin": PASSWORD[:-2].encode(),
        "end": PASSWORD[2:].encode(),
        "a": data,
        "b": base64.b64encode(data),
    }
    assert scan.scan(files, make_needles({"file:pw": PASSWORD})) is None


@pytest.mark.parametrize(
    "leak",
    [PASSWORD, MAAS_KEY, *MAAS_KEY.split(":"), KEY_LINES[1], KEY.format("anything"),
     base64.b64encode(KEY.format("a").encode()).decode()],
)  # fmt: skip
def test_every_secret_that_the_site_names_is_looked_for(access: Access, leak: str) -> None:
    needles = site_needles(access)
    assert needles.names == ("file:maas", "file:pw", "file:ssh")
    assert scan.scan({"x": f"before {leak} after".encode()}, needles) is not None


@pytest.mark.parametrize("kind", ["", "RSA ", "EC ", "DSA ", "OPENSSH ", "ENCRYPTED ", "PGP "])
def test_a_private_key_is_found_though_nobody_knows_it(kind: str) -> None:
    block = " BLOCK" if kind == "PGP " else ""
    data = f"-----BEGIN {kind}PRIVATE ".encode() + f"KEY{block}-----".encode()
    assert scan.scan({"x": data}, make_needles({})) == Hit("x", "a private key")


def test_a_certificate_or_a_public_key_is_none() -> None:
    data = b"-----BEGIN CERTIFICATE-----\nMIIB\n-----BEGIN PUBLIC KEY-----\nssh-ed25519 AAAA"
    assert scan.scan({"x": data + base64.b64encode(data)}, make_needles({})) is None


def zipped(data: bytes) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("inside/log.txt", data)
    return out.getvalue()


def taped(data: bytes) -> bytes:
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as tape:
        entry = tarfile.TarInfo("inside/log.txt")
        entry.size = len(data)
        tape.addfile(entry, io.BytesIO(data))
    return out.getvalue()


PACKERS: dict[str, Callable[[bytes], bytes]] = {
    "zip": zipped, "tar": taped, "gzip": gzip.compress, "bzip2": bz2.compress, "xz": lzma.compress,
    "tar.gz": lambda data: gzip.compress(taped(data)),
    "zip in gzip": lambda data: gzip.compress(zipped(data)),
}  # fmt: skip


@pytest.mark.parametrize("packer", list(PACKERS))
def test_a_secret_in_an_archive_is_found_and_the_member_named(packer: str) -> None:
    data = PACKERS[packer](b"x" * 5000 + PASSWORD.encode() + b"y" * 5000)
    hit = scan.scan({"dump.bin": data}, make_needles({"file:pw": PASSWORD}))
    assert hit is not None
    assert hit.secret == "file:pw"
    assert hit.file.startswith("dump.bin")
    assert ("log.txt" in hit.file) == ("zip" in packer and packer not in ("gzip", "bzip2"))
    assert not scan.sealed("dump.bin", data)


def test_a_secret_typed_letter_by_letter_is_found_in_a_cast() -> None:
    rows = [json.dumps([at, "o", letter]) for at, letter in enumerate(PASSWORD)]
    cast = "\n".join(['{"version": 2}', *rows, '[99, "m", "lost"]']).encode()
    hit = scan.scan({"console/boot-0.cast": cast}, make_needles({"file:pw": PASSWORD}))
    assert hit == Hit("console/boot-0.cast", "file:pw")


def encrypted_zip() -> bytes:
    data = bytearray(zipped(b"x"))
    data[6] |= 1  # the flag in the local header, and the one in the directory
    data[data.find(b"PK\x01\x02") + 8] |= 1
    return bytes(data)


def nested(times: int) -> bytes:
    data = b"x"
    for _ in range(times):
        data = gzip.compress(data)
    return data


@pytest.mark.parametrize(
    "data",
    [encrypted_zip(), zipped(b"x" * 999)[:60], gzip.compress(b"x" * 999)[:20], nested(5)],
    ids=["encrypted", "cut zip", "cut gzip", "too deep"],
)
def test_an_archive_that_cannot_be_looked_into_is_sealed(data: bytes) -> None:
    assert scan.sealed("dump.bin", data)


@pytest.mark.parametrize(
    "data",
    [b"", b"plain", nested(3), zipped(b""), b"\x89PNG\r\n\x1a\n"],
    ids=["nothing", "text", "three deep", "zip", "picture"],
)
def test_what_can_be_looked_into_is_not_sealed(data: bytes) -> None:
    assert not scan.sealed("dump.bin", data)


def test_what_calls_itself_a_cast_and_is_none_is_sealed() -> None:
    assert scan.sealed("bmc/vendor/x.cast", b"head\nno JSON")


def test_an_archive_that_unpacks_to_too_much_is_sealed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scan, "_MOST_UNPACKED", 10_000)
    assert not scan.sealed("dump.bin", zipped(bytes(9_000)))
    assert scan.sealed("dump.bin", zipped(bytes(11_000)))
    assert scan.sealed("dump.bin", gzip.compress(bytes(11_000)))


def test_what_cannot_be_looked_for_is_said(access: Access) -> None:
    (access.settings.state / "pw").write_text("abc")
    (access.settings.state / "maas").unlink()
    needles = site_needles(access)
    assert needles.names == ("file:ssh",)
    told = dict(needles.unknown)
    assert "too short" in told["file:pw"]
    assert "does not exist" in told["file:maas"]
    assert "abc" not in repr(needles).replace("too short", "")


def test_needles_do_not_show_what_they_look_for() -> None:
    assert PASSWORD not in repr(make_needles({"file:pw": PASSWORD}))


def test_a_password_for_each_of_many_bmcs_is_found_too() -> None:
    secrets = {f"env:BMC_{number}": f"p{number:05}-Qz{number * 7919 % 99991:05}" for number in range(600)}
    needles = make_needles(secrets)
    assert len(needles.plain) > 1000
    files = {"a": b"lorem ipsum " * 2000, "b": b"lorem " * 500 + secrets["env:BMC_417"].encode()}
    assert scan.scan(files, needles) == Hit("b", "env:BMC_417")
    assert scan.scan({"a": files["a"]}, needles) is None


def test_the_databases_password_is_looked_for(access: Access, monkeypatch: pytest.MonkeyPatch) -> None:
    url = "postgresql://muster:dbpass-9x@db.example/muster"
    monkeypatch.setattr(access, "settings", type(access.settings)(
        site=access.settings.site, state=access.settings.state, database=url, engine_database=url, who="m"
    ))  # fmt: skip
    hit = scan.scan({"x": b"url is dbpass-9x"}, site_needles(access))
    assert hit == Hit("x", "the database's password")
