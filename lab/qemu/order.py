"""What MAAS wants of a node at its next boot, and how the node is told."""

from __future__ import annotations

import json
import shlex
from dataclasses import dataclass, field
from enum import StrEnum

from lab.qemu.errors import BootServiceFailed
from lab.qemu.recipe import KERNEL_ARGUMENTS


class Intent(StrEnum):
    """Why a node is let boot from the network."""

    COMMISSION = "commission"
    ENLIST = "enlist"
    INSTALL = "install"
    LOCAL = "local"
    NOTHING = "nothing"
    RESCUE = "rescue"
    TEST = "test"


@dataclass(frozen=True, slots=True)
class BootOrder:
    """MAAS's answer to one network boot. `user_data` is base64, as its giver wrote it."""

    intent: Intent
    hostname: str = ""
    token: str = field(default="", repr=False)
    image: str = ""
    ssh_keys: tuple[str, ...] = ()
    user_data: str = field(default="", repr=False)
    ephemeral: bool = False


def read_order(node: str, body: bytes) -> BootOrder:
    """Read the boot service's JSON. Raises BootServiceFailed, which never repeats a token."""
    try:
        answer: dict[str, object] = dict(json.loads(body))
        keys = answer.get("ssh_keys")
        return BootOrder(
            intent=Intent(str(answer["intent"])),
            hostname=_text(answer, "hostname"),
            token=_text(answer, "token"),
            image=_text(answer, "image"),
            ssh_keys=tuple(str(key) for key in keys) if isinstance(keys, list) else (),
            user_data=_text(answer, "user_data"),
            ephemeral=bool(answer.get("ephemeral")),
        )
    except (ValueError, KeyError, TypeError) as exc:
        raise BootServiceFailed(
            node, "MAAS's boot service gave an answer that is no boot order", follow="read the lab's log"
        ) from exc


def shell_order(order: BootOrder, *, address: str, image_bytes: int) -> str:
    """Return the order as assignments that a POSIX shell can read, whatever the values hold."""
    values = {
        "intent": str(order.intent),
        "hostname": order.hostname,
        "token": order.token,
        "image": order.image or "the lab's OS image",
        "image_bytes": str(image_bytes),
        "ssh_keys": "\n".join(order.ssh_keys),
        "user_data": order.user_data,
        "ephemeral": "yes" if order.ephemeral else "",
        "address": address,
    }
    return "".join(f"{name}={shlex.quote(value)}\n" for name, value in values.items())


def boot_script(order: BootOrder, server: str) -> str:
    """Return the iPXE script that does what the order says; `server` has the netboot environment."""
    if order.intent is Intent.LOCAL:
        return "#!ipxe\necho Booting from disk\nexit\n"
    if order.intent is Intent.NOTHING:
        return "#!ipxe\necho MAAS has nothing for this machine\npoweroff || exit\n"
    return (
        "#!ipxe\n"
        f"echo MAAS says {order.intent}\n"
        f"kernel {server}/kernel {KERNEL_ARGUMENTS}\n"
        f"initrd {server}/initrd\n"
        "boot\n"
    )


def _text(answer: dict[str, object], key: str) -> str:
    value = answer.get(key)
    return "" if value is None else str(value)
