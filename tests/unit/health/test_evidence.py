"""Evidence is whole, of this request and this boot, or it is none."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable

import pytest

from benchmarks.recorded_nodes import NONCE, Document, item, load, sealed
from health.errors import EvidenceBroken
from health.evidence import nonce_of, parse

NODE = load("xe9680-h100")


def test_reads_whole_evidence() -> None:
    evidence = parse(NODE.raw(), nonce=NONCE)
    assert evidence.began.boot_id == NODE.meta["boot_id"]
    smi = evidence.item("gpu.smi")
    assert smi is not None
    assert smi.ok
    assert smi.source == "nvidia-smi -q"
    assert evidence.item("no.such.item") is None


def test_a_login_banner_before_the_document_does_no_harm() -> None:
    assert parse(b"Welcome to node 7 {maintained}\n" + NODE.raw(), nonce=NONCE).nonce == NONCE


@pytest.mark.parametrize("share", range(20))
def test_refuses_evidence_cut_anywhere(share: int) -> None:
    raw = NODE.raw()
    with pytest.raises(EvidenceBroken):
        parse(raw[: len(raw) * share // 20], nonce=NONCE)


@pytest.mark.parametrize(
    ("raw", "reason"),
    [
        (b"", "it is empty"),
        (b"Permission denied (publickey).\n", "no document"),
        (NODE.raw() + b"logout\n", "something was written into it"),
        (NODE.raw().replace(b"Enabled", b"Disable", 1), "seal does not match"),
        (b'{"schema": 1, "items": ' + b"[" * 100_000, "it was cut"),
        (b'{"schema": 1}', "seal does not match"),
        (b'\xff\xfe{"', "it was cut"),
    ],
)
def test_refuses_what_is_no_whole_evidence(raw: bytes, reason: str) -> None:
    with pytest.raises(EvidenceBroken) as caught:
        parse(raw, nonce=NONCE)
    assert reason in caught.value.reason


def _other_boot(document: Document) -> None:
    document["ended"] = {**document["ended"], "boot_id": "another"}


def _twice(document: Document) -> None:
    document["items"].append(document["items"][0])


def _wrong_digest(document: Document) -> None:
    document["items"][0]["stdout"]["sha256"] = "0" * 64


def _no_clock(document: Document) -> None:
    document["began"] = None


def _text_for_rc(document: Document) -> None:
    document["items"][0]["rc"] = "0"


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (lambda document: document.update(schema=2), "schema 2"),
        (lambda document: document.update(nonce="other"), "another request"),
        (_other_boot, "rebooted"),
        (_twice, "twice"),
        (_wrong_digest, "digest"),
        (_no_clock, "form"),
        (_text_for_rc, "form"),
    ],
)
def test_refuses_sealed_evidence_that_is_not_what_was_asked_for(
    change: Callable[[Document], None], reason: str
) -> None:
    with pytest.raises(EvidenceBroken) as caught:
        parse(NODE.raw(change), nonce=NONCE)
    assert reason in caught.value.reason


def test_reads_bytes_that_are_no_text() -> None:
    def change(document: Document) -> None:
        entry = item(document, "site.registry")
        data = b"\xff\x00200"
        entry["stdout"] = {
            "bytes": 5,
            "sha256": __import__("hashlib").sha256(data).hexdigest(),
            "base64": base64.b64encode(data).decode(),
        }

    found = parse(NODE.raw(change), nonce=NONCE).item("site.registry")
    assert found is not None
    assert found.text == "\ufffd\x00200"


def test_marks_where_a_long_output_was_cut() -> None:
    def change(document: Document) -> None:
        item(document, "host.meminfo")["stdout"].update(truncated=True, cut_after=8)

    found = parse(NODE.raw(change), nonce=NONCE).item("host.meminfo")
    assert found is not None
    assert found.truncated
    assert found.text.startswith("MemTotal\n[... cut ...]\n")
    assert "cut" in (found.problem or "")


def test_saved_evidence_tells_its_nonce() -> None:
    assert nonce_of(NODE.raw()) == NONCE


def test_a_seal_does_not_depend_on_the_order_of_keys() -> None:
    document = json.loads(NODE.raw())
    shuffled = {key: document[key] for key in sorted(document, reverse=True) if key != "seal"}
    assert parse(sealed(shuffled), nonce=NONCE).digest == document["seal"]
