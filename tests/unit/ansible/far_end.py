"""A stand-in for ssh and sshd on this machine: the line runs in a shell of a process that is not ssh's child.

As over a network, an ssh that is killed closes what the far end reads, and nothing else; or, where the
network is `silent`, not even that.
"""

from __future__ import annotations

import contextlib
import json
import os
import socket
import stat
import subprocess
import sys
import threading
from pathlib import Path

_BLOCK = 1 << 16
_SSH = """#!{python} -IS
import json, os, socket, sys, threading
near = socket.socket(socket.AF_UNIX)
near.connect({address!r})
near.sendall(json.dumps([sys.argv[-1], os.getpid()]).encode() + b"\\n")
def feed():
    while data := os.read(0, 65536):
        near.sendall(data)
    near.shutdown(socket.SHUT_WR)
threading.Thread(target=feed, daemon=True).start()
while data := near.recv(65536):
    os.write(1, data)
os._exit(int(open({address!r} + str(os.getpid())).read()))
"""


class FarEnd:
    """Serves the stand-in of ssh in `folder`; lines run with `home` as their folder and HOME."""

    def __init__(self, folder: Path, home: Path) -> None:
        self.silent = False
        self._home = home
        self._address = address = str(folder / "s")
        self.program = folder / "ssh"
        self.program.write_text(_SSH.format(python=sys.executable, address=address))
        self.program.chmod(stat.S_IRWXU)
        self._listening = socket.socket(socket.AF_UNIX)
        self._listening.bind(address)
        self._listening.listen()
        threading.Thread(target=self._accept, daemon=True).start()

    def close(self) -> None:
        """Take no more connections."""
        with contextlib.suppress(OSError):
            self._listening.shutdown(socket.SHUT_RDWR)
        self._listening.close()

    def cut(self) -> None:
        """Kill every ssh that is connected."""
        for entry in Path("/proc").iterdir():
            with contextlib.suppress(OSError):
                words = (entry / "cmdline").read_bytes().split(b"\0") if entry.name.isdigit() else []
                if len(words) > 2 and words[0] == sys.executable.encode() and words[2] == bytes(self.program):
                    os.kill(int(entry.name), 9)

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                far, _ = self._listening.accept()
                threading.Thread(target=self._serve, args=(far,), daemon=True).start()

    def _serve(self, far: socket.socket) -> None:
        reader = far.makefile("rb")
        line, ssh = json.loads(reader.readline())
        shell = subprocess.Popen(
            ["/bin/sh", "-c", line], cwd=self._home, env={**os.environ, "HOME": str(self._home)},
            stdin=subprocess.PIPE, stdout=subprocess.PIPE,
        )  # fmt: skip
        assert shell.stdin is not None
        assert shell.stdout is not None
        fed = threading.Thread(target=self._feed, args=(reader, shell), daemon=True)
        fed.start()
        with contextlib.suppress(OSError):
            while data := os.read(shell.stdout.fileno(), _BLOCK):
                far.sendall(data)
        if not self.silent:
            shell.stdin.close()
        Path(f"{self._address}{ssh}").write_text(str(shell.wait()))
        with contextlib.suppress(OSError):
            far.shutdown(socket.SHUT_RDWR)
        fed.join()
        for each in (shell.stdin, shell.stdout, reader, far):
            with contextlib.suppress(OSError):
                each.close()

    def _feed(self, reader: object, shell: subprocess.Popen[bytes]) -> None:
        assert shell.stdin is not None
        with contextlib.suppress(OSError, ValueError):
            while data := reader.read1(_BLOCK):  # type: ignore[attr-defined]
                shell.stdin.write(data)
                shell.stdin.flush()
        if not self.silent:
            with contextlib.suppress(OSError):
                shell.stdin.close()
