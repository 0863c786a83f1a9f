"""Writes recordings as asciicast v2, which asciinema and its web player replay."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator

from bmc.console.render import Decoder, screen_size
from bmc.console.store import Chunk, Event


def asciicast(stream: Iterable[Chunk | Event], title: str) -> Iterator[str]:
    """Yield the lines of an asciicast; events become markers."""
    recorded = tuple(stream)
    size = screen_size(b"".join(entry.data for entry in recorded if isinstance(entry, Chunk)))
    start = recorded[0].time if recorded else 0.0
    header = {"version": 2, "width": size[0], "height": size[1], "timestamp": int(start), "title": title}
    yield json.dumps(header) + "\n"
    text = Decoder()
    for entry in recorded:
        at = round(max(entry.time - start, 0.0), 6)
        if isinstance(entry, Event):
            label = f"{entry.kind}: {entry.text}" if entry.text else str(entry.kind)
            yield json.dumps([at, "m", label]) + "\n"
        elif shown := text.decode(entry.data):
            yield json.dumps([at, "o", shown]) + "\n"
    if shown := text.decode(b"", final=True):
        yield json.dumps([round(recorded[-1].time - start, 6), "o", shown]) + "\n"
