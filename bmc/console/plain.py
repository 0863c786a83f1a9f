"""Takes terminal control out of a stream of bytes, piece by piece."""

from __future__ import annotations

import re

_CONTROL = re.compile(
    rb"\x1b\[[0-?]*[ -/]*[@-~]"  # CSI: colours, cursor, erase
    rb"|\x1b[\]PX^_][^\x07\x1b]*(?:\x07|\x1b\\)"  # OSC and other strings
    rb"|\x1b[ -/]+[0-~]|\x1b[0-Z\\^-~]"  # short escapes, character sets
)
_SILENT = bytes(code for code in (*range(32), 127) if code not in b"\t\n\r")
_MOVES = re.compile(rb"\x1b\[[0-9;]*[Hf]|\x1b\[[0-9]*[EFd]|\x1b\[2?J")  # starts another line on a screen
_UNFINISHED = re.compile(rb"\x1b(?:\[[0-?]*[ -/]*|[\]PX^_][^\x07\x1b]{0,255}\x1b?|[ -/]*)?\Z")


class Plain:
    """Feeds on chunks and returns their text: escapes gone, cursor moves turned into line ends."""

    def __init__(self) -> None:
        self._held = b""

    def feed(self, data: bytes) -> bytes:
        data = self._held + data
        if b"\x1b" not in data:
            self._held = b""
            return data.translate(None, _SILENT)
        unfinished = _UNFINISHED.search(data, max(0, len(data) - 260))
        cut = unfinished.start() if unfinished else len(data)
        data, self._held = data[:cut], data[cut:]
        return _CONTROL.sub(b"", _MOVES.sub(b"\n", data)).translate(None, _SILENT)
