"""A whole ticket, made of fakes: always made, never with a secret, and the same words every time."""

from __future__ import annotations

import asyncio
import base64
import io
import json
import os
import tarfile
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import cast

import pytest

from bmc.capability import Bmc
from bmc.console.store import Writer
from bmc.errors import Unreachable
from health.readers.smi import read_smi_parts
from inventory.model import Pool, Stage
from provision import advice
from provision.errors import BadRequest
from provision.ticket import errors
from provision.ticket.artifact import File, Opaque, Text
from provision.ticket.bundle import Bundle, Wish, make
from provision.ticket.collecting import Case, Collector, Facts, Lane, Outcome, Result
from provision.ticket.collectors import console
from provision.ticket.errors import SecretInTicket, TicketError, TicketTooLarge
from provision.ticket.lines import Login
from provision.ticket.redact import Profile
from provision.ticket.scan import site_needles
from provision.ticket.table import COLLECTORS
from tests.unit.ticket.conftest import MAAS_KEY, NOW, PASSWORD, FakeBmc, FakeHost, Logins, MakeCase

GOLDEN = Path(__file__).resolve().parents[2] / "golden" / "ticket"
TOP = "ticket-host-1-20260821T145100Z"

HOST = {
    "uname": b"Linux r1-n01 6.1.0-18 #1 SMP\n",
    "dmesg": b"[1.0] NVRM: Xid (PCI:0000:9b:00): 79, pid=77, name=train_x, GPU has fallen off the bus.\n",
    "journalctl": b"2026-08-21T14:40:00Z r1-n01 sshd[9]: Accepted password for zeno from 10.9.1.200 port 2\n",
}


def gpu(bus: int, serial: str) -> str:
    return (
        f"GPU 00000000:{bus:02x}:00.0\n    Product Brand : NVIDIA\n    Serial Number : {serial}\n"
        f"    GPU UUID : GPU-{serial}\n    VBIOS Version : 96.00.74.00.01\n    Processes : None\n"
    )


def smi(*gpus: str) -> str:
    return f"Driver Version : 550.90.07\nAttached GPUs : {len(gpus)}\n" + "".join(gpus)


def unpacked(path: Path) -> dict[str, bytes]:
    with tarfile.open(path) as tape:
        return {
            member.name.partition("/")[2]: cast("io.BufferedReader", tape.extractfile(member)).read()
            for member in tape.getmembers()
        }


def failed(case: Case) -> None:
    """Record what a node goes through that fails at the gate."""
    store = case.access.store
    store.begin("r1-n01", Stage.VERIFIED, run="b-0821-1403")
    store.record_verdict(
        "r1-n01", run="b-0821-1403", level="full", answer="no", evidence=None,
        reasons=["gpu.count: 7 of 8 GPUs; missing 0000:9b:00.0"],
    )  # fmt: skip
    store.fail(
        "r1-n01", Stage.VERIFIED, run="b-0821-1403", code="gate-no", next="invoke ticket",
        reason="gpu.count: 7 of 8 GPUs; missing 0000:9b:00.0",
    )  # fmt: skip
    store.event("r1-n01", "power", actor="marta", message="power cycle: is it the riser of r1-n02?")
    store.set_pool("r1-n01", Pool.REPAIR, by="marta", why="waits for a vendor")
    recorded = Writer(case.access.settings.console_folder("r1-n01"), "r1-n01")
    recorded.open(NOW.timestamp())
    recorded.data(NOW.timestamp(), b"Linux version 6.1\r\nr1-n01 lo")
    recorded.data(NOW.timestamp() + 1, b"gin: ")
    recorded.close()


async def no_gpu_now(case: Case) -> Result:
    await case.host.run(["timeout", "-k", "5", "1", "uname"], timeout_s=1)
    good = read_smi_parts(smi(gpu(0x18, "165001"), gpu(0x9B, "165002")))
    return Result(facts=Facts(smi=read_smi_parts(smi(gpu(0x18, "165001"))), good_smi=good))


GPUS = Collector("host.gpus", Lane.HOST, 5.0, no_gpu_now)
# Time that passes is not the same every time.
STILL = tuple(row for row in COLLECTORS if row.id != "host.nvidia-smi")


@pytest.fixture
def case(make_case: MakeCase) -> Case:
    return make_case(host=FakeHost(HOST))


async def made(case: Case, wish: Wish, collectors: tuple[Collector, ...] = COLLECTORS) -> Bundle:
    case = replace(case, audience=wish.profile)
    return await make(case, wish, site_needles(case.access), collectors=collectors)


def timeless(data: bytes) -> str:
    """Return collection.json with the seconds taken out."""
    found = json.loads(data)
    for report in found["collectors"]:
        del report["seconds"]
    return json.dumps(found, indent=1) + "\n"


async def test_what_a_ticket_says_of_a_failed_node(case: Case, tmp_path: Path) -> None:
    failed(case)
    bundle = await made(case, Wish(tmp_path / "out", component="gpu1"), (*STILL, GPUS))
    files = unpacked(bundle.path)
    told = {
        "SUMMARY.md": files["SUMMARY.md"].decode(),
        "ticket.json": files["ticket.json"].decode(),
        "redactions.txt": files["redactions.txt"].decode(),
        "collection.json": timeless(files["collection.json"]),
        "history.jsonl": files["history.jsonl"].decode(),
        "paste.txt": "\n".join([*bundle.paste[:4], *bundle.missing, ""]),
        "files.txt": "\n".join([*sorted(files), ""]),
    }
    if os.environ.get("MUSTER_WRITE_GOLDEN"):
        for name, text in told.items():
            (GOLDEN / name).write_text(text)
    assert told == {name: (GOLDEN / name).read_text() for name in told}


async def test_nobodys_name_is_in_a_vendors_ticket_but_serials_are(case: Case, tmp_path: Path) -> None:
    failed(case)
    files = unpacked((await made(case, Wish(tmp_path / "out"))).path)
    everything = b"\n".join([*files.values(), *(name.encode() for name in files)])
    for name in ("r1-n0", "10.9.1.", "127.0.9.", "marta", "zeno", "train_x", "oobadmin", "maas.dc1"):
        assert name.encode() not in everything
    for kept in ("S4X1931", "P1K2M3", "0000:9b:00"):
        assert kept.encode() in everything


async def test_ones_own_ticket_has_the_names_and_says_so(case: Case, tmp_path: Path) -> None:
    failed(case)
    files = unpacked((await made(case, Wish(tmp_path / "out", profile=Profile.INTERNAL))).path)
    assert b"for zeno from 10.9.1.200" in files["host/journal.txt"]
    assert files["redactions.txt"].startswith(b"profile internal\nnothing was replaced")


async def test_the_manifest_has_every_file_but_itself(case: Case, tmp_path: Path) -> None:
    files = unpacked((await made(case, Wish(tmp_path / "out"))).path)
    listed = [line.split("  ")[1] for line in files["MANIFEST.sha256"].decode().splitlines()]
    assert listed == sorted(set(files) - {"MANIFEST.sha256"})


async def test_it_is_made_when_everything_is_dead(make_case: MakeCase, tmp_path: Path) -> None:
    dead = Logins(None, Unreachable("r1-n01", "127.0.9.1", 4.5))
    case = make_case(bmc=dead, host=FakeHost(dead="ssh: No route to host"))
    bundle = await made(case, Wish(tmp_path / "out", component="psu1"))
    files = unpacked(bundle.path)
    assert "history.jsonl" in files
    assert "serial S4X1931" in files["SUMMARY.md"].decode()  # the inventory knows
    assert any(line.startswith("host.* (skipped: ssh: No route to host)") for line in bundle.missing)
    assert any("(error: BMC 127.0.9.1: no answer within 4.5 s)" in line for line in bundle.missing)
    assert b"127.0.9.1" not in files["SUMMARY.md"]


async def test_a_bmc_of_another_node_is_said_before_all_else(make_case: MakeCase, tmp_path: Path) -> None:
    case = make_case(bmc=Logins(FakeBmc(serial="S4X1977")))
    files = unpacked((await made(case, Wish(tmp_path / "out"))).path)
    warning = files["SUMMARY.md"].decode().splitlines()[2]
    assert warning.startswith("**The BMC that answered is of S4X1977, not of S4X1931: everything below bmc/")
    assert json.loads(files["ticket.json"])["product"]["serial"] == "S4X1931"
    assert len(json.loads(files["ticket.json"])["warnings"]) == 1


async def test_a_flooded_console_is_cut_to_its_end_and_said(
    case: Case, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(console, "_MOST_BYTES", 1 << 20)
    writer = Writer(case.access.settings.console_folder("r1-n01"), "r1-n01")
    writer.open(NOW.timestamp())
    for second in range(40):
        writer.data(NOW.timestamp() + second, b"%04d %s\r\n" % (second, b"x" * 60) * 1000)
    writer.close()
    bundle = await made(case, Wish(tmp_path / "out"), (console.CONSOLE,))
    assert bundle.missing == ("console (partial: boot-0: the last 1 MB of 2)",)
    text = unpacked(bundle.path)["console/boot-0.txt"].decode()
    assert "0039 xxx" in text
    assert "0001 xxx" not in text


@pytest.mark.parametrize(
    ("leak", "names"),
    [
        (PASSWORD.encode(), "file:pw"),
        (base64.b64encode(f"oobadmin:{PASSWORD}".encode()), "file:pw"),
        (MAAS_KEY.split(":")[2].encode(), "file:maas"),
        (b"-----BEGIN RSA PRIVATE " + b"KEY-----", "a private key"),
    ],
)
@pytest.mark.parametrize("profile", list(Profile))
async def test_a_secret_anywhere_means_no_ticket_and_nothing_left_behind(
    make_case: MakeCase, tmp_path: Path, leak: bytes, names: str, profile: Profile
) -> None:
    case = make_case(host=FakeHost(HOST | {"dmesg": b"[1.0] password=" + leak + b"\n"}))
    with pytest.raises(SecretInTicket) as raised:
        await made(case, Wish(tmp_path / "out", profile=profile))
    assert str(raised.value) == f"r1-n01: no ticket was made: host/dmesg.txt holds {names}"
    assert leak.decode() not in str(raised.value)
    assert not (tmp_path / "out").exists()
    assert advice.advice_for(raised.value) == advice.Advice(
        5, "ticket-secret", "docs/runbooks/ticket-secret.md"
    )


async def test_a_secret_in_our_own_words_means_no_ticket_either(case: Case, tmp_path: Path) -> None:
    case.access.store.event("r1-n01", "power", actor="marta", message=f"power cycle: pw {PASSWORD}")
    with pytest.raises(SecretInTicket, match=r"SUMMARY\.md holds file:pw"):
        await made(case, Wish(tmp_path / "out"))


async def test_a_dump_that_cannot_be_looked_into_is_left_out(case: Case, tmp_path: Path) -> None:
    async def dump(_case: Case) -> Result:
        return Result(
            (File("bmc/vendor/tsr.zip", Opaque(b"PK\x03\x04 broken")), File("bmc/a.txt", Text(b"a")))
        )

    collector = Collector("bmc.vendor-dump", Lane.HERE, 5, dump)
    bundle = await made(case, Wish(tmp_path / "out"), (collector,))
    assert "bmc/vendor/tsr.zip" not in unpacked(bundle.path)
    assert bundle.missing == (
        "bmc.vendor-dump (partial: bmc/vendor/tsr.zip: left out: it cannot be looked into for secrets)",
    )


async def test_what_cannot_be_redacted_is_left_out(case: Case, tmp_path: Path) -> None:
    class Stubborn(Text):
        def rendered(self, redactor: object) -> bytes:
            raise RuntimeError("no")

    async def collect(_case: Case) -> Result:
        return Result((File("host/x.txt", Stubborn(b"r1-n01")),))

    bundle = await made(case, Wish(tmp_path / "out"), (Collector("host.x", Lane.HERE, 5, collect),))
    assert bundle.missing == ("host.x (error: host/x.txt: it cannot be redacted: RuntimeError)",)


async def test_logs_are_cut_to_the_limit_and_the_ticket_says_which(case: Case, tmp_path: Path) -> None:
    lines = "".join(f"{base64.b64encode(os.urandom(60)).decode()}\n" for _ in range(9000))
    case = replace(case, host=FakeHost(HOST | {"journalctl": lines.encode()}))
    bundle = await made(case, Wish(tmp_path / "out", limit=200_000))
    files = unpacked(bundle.path)
    assert bundle.size <= 200_000
    assert any(line.startswith("host/journal.txt: ") for line in bundle.missing)
    assert files["host/journal.txt"].startswith(b"[... ")
    assert json.loads(files["collection.json"])["cuts"][0]["file"] == "host/journal.txt"
    assert b"cut from the front" in files["SUMMARY.md"]


async def test_a_limit_that_nothing_can_meet_is_refused_and_nothing_is_left(
    case: Case, tmp_path: Path
) -> None:
    with pytest.raises(TicketTooLarge) as raised:
        await made(case, Wish(tmp_path / "out", limit=2000))
    assert not (tmp_path / "out").exists()
    assert advice.advice_for(raised.value) is not None


async def test_a_folder_that_cannot_be_written_is_said(case: Case, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(BadRequest, match="--out"):
        await made(case, Wish(tmp_path / "file" / "out"))


async def test_a_ticket_that_is_called_off_leaves_nothing_and_logs_out(
    make_case: MakeCase, tmp_path: Path
) -> None:
    reached = asyncio.Event()

    class Hanging(FakeBmc):
        async def sel(self) -> tuple[object, ...]:  # type: ignore[override]
            reached.set()
            await asyncio.Event().wait()
            return ()

    logins = Logins(Hanging())
    task = asyncio.ensure_future(made(make_case(bmc=logins), Wish(tmp_path / "out")))
    await reached.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert (logins.ins, logins.outs) == (1, 1)
    assert not (tmp_path / "out").exists()


async def test_the_same_evidence_gives_the_same_ticket(make_case: MakeCase, tmp_path: Path) -> None:
    async def one(_case: Case) -> Result:
        return Result((File("host/a.txt", Text(b"a 10.0.0.1 b")),), Outcome.PARTIAL, "why")

    digests = set()
    for name in ("one", "two"):
        bundle = await made(make_case(), Wish(tmp_path / name), (Collector("host.a", Lane.HERE, 5, one),))
        files: Mapping[str, bytes] = unpacked(bundle.path)
        digests.add(tuple(data for path, data in sorted(files.items()) if path not in ("collection.json",)
                          and path != "MANIFEST.sha256"))  # fmt: skip
    assert len(digests) == 1


@pytest.mark.parametrize("kind", [SecretInTicket, TicketTooLarge])
def test_every_error_of_a_ticket_has_advice(kind: type[TicketError]) -> None:
    assert kind.__module__ == errors.__name__
    assert advice.advice_for(kind.__new__(kind)) is not None


async def test_a_login_is_not_made_before_it_is_needed() -> None:
    logins = Logins(FakeBmc())
    login: Login[Bmc] = cast("Login[Bmc]", Login(logins.open))
    await login.close()
    assert logins.ins == 0
