"""Commands on a node over the system's own OpenSSH client, so that an operator's ssh_config holds."""

from __future__ import annotations

import shlex
from dataclasses import dataclass
from pathlib import Path

from provision import processes
from provision.errors import SshFailed

_SSH_ITSELF_FAILED = 255


@dataclass(frozen=True, slots=True)
class SshTarget:
    """One node's SSH. `known_hosts` is kept per deployment: a re-imaged node has a new key."""

    node: str
    address: str
    port: int
    user: str
    key_file: Path
    known_hosts: Path

    def arguments(self, connect_timeout_s: int = 10) -> list[str]:
        """Return the ssh command line up to the destination."""
        options = {
            "BatchMode": "yes",
            "ConnectTimeout": str(connect_timeout_s),
            "IdentitiesOnly": "yes",
            "LogLevel": "ERROR",
            "ServerAliveCountMax": "3",
            "ServerAliveInterval": "5",
            "StrictHostKeyChecking": "accept-new",
            "UserKnownHostsFile": str(self.known_hosts),
        }
        flags = [word for name, value in options.items() for word in ("-o", f"{name}={value}")]
        return ["ssh", *flags, "-i", str(self.key_file), "-p", str(self.port), f"{self.user}@{self.address}"]


@dataclass(frozen=True, slots=True)
class SshResult:
    """What a command on the node left: exit status and raw output."""

    status: int
    stdout: bytes
    stderr: bytes


async def run(
    target: SshTarget,
    command: list[str],
    *,
    stdin: bytes = b"",
    timeout_s: float = 60.0,
    limit: int = 64 << 20,
) -> SshResult:
    """Run `command` on the node. Raises SshFailed when ssh itself fails, or after `timeout_s`.

    The remote command is one string to a POSIX shell there; each word is quoted here.
    At most `limit` bytes of output are taken; more than that is a failure, not a cut.
    """
    line = " ".join(shlex.quote(word) for word in command)
    try:
        ended = await processes.run(
            [*target.arguments(), line], stdin=stdin, timeout_s=timeout_s, limit=limit
        )
    except TimeoutError as error:
        raise SshFailed(target.node, f"no answer within {timeout_s:.0f} s", answered=False) from error
    except processes.TooMuchOutput as error:
        raise SshFailed(target.node, str(error), answered=True) from error
    if ended.status == _SSH_ITSELF_FAILED:
        reason = _last_line(ended.stderr) or "ssh gave no reason"
        raise SshFailed(target.node, reason, answered="refused" in reason or "denied" in reason)
    return SshResult(ended.status, ended.stdout, ended.stderr)


def _last_line(text: bytes) -> str:
    lines = text.decode("utf-8", "replace").strip().splitlines()
    return lines[-1].strip() if lines else ""
