"""judge: read saved outputs of real tools and say ok, warn or fault, the way the checks do."""

from __future__ import annotations

import sys
from pathlib import Path

from bmc.console.causes import Watch
from bmc.console.plain import Plain
from health import samples as saved
from health.errors import SamplesUnreadable
from provision import advice
from provision.cli import render
from provision.cli.command import Ended, command
from provision.errors import BadRequest


@command(
    {
        "samples": "folder with an INDEX.csv (file, kind, verdict); required",
        "output": "table (totals and what differs), wide, json or yaml",
    }
)
def judge(samples: str = "", output: str = "table") -> None:
    """Judge saved samples against the verdicts of their index."""
    folder = Path(samples)
    if not samples or not (folder / "INDEX.csv").is_file():
        raise BadRequest(
            "--samples", f"{samples or 'nothing'} has no INDEX.csv", "name a folder with an INDEX.csv"
        )
    try:
        results = saved.judge_samples(folder, find_cause=_cause)
    except SamplesUnreadable as error:
        raise BadRequest("--samples", str(error), "correct the index") from error
    differ = [result for result in results if result.got != result.verdict]
    rows = [
        {"file": r.file, "kind": r.kind, "verdict": r.verdict, "got": r.got, "reason": r.reason}
        for r in (differ if output == "table" else results)
    ]
    if output == "table":
        for kind, (matched, total) in sorted(saved.totals(results).items()):
            sys.stdout.write(f"{kind:<28} {matched:>4} of {total}\n")
        sys.stdout.write(f"{'all':<28} {len(results) - len(differ):>4} of {len(results)}\n\n")
    if rows or output != "table":
        render.answer("samples", rows, ("file", "kind", "verdict", "got", "reason"), output)
    raise Ended(advice.EXIT_OK if not differ else advice.EXIT_NODES_FAILED)


def _cause(console: bytes) -> str | None:
    """Return what stopped the boot that a console shows, in words, or None."""
    watch = Watch()
    watch.feed(0.0, Plain().feed(console))
    found = watch.cause()
    return f"{found.title}: {found.line.strip()}" if found else None
