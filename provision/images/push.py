"""Pushing by skopeo, which knows every form that images come in."""

from __future__ import annotations

import asyncio
import base64
import json
import tempfile
from pathlib import Path

from inventory.secrets import Secret
from provision.images.errors import PushFailed
from provision.images.registry import Name, Registry


async def push(
    registry: Registry, source: str, name: Name, *, username: str = "", password: Secret | None = None
) -> str:
    """Push `source` (docker-archive:FILE, oci:FOLDER:TAG, docker://...) as `name`; return its digest.

    Every platform of an index is pushed, bytes as they are. Raises PushFailed.
    """
    with tempfile.TemporaryDirectory() as made:
        folder = Path(made)
        digest = folder / "digest"
        login = folder / "auth.json"
        login.touch(mode=0o600)
        login.write_text(json.dumps(_login(registry.host, username, password)))
        words = [
            "copy",
            "--all",
            "--preserve-digests",
            "--digestfile",
            str(digest),
            "--dest-authfile",
            str(login),
        ]
        if registry.url.startswith("http://"):
            words.append("--dest-tls-verify=false")
        status, last = await _skopeo(*words, source, f"docker://{registry.host}/{name}")
        if status != 0:
            raise PushFailed(source, last)
        return digest.read_text().strip()


async def _skopeo(*words: str) -> tuple[int, str]:
    try:
        process = await asyncio.create_subprocess_exec(
            "skopeo", *words, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.STDOUT
        )
    except FileNotFoundError as error:
        raise PushFailed(words[-2], "skopeo is not installed here") from error
    try:
        output, _ = await process.communicate()
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    lines = output.decode("utf-8", "replace").strip().splitlines()
    return process.returncode or 0, lines[-1] if lines else "skopeo gave no reason"


def _login(host: str, username: str, password: Secret | None) -> dict[str, object]:
    """Return what skopeo reads from a file: a password on its command line would be everybody's."""
    if not username or password is None:
        return {"auths": {}}
    both = base64.b64encode(f"{username}:{password.reveal()}".encode()).decode()
    return {"auths": {host: {"auth": both}}}
