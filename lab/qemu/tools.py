"""Runs the Debian tools that images are made with."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path

from lab.qemu.errors import AssetsNotMade


async def run_tool(
    step: str, *argv: str, stdin: bytes = b"", environ: dict[str, str] | None = None, cwd: Path | None = None
) -> str:
    """Run one tool to its end and return what it printed. Raises AssetsNotMade with its last line."""
    try:
        process = await asyncio.create_subprocess_exec(
            *argv,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            env={**os.environ, "LC_ALL": "C.UTF-8", **(environ or {})},
            cwd=cwd,
        )
    except FileNotFoundError as exc:
        raise AssetsNotMade(
            step, f"{argv[0]} is not installed", follow="run ./muster as root once: it installs it"
        ) from exc
    try:
        output, errors = await process.communicate(stdin)
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    if process.returncode != 0:
        lines = [line for line in errors.decode(errors="replace").splitlines() if line.strip()]
        why = next((line for line in lines if line.startswith("E:")), lines[-1] if lines else "no output")
        raise AssetsNotMade(
            step,
            f"{argv[0]} ended with {process.returncode}: {why}",
            follow="check that this machine's apt sources answer, then start again",
        )
    return output.decode(errors="replace")
