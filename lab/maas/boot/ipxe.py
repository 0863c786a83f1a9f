"""iPXE scripts for machines that boot for real."""

from __future__ import annotations

from dataclasses import dataclass, field

from lab.maas.boot.intent import Intent


@dataclass(frozen=True, slots=True)
class BootAssets:
    """Where QEMU machines load a kernel from, and what it is told.

    `kernel` and `initrd` are URLs; in `arguments` the words {mac}, {intent}, {token}, {system_id},
    {hostname}, {image} and {url} (this server's address) are replaced. `initrds` names another
    initrd for single intents.
    """

    kernel: str
    initrd: str
    arguments: str = "console=ttyS0 muster_url={url} muster_mac={mac} muster_token={token}"
    initrds: dict[Intent, str] = field(default_factory=dict)


LOCAL = "#!ipxe\necho Booting from disk\nexit\n"
POWER_OFF = "#!ipxe\necho MAAS has nothing for this machine\npoweroff || exit\n"


def netboot_script(assets: BootAssets | None, intent: Intent, words: dict[str, str]) -> str:
    """Write the iPXE script for a boot; without assets a machine is told so and tries its disk."""
    if intent is Intent.LOCAL:
        return LOCAL
    if intent is Intent.NOTHING:
        return POWER_OFF
    if assets is None:
        return f"#!ipxe\necho MAAS wants {intent} but has no boot assets\nsleep 5\nexit 1\n"
    told = assets.arguments
    for name, value in {**words, "intent": str(intent)}.items():
        told = told.replace("{" + name + "}", value)
    initrd = assets.initrds.get(intent, assets.initrd)
    return (
        "#!ipxe\n"
        f"echo MAAS says {intent} to {words['hostname']}\n"
        f"kernel {assets.kernel} initrd=initrd.magic {told}\n"
        f"initrd {initrd}\n"
        "boot\n"
    )
