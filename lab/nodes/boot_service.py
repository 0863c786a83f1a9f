"""What a node's firmware and installer ask of MAAS, and what they report, over HTTP."""

from __future__ import annotations

import base64
import binascii
import logging
from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import StrEnum

import aiohttp

log = logging.getLogger(__name__)

_TIMEOUT = aiohttp.ClientTimeout(total=10.0)


class Intent(StrEnum):
    """What MAAS wants of a node that booted from the network."""

    COMMISSION = "commission"
    ENLIST = "enlist"
    INSTALL = "install"
    TEST = "test"
    RESCUE = "rescue"
    LOCAL = "local"
    NOTHING = "nothing"


@dataclass(frozen=True, slots=True)
class Order:
    """MAAS's answer to one network boot. `token` goes back with every report of this boot."""

    intent: Intent
    token: str = field(default="", repr=False)
    hostname: str = ""
    image: str = ""
    ssh_keys: tuple[str, ...] = ()
    user_data: bytes = b""


@dataclass(frozen=True, slots=True)
class ScriptResult:
    """What one commissioning script printed."""

    name: str
    exit_status: int
    stdout: bytes
    stderr: bytes = b""


class BootServiceError(Exception):
    """The boot service did not answer, or not with an order; `text` is what iPXE would print."""

    def __init__(self, text: str) -> None:
        super().__init__(text)
        self.text = text


class BootService:
    """MAAS as one node sees it."""

    def __init__(self, session: aiohttp.ClientSession, base_url: str, mac: str) -> None:
        self._session = session
        self.url = f"{base_url}/boot/{mac}"

    async def order(self) -> Order:
        """Ask what to boot. Raises BootServiceError with iPXE's own words when nothing answers."""
        try:
            async with self._session.get(self.url, timeout=_TIMEOUT) as answer:
                if answer.status != 200:
                    raise BootServiceError(_http_error(answer.status))
                return _parse(await answer.json(content_type=None))
        except (aiohttp.ClientError, TimeoutError, ValueError) as exc:
            raise BootServiceError("Connection timed out (https://ipxe.org/4c0a6092)") from exc

    async def report(
        self,
        token: str,
        phase: str,
        event: str,
        *,
        message: str = "",
        results: Sequence[ScriptResult] = (),
        address: str = "",
    ) -> str:
        """Report how a phase goes; return what MAAS wants next, "" when it did not take the report.

        The answers are stay, reboot, poweroff and testing.
        """
        body = {
            "token": token,
            "phase": phase,
            "event": event,
            "message": message,
            "address": address,
            "results": [
                {
                    "name": one.name,
                    "exit_status": one.exit_status,
                    "stdout": base64.b64encode(one.stdout).decode(),
                    "stderr": base64.b64encode(one.stderr).decode(),
                }
                for one in results
            ],
        }
        try:
            async with self._session.post(f"{self.url}/report", json=body, timeout=_TIMEOUT) as answer:
                if answer.status < 300:
                    return str((await answer.json(content_type=None)).get("next", ""))
                log.warning("report %s %s to %s: status %d", phase, event, self.url, answer.status)
        except (aiohttp.ClientError, TimeoutError, ValueError, AttributeError) as exc:
            log.warning("report %s %s to %s: %s", phase, event, self.url, exc)
        return ""


def _parse(body: object) -> Order:
    if not isinstance(body, dict):
        raise BootServiceError("Exec format error (https://ipxe.org/2e008001)")
    try:
        intent = Intent(str(body.get("intent", "")))
    except ValueError as exc:
        raise BootServiceError("Exec format error (https://ipxe.org/2e008001)") from exc
    keys = body.get("ssh_keys") or []
    return Order(
        intent=intent,
        token=str(body.get("token") or ""),
        hostname=str(body.get("hostname") or ""),
        image=str(body.get("image") or ""),
        ssh_keys=tuple(str(key) for key in keys) if isinstance(keys, list) else (),
        user_data=_decode(body.get("user_data")),
    )


def _decode(value: object) -> bytes:
    """User data arrives in base64; what is not is kept as text, as MAAS itself keeps it."""
    text = str(value or "")
    try:
        return base64.b64decode(text, validate=True)
    except (ValueError, binascii.Error):
        return text.encode()


def _http_error(status: int) -> str:
    return {
        404: "No such file or directory (https://ipxe.org/2d0c613b)",
        403: "Permission denied (https://ipxe.org/020c613b)",
    }.get(status, "Input/output error (https://ipxe.org/1d0c6539)")
