"""The lab's own secrets, made at its first start and kept until it is wiped."""

from __future__ import annotations

import os
import secrets
import subprocess
from dataclasses import dataclass, field
from pathlib import Path


@dataclass(frozen=True, slots=True)
class LabSecrets:
    """What opens the lab. `maas_key` is `consumer:token:secret`."""

    bmc_password: str = field(repr=False)
    maas_key: str = field(repr=False)
    public_key: str


def ensure_secrets(folder: Path) -> LabSecrets:
    """Read the secrets, making those that are missing; the files are for their owner only."""
    folder.mkdir(parents=True, exist_ok=True)
    folder.chmod(0o700)
    # IPMI 2.0 takes at most 20 bytes, and some clients cut at 16.
    password = _keep(folder / "bmc-password", secrets.token_hex(8))
    key = _keep(folder / "maas-key", f"{secrets.token_hex(9)}:{secrets.token_hex(9)}:{secrets.token_hex(16)}")
    private = folder / "ssh_key"
    if not private.exists():
        subprocess.run(
            ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", "muster-lab", "-f", str(private)],
            check=True,
            stdin=subprocess.DEVNULL,
        )
    return LabSecrets(password, key, private.with_suffix(".pub").read_text(encoding="utf-8").strip())


def _keep(path: Path, fresh: str) -> str:
    if not path.exists():
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(descriptor, "w", encoding="utf-8") as file:
            file.write(f"{fresh}\n")
    return path.read_text(encoding="utf-8").strip()
