"""Plays that need no node: each says itself that it runs on this machine."""

from __future__ import annotations

import socket
from collections.abc import Callable
from pathlib import Path

import pytest

from provision.ansible import PlayRequest

HEAD = "- name: Try\n  hosts: all\n  connection: local\n  gather_facts: false\n  become: false\n  tasks:\n"


@pytest.fixture
def request_for(tmp_path: Path) -> Callable[..., PlayRequest]:
    """Return a request for a play of the given tasks, or for a whole playbook where `head` is empty."""

    def make(tasks: str, *, head: str = HEAD, **changes: object) -> PlayRequest:
        playbook = tmp_path / "plays" / "play.yml"
        playbook.parent.mkdir(exist_ok=True)
        body = "".join(f"    {line}\n" for line in tasks.splitlines()) if head else tasks
        playbook.write_text(head + body, encoding="utf-8")
        plain: dict[str, object] = {
            "playbook": playbook,
            "node": "r7-n01",
            "address": "127.0.0.1",
            "key_file": tmp_path / "key",
            "known_hosts": tmp_path / "known_hosts",
            "artifacts": tmp_path / "artifacts",
        }
        return PlayRequest(**(plain | changes))  # type: ignore[arg-type]

    return make


@pytest.fixture
def unused_port() -> int:
    """A port on which nobody listens."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port
