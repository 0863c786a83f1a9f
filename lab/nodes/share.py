"""The folder that a node sees as /run/lab: facts about its hardware, faults, orders of this boot."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

from lab.nodes.boot_service import Order
from lab.nodes.disk import SIZE_BYTES
from lab.spec import NodeSpec


class Share:
    """Written from outside, read-only inside."""

    def __init__(self, folder: Path, spec: NodeSpec) -> None:
        self.folder = folder
        self.folder.mkdir(parents=True, exist_ok=True)
        self._token = folder.parent / "token"
        facts: dict[str, object] = {
            "name": spec.name,
            "serial": spec.serial,
            "number": spec.number,
            "mac": spec.mac,
        }
        facts["disk_bytes"] = SIZE_BYTES
        (folder / "facts.json").write_text(json.dumps(facts))

    @property
    def kernel_log(self) -> Path:
        """What dmesg prints inside."""
        return self.folder / "kernel.log"

    @property
    def token(self) -> str:
        """What the installer of the system on the disk was given; that system may report with it."""
        return self._token.read_text(encoding="utf-8") if self._token.exists() else ""

    def keep_token(self, token: str) -> None:
        self._token.touch(mode=0o600)
        self._token.write_text(token, encoding="utf-8")

    def prepare(self, cmdline: str, order: Order | None = None) -> None:
        """Set what the next system sees: its command line, and its order if it has one."""
        (self.folder / "cmdline").write_text(f"{cmdline}\n")
        orders = self.folder / "order"
        shutil.rmtree(orders, ignore_errors=True)
        if order is None:
            return
        orders.mkdir(mode=0o700)
        (orders / "hostname").write_text(f"{order.hostname}\n")
        (orders / "image").write_text(f"{order.image}\n")
        (orders / "ssh_keys").write_text("".join(f"{key}\n" for key in order.ssh_keys))
        (orders / "user_data").write_bytes(order.user_data)
