"""Packing: the same files give the same bytes, and what does not fit is cut where it hurts least."""

from __future__ import annotations

import hashlib
import io
import json
import random
import subprocess
import tarfile
from datetime import UTC, datetime
from pathlib import Path

import pytest

from provision.ticket.pack import Cut, archive, fit, manifest, publish

TIME = datetime(2026, 8, 21, 14, 51, tzinfo=UTC)
FILES = {"b/two.txt": b"two\n", "a.txt": b"one\n", "b/three.bin": bytes(range(256))}


def noise(lines: int, seed: int) -> bytes:
    """Return a log that does not compress to nothing, each line with its number."""
    numbers = random.Random(seed)
    return b"".join(b"%06d %x\n" % (line, numbers.getrandbits(256)) for line in range(lines))


def test_the_same_files_give_the_same_bytes_in_whatever_order_they_came() -> None:
    turned = dict(reversed(FILES.items()))
    assert archive(FILES, top="t", time=TIME) == archive(turned, top="t", time=TIME)


def test_every_file_is_there_sorted_for_its_owner_only() -> None:
    with tarfile.open(fileobj=io.BytesIO(archive(FILES, top="t", time=TIME))) as tape:
        members = tape.getmembers()
        names = [member.name for member in members]
        assert names == sorted(names) == ["t/MANIFEST.sha256", "t/a.txt", "t/b/three.bin", "t/b/two.txt"]
        assert {(m.mode, m.uid, m.gid, m.uname, m.mtime) for m in members} == {
            (0o600, 0, 0, "", TIME.timestamp())
        }


def test_the_manifest_is_what_sha256sum_checks(tmp_path: Path) -> None:
    with tarfile.open(fileobj=io.BytesIO(archive(FILES, top="t", time=TIME))) as tape:
        tape.extractall(tmp_path, filter="data")
    check = ["sha256sum", "--check", "--strict", "MANIFEST.sha256"]
    assert subprocess.run(check, cwd=tmp_path / "t", capture_output=True, check=False).returncode == 0
    (tmp_path / "t" / "a.txt").write_text("other")
    assert subprocess.run(check, cwd=tmp_path / "t", capture_output=True, check=False).returncode == 1


def test_what_fits_is_left_alone() -> None:
    fitted = fit(FILES, 100_000)
    assert fitted.files == FILES
    assert fitted.cuts == ()


def test_the_largest_log_is_cut_at_the_front_and_says_so() -> None:
    files = {
        "host/journal.txt": noise(4000, 1),
        "host/dmesg.txt": noise(200, 2),
        "bmc/sel.json": noise(500, 3),
    }
    fitted = fit(files, 120_000)
    assert fitted.size <= 120_000
    (cut,) = fitted.cuts
    data = fitted.files["host/journal.txt"]
    assert cut == Cut(
        "host/journal.txt", len(files["host/journal.txt"]) - len(data) + len(data.split(b"\n")[0]) + 1
    )
    first, second, *_ = data.splitlines()
    assert first == f"[... {cut.bytes} bytes cut from the front to fit the size limit ...]".encode()
    assert files["host/journal.txt"].endswith(data.split(b"\n", 1)[1])
    assert second[:6].isdigit()
    assert fitted.files["bmc/sel.json"] == files["bmc/sel.json"]
    assert fitted.files["host/dmesg.txt"] == files["host/dmesg.txt"]
    assert fitted.size > 60_000  # not more than it must


def test_a_cut_cast_can_still_be_replayed() -> None:
    rows = [json.dumps([at, "o", f"{random.Random(at).getrandbits(200):x}"]) for at in range(2000)]
    files = {"console/boot-0.cast": "\n".join(['{"version": 2}', *rows, ""]).encode()}
    fitted = fit(files, 40_000)
    header, note, *rest = (json.loads(line) for line in fitted.files["console/boot-0.cast"].splitlines())
    assert header == {"version": 2}
    assert note[1] == "m"
    assert "cut from the front" in note[2]
    assert rest[-1] == json.loads(rows[-1])
    assert 0 < len(rest) < 2000


def test_a_dump_goes_only_after_every_log_was_cut() -> None:
    files = {"bmc/vendor/tsr.zip": random.Random(1).randbytes(90_000), "host/journal.txt": noise(1000, 1)}
    assert {cut.file for cut in fit(files, 105_000).cuts} == {"host/journal.txt"}
    cuts = {cut.file: cut for cut in fit(files, 50_000).cuts}
    assert cuts["bmc/vendor/tsr.zip"].whole
    assert str(cuts["bmc/vendor/tsr.zip"]) == "bmc/vendor/tsr.zip: left out"


def test_what_cannot_be_cut_stays_and_the_size_says_so() -> None:
    files = {"bmc/sel.json": random.Random(1).randbytes(9000)}
    fitted = fit(files, 1000)
    assert fitted.files == files
    assert fitted.size > 1000


def test_an_archive_and_its_digest_are_published_together(tmp_path: Path) -> None:
    digest = publish(tmp_path / "t.tar.gz", b"data")
    assert digest == hashlib.sha256(b"data").hexdigest()
    assert (tmp_path / "t.tar.gz.sha256").read_text() == f"{digest}  t.tar.gz\n"
    assert {oct(path.stat().st_mode & 0o777) for path in tmp_path.iterdir()} == {"0o600"}


@pytest.mark.parametrize("there", ["t.tar.gz", "t.tar.gz.sha256"])
def test_nothing_is_written_over_and_nothing_half_made_is_left(tmp_path: Path, there: str) -> None:
    (tmp_path / there).write_text("mine")
    with pytest.raises(FileExistsError):
        publish(tmp_path / "t.tar.gz", b"data")
    assert [path.name for path in tmp_path.iterdir()] == [there]
    assert (tmp_path / there).read_text() == "mine"


def test_the_manifest_names_each_file_once() -> None:
    assert manifest({"a": b""}).decode() == f"{hashlib.sha256(b'').hexdigest()}  a\n"
