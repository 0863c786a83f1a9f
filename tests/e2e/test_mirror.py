"""The mirror's commands as an operator types them, against a mirror as it is deployed."""

from __future__ import annotations

import hashlib
import http.server
import json
import os
import shutil
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import pytest

from tests.contract.mirror.bench import ROOT, TOKEN, Served, serving, sha256, wait_for

INVOKE = str(Path(sys.executable).parent / "invoke")


@dataclass
class Keyboard:
    """Commands of one operator at one site."""

    mirror: Served
    environment: dict[str, str]

    def start(self, *words: str) -> subprocess.Popen[str]:
        return subprocess.Popen(
            [INVOKE, *words], cwd=ROOT, env=self.environment, stdin=subprocess.DEVNULL, text=True,
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True,
        )  # fmt: skip

    def type(self, *words: str) -> tuple[int, str, str]:
        out, err = (process := self.start(*words)).communicate(timeout=200)
        return process.returncode, out, err


def write_site(folder: Path, url: str, more: str = "") -> Path:
    """Write a site that names this mirror; its nodes are the example's."""
    site = folder / "site"
    shutil.copytree(ROOT / "inventory" / "sites" / "example", site)
    text = (site / "site.yaml").read_text()
    (site / "site.yaml").write_text(f"{text}\nmirror: {{url: '{url}', token: env:MIRROR_TOKEN}}\n{more}")
    return site


@pytest.fixture
def keyboard(tmp_path: Path) -> Iterator[Keyboard]:
    with serving(tmp_path, tmp_path / "root", "reserve_bytes: 0\n") as served:
        environment = {
            **os.environ,
            "MUSTER_SITE": str(write_site(tmp_path, served.url)),
            "MUSTER_STATE": str(tmp_path / "state"),
            "MIRROR_TOKEN": TOKEN,
            "MUSTER_WHO": "ana",
        }
        yield Keyboard(served, environment)


def arrived(served: Served) -> int:
    return sum(path.stat().st_size for path in (served.root / "partial").glob("*.data"))


@pytest.mark.timeout(300)
def test_a_put_killed_half_way_goes_on_and_is_verified(keyboard: Keyboard, tmp_path: Path) -> None:
    size = 256 << 20
    path = tmp_path / "image.tar"
    path.write_bytes(os.urandom(1 << 20) * (size >> 20))
    digest = hashlib.sha256(path.read_bytes()).hexdigest()
    process = keyboard.start("mirror.put", "--file", str(path), "--name", "images/train.tar")
    wait_for(lambda: arrived(keyboard.mirror) > size // 2, "half of the upload")
    os.killpg(process.pid, signal.SIGKILL)
    process.communicate()
    there = arrived(keyboard.mirror)
    assert size // 2 < there < size
    assert "images/train.tar" not in keyboard.type("mirror.list")[1]
    status, out, err = keyboard.type("mirror.put", "--file", str(path), "--name", "images/train.tar")
    assert (status, out) == (0, f"{digest}  images/train.tar  268.4 MB\n"), err
    lines = [json.loads(line) for line in (tmp_path / "writes.log").read_text().splitlines()]
    parts = [line["length"] for line in lines if line["method"] == "PATCH"]
    assert parts[-1] <= size - there  # only the rest was sent
    status, _, err = keyboard.type("mirror.verify")
    assert (status, err) == (0, "1 of 1 files intact\n")
    assert keyboard.type("mirror.get", "--name", "images/train.tar", "--out", str(tmp_path / "back"))[0] == 0
    assert hashlib.sha256((tmp_path / "back").read_bytes()).hexdigest() == digest


@pytest.mark.timeout(300)
def test_the_commands_say_what_happened_and_what_to_do(keyboard: Keyboard, tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"one")
    (tmp_path / "b").write_bytes(b"two")
    assert keyboard.type("mirror.put", "--file", str(tmp_path / "a"), "--name", "f")[0] == 0
    status, _, err = keyboard.type("mirror.put", "--file", str(tmp_path / "b"), "--name", "f")
    assert status == 3
    assert err.splitlines()[0] == "error: mirror: the name is taken"
    assert "--replace" in err
    assert keyboard.type("mirror.put", "--file", str(tmp_path / "b"), "--name", "f", "--replace")[0] == 0
    assert keyboard.type("mirror.pin", "--name", sha256(b"one"), "--reason", "the old release")[0] == 0
    assert "0 files would go" in keyboard.type("mirror.gc", "--older-than", "0d", "--dry-run")[2]
    assert keyboard.type("mirror.pin", "--name", sha256(b"one"), "--remove")[0] == 0
    status, _, err = keyboard.type("mirror.gc", "--older-than", "0d")
    assert (status, "--yes" in err) == (3, True)
    assert "1 files removed" in keyboard.type("mirror.gc", "--older-than", "0d", "--yes")[2]
    status, _, err = keyboard.type("mirror.get", "--name", "none", "--out", str(tmp_path / "x"))
    assert (status, "invoke mirror.list" in err) == (5, True)
    keyboard.environment["MIRROR_TOKEN"] = "wrong-one"
    status, _, err = keyboard.type("mirror.put", "--file", str(tmp_path / "a"))
    assert (status, "wrong-one" in err) == (5, False)


@pytest.fixture
def outside(tmp_path: Path) -> Iterator[tuple[str, list[str]]]:
    """A server outside of the site, and what was asked of it."""
    folder = tmp_path / "outside"
    folder.mkdir()
    (folder / "driver.run").write_bytes(b"driver" * 1000)
    asked: list[str] = []

    class Handler(http.server.SimpleHTTPRequestHandler):
        def log_message(self, format: str, *values: object) -> None:
            asked.append(str(values[0]))

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), partial(Handler, directory=str(folder)))
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}", asked
    server.shutdown()
    server.server_close()
    thread.join()


@pytest.mark.timeout(300)
def test_one_copy_comes_from_outside_and_only_the_right_one(
    keyboard: Keyboard, outside: tuple[str, list[str]]
) -> None:
    url, asked = outside
    digest = sha256(b"driver" * 1000)
    words = ("mirror.fetch", "--url", f"{url}/driver.run", "--sha256")
    status, _, err = keyboard.type(*words, "ab" * 32)
    assert (status, "mirror-digest" in err) == (2, True)
    assert keyboard.type(*words, digest)[0] == 0
    before = len(asked)
    status, _, err = keyboard.type(*words, digest)
    assert (status, err) == (0, "the mirror had it: nothing came from outside\n")
    assert len(asked) == before
    status, _, err = keyboard.type("mirror.fetch", "--url", f"{url}/none", "--sha256", "cd" * 32)
    assert (status, "404" in err) == (4, True)
