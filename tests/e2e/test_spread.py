"""mirror.spread as an operator types it, to hosts that are network namespaces.

The lab's nodes have no libtorrent; these hosts do. What stands for ssh here runs the same command line
in the host's namespace, with a folder of the host's own mounted where the file is to go.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from benchmarks.spread import NET, PORT, TOKEN, inside, mirror, network, sent
from provision.mirror.client import File
from tests.contract.mirror.bench import ROOT, wait_for

pytestmark = [pytest.mark.lab, pytest.mark.timeout(300)]
SIZE = 24 << 20
DEST = "/var/tmp/muster-spread/image.tar"
HOSTS = 4
SSH = """#!/bin/sh
# the last two words are USER@HOST and the command
for word; do before=$host; host=$word; done
host=${{before#*@}}
space=$(cat {folder}/space-$host)
exec nsenter --net=/run/netns/$space unshare -m sh -c '
  mkdir -p /var/tmp/muster-spread && mount --bind "$1" /var/tmp/muster-spread || exit 1
  PATH="$2:$PATH" exec sh -c "$3"
' sh {folder}/disk-$host {python} "$word"
"""


@dataclass
class Floor:
    """Hosts with one mirror, and an operator beside it."""

    folder: Path
    spaces: list[str]
    file: File
    environment: dict[str, str]

    def start(self, *more: str) -> subprocess.Popen[str]:
        invoke = str(Path(sys.executable).parent / "invoke")
        words = ("mirror.spread", "--file", self.file.sha256, "--dest", DEST, "--rack", "r1", *more)
        return subprocess.Popen(
            inside(self.spaces[0], invoke, *words), cwd=ROOT, env=self.environment, text=True,
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        )  # fmt: skip

    def disk(self, number: int) -> Path:
        return self.folder / f"disk-{NET}.{number + 2}"

    def has(self, number: int) -> bool:
        path = self.disk(number) / "image.tar"
        return path.exists() and path.read_bytes() == self.content()

    def content(self) -> bytes:
        return (self.folder / "root" / "sha256" / self.file.sha256).read_bytes()


def write_site(folder: Path) -> Path:
    site = folder / "site"
    site.mkdir()
    (site / "site.yaml").write_text(
        "name: spread\nmaas: {url: 'http://127.0.0.1:1/MAAS', key: env:NONE}\n"
        f"ssh: {{user: root, key: 'file:{folder}/key'}}\n"
        "credentials: {c: {username: u, password: env:NONE}}\n"
        f"mirror: {{url: 'http://{NET}.1:{PORT}', token: env:MIRROR_TOKEN}}\n"
    )
    (site / "profiles.yaml").write_text("profiles: {p: {}}\n")
    nodes = "".join(
        f"      n{number}: {{bmc: 127.65.9.{number + 1}, address: {NET}.{number + 2}}}\n"
        for number in range(HOSTS)
    )
    (site / "racks.yaml").write_text(
        "racks:\n  r1:\n    profile: p\n    bmc: {credential: c}\n    nodes:\n" + nodes
    )
    return site


@pytest.fixture
def floor() -> Iterator[Floor]:
    if os.geteuid() != 0:
        pytest.skip("namespaces need root")
    folder = Path("/dev/shm") / f"muster-spread-{os.getpid()}"
    folder.mkdir()
    try:
        with network(HOSTS, 100) as spaces, mirror(spaces[0], folder, SIZE) as file:
            (folder / "key").write_text("not a key: nothing here speaks SSH")
            (folder / "key").chmod(0o600)
            for number, space in enumerate(spaces[1:]):
                (folder / f"space-{NET}.{number + 2}").write_text(space)
                (folder / f"disk-{NET}.{number + 2}").mkdir()
            tools = folder / "bin"
            tools.mkdir()
            (tools / "ssh").write_text(SSH.format(folder=folder, python=Path(sys.executable).parent))
            (tools / "ssh").chmod(0o755)
            environment = {
                **os.environ,
                "PATH": f"{tools}:{os.environ['PATH']}",
                "MUSTER_SITE": str(write_site(folder)),
                "MUSTER_STATE": str(folder / "state"),
                "MIRROR_TOKEN": TOKEN,
            }
            yield Floor(folder, spaces, file, environment)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def test_all_have_it_and_the_mirror_sent_one_copy(floor: Floor) -> None:
    before = sent(floor.spaces[0])
    out, err = (process := floor.start()).communicate(timeout=200)
    assert (process.returncode, out) == (0, "n[0-3]  from each other\n"), err
    assert "4 of 4 nodes have it; the mirror sent 25.2 MB" in err
    assert sent(floor.spaces[0]) - before < 1.3 * SIZE
    assert all(floor.has(number) for number in range(HOSTS))
    assert [path.name for path in floor.disk(0).iterdir()] == ["image.tar"]  # nothing else is left
    out, _ = floor.start().communicate(timeout=200)
    assert out == "n[0-3]  had it\n"


def test_what_a_lost_node_was_to_bring_comes_from_the_mirror(floor: Floor) -> None:
    process = floor.start()
    part = floor.disk(3)
    wait_for(lambda: bool(list(part.glob(".spread-*/*"))), "the last node's agent")
    lost = subprocess.check_output(["ip", "netns", "pids", floor.spaces[4]], text=True).split()
    for pid in lost:
        with contextlib.suppress(ProcessLookupError):
            os.kill(int(pid), signal.SIGKILL)
    out, err = process.communicate(timeout=250)
    assert (process.returncode, out) == (2, "n[0-2]  from each other\n"), err
    assert "n3" in err
    assert all(floor.has(number) for number in range(3))
    assert not floor.has(3)


def test_a_file_that_is_not_what_it_promises_is_placed_nowhere(floor: Floor) -> None:
    content = floor.folder / "root" / "sha256" / floor.file.sha256
    content.chmod(0o644)
    with content.open("r+b") as file:
        file.write(b"rot")
    out, err = (process := floor.start("--http")).communicate(timeout=200)
    assert (process.returncode, out) == (2, ""), err
    assert "promised was" in err
    assert not any((floor.disk(number) / "image.tar").exists() for number in range(HOSTS))
