"""A mirror as it is deployed: the service in a process of its own, behind a real nginx."""

from __future__ import annotations

import hashlib
import os
import shutil
import signal
import socket
import ssl
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from inventory.secrets import Secret
from provision.mirror.client import Credentials, Mirror

ROOT = Path(__file__).resolve().parents[3]
TOKEN, OTHER = "open-sesame", "open-barley"
_UP_S = 60.0


@dataclass
class Served:
    """One mirror in `folder`: `root` is its store, `url` where nginx answers."""

    folder: Path
    root: Path
    url: str
    tls: ssl.SSLContext | None = None
    _service: list[subprocess.Popen[bytes]] = field(default_factory=list)

    @property
    def incoming(self) -> list[Path]:
        """What nginx is writing, and what it left."""
        return list((self.root / "incoming").iterdir())

    def kill_workers(self) -> None:
        """Kill nginx's workers as the kernel would; nginx begins new ones."""
        master = int((self.folder / "nginx.pid").read_text())
        for worker in Path(f"/proc/{master}/task/{master}/children").read_text().split():
            os.kill(int(worker), signal.SIGKILL)

    def client(self, token: str = TOKEN) -> Mirror:
        return Mirror(self.url, Credentials(Secret(token) if token else None))

    def start(self) -> None:
        """Start the service; nginx runs all the time, as it does on a real host."""
        self._service.append(
            subprocess.Popen(
                [
                    sys.executable,
                    "-m",
                    "provision.mirror.serve",
                    "--config",
                    str(self.folder / "mirror.yaml"),
                ],
                cwd=ROOT,
            )
        )
        wait_for(lambda: _status(f"{self.url}/healthz", self.tls) == 200, "the service to answer")

    def kill(self, number: signal.Signals = signal.SIGKILL) -> None:
        """End the service the hard way."""
        service = self._service.pop()
        service.send_signal(number)
        service.wait(20)

    def close(self) -> None:
        while self._service:
            self.kill(signal.SIGTERM)


def wait_for(true: Callable[[], bool], what: str) -> None:
    deadline = time.monotonic() + _UP_S
    while not true():
        assert time.monotonic() < deadline, f"waited {_UP_S:.0f} s for {what}"
        time.sleep(0.02)


def _status(url: str, tls: ssl.SSLContext | None = None) -> int:
    try:
        with urllib.request.urlopen(url, timeout=5, context=tls) as answer:
            return int(answer.status)
    except urllib.error.HTTPError as error:
        error.close()
        return error.code
    except OSError:
        return 0


def _listens(port: int) -> bool:
    try:
        socket.create_connection(("127.0.0.1", port), 5).close()
    except OSError:
        return False
    return True


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as opened:
        return int(opened.getsockname()[1])


def sha256(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def write_config(folder: Path, root: Path, extra: str = "") -> None:
    """Write what the service reads, with two identities that may write."""
    tokens = "".join(
        f"{name} sha256:{sha256(token.encode())}\n" for name, token in (("ana", TOKEN), ("ben", OTHER))
    )
    (folder / "tokens").write_text(tokens)
    (folder / "mirror.yaml").write_text(
        f"root: {root}\nlisten: unix:{folder}/service.sock\ntokens: {folder}/tokens\n"
        f"access_log: {folder}/writes.log\n{extra}"
    )


@contextmanager
def nginx(folder: Path, port: int) -> Iterator[None]:
    """Run nginx with the part of its configuration that the service prints."""
    part = subprocess.run(
        [sys.executable, "-m", "provision.mirror.serve", "--config", str(folder / "mirror.yaml"),
         "--print-nginx", f"127.0.0.1:{port}"],
        cwd=ROOT, check=True, capture_output=True, text=True,
    ).stdout.replace("/var/log/nginx/muster-mirror.log", f"{folder}/reads.log")  # fmt: skip
    with run_nginx(folder, port, part):
        yield


@contextmanager
def run_nginx(folder: Path, port: int, part: str) -> Iterator[None]:
    """Run nginx with `part` of its configuration."""
    temporary = "".join(
        f"{name}_temp_path {folder}/nginx-{name};\n"
        for name in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
    )
    user = "user root;\n" if os.geteuid() == 0 else ""
    (folder / "nginx.conf").write_text(
        f"{user}daemon off;\nworker_processes 1;\npid {folder}/nginx.pid;\nerror_log {folder}/nginx.err;\n"
        f"events {{ worker_connections 1024; }}\nhttp {{\n{temporary}{part}}}\n"
    )
    words = ["nginx", "-e", f"{folder}/nginx.err", "-c", f"{folder}/nginx.conf"]
    process = subprocess.Popen(words)
    try:
        wait_for(lambda: _listens(port), "nginx to listen")
        yield
    finally:
        process.terminate()
        process.wait(20)


@contextmanager
def serving(folder: Path, root: Path, extra: str = "") -> Iterator[Served]:
    """Serve a mirror whose store is `root`."""
    if shutil.which("nginx") is None:
        pytest.skip("nginx is not installed")
    port = free_port()
    write_config(folder, root, extra)
    root.mkdir(exist_ok=True)
    with nginx(folder, port):
        served = Served(folder, root, f"http://127.0.0.1:{port}")
        try:
            served.start()
            yield served
        finally:
            served.close()
