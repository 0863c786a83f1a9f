"""What is asked of Ansible: one play on one node, and how it gets there."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path


class Transport(StrEnum):
    """Where a play's own work is done.

    SSH: here, one task after the other sent to the node. WORKER: on the node, which is sent the whole
    play and tells how it goes, so that hundreds of nodes cost the host of the run little.
    """

    SSH = "ssh"
    WORKER = "worker"


@dataclass(frozen=True, slots=True)
class PlayRequest:
    """One play on one node. `extra_vars` are written to disk: no secrets in them.

    `known_hosts` is the file that pins the node's host key: the first key seen is kept and another
    is refused, so whoever re-images the node gives a new file. `artifacts` is a folder that gets
    `ansible.log`. `vars_folder` is where the site keeps its `group_vars` and `host_vars`.
    """

    playbook: Path
    node: str
    address: str
    key_file: Path
    known_hosts: Path
    artifacts: Path
    port: int = 22
    user: str = "root"
    become: bool = True
    extra_vars: Mapping[str, object] = field(default_factory=dict)
    groups: tuple[str, ...] = ()
    vars_folder: Path | None = None
    tags: tuple[str, ...] = ()
    timeout_s: float = 1800.0
    check: bool = False
    forks: int = 1
    transport: Transport = Transport.SSH

    def options(self) -> str:
        """Return the options of ansible-playbook."""
        words = [word for word, on in (("--check", self.check),) if on]
        words += ["--tags", ",".join(self.tags)] if self.tags else []
        return " ".join(words)

    def inventory(self) -> dict[str, object]:
        """Return the inventory: this node, and the groups that it is in."""
        host: dict[str, object] = {
            "ansible_host": self.address,  # roles ask for it, also on the node itself
            # Asking the node for its Python costs a round trip; every image has this one.
            "ansible_python_interpreter": "/usr/bin/python3",
        }
        if self.transport is Transport.WORKER:
            # Root from its start, where it may be. Playbooks leave a reboot to us.
            host |= {"ansible_connection": "local", "muster_on_node": True}
        else:
            host |= self._reached()
        groups: dict[str, object] = {name: {"hosts": {self.node: {}}} for name in self.groups}
        return {"all": {"hosts": {self.node: host}, "children": groups}}

    def _reached(self) -> dict[str, object]:
        return {
            "ansible_port": self.port,
            "ansible_user": self.user,
            "ansible_ssh_private_key_file": str(self.key_file.resolve()),
            "ansible_become": self.become,
        }
