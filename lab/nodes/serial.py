"""A node's first serial port: a real terminal device inside, bytes to whoever listens outside."""

from __future__ import annotations

import asyncio
import contextlib
import os
import termios
from pathlib import Path

from lab.chassis import SerialSink

_KEPT_BYTES = 4 * 1024 * 1024


class SerialPort:
    """Both ends of the line. All that the node writes is also appended to `record`."""

    def __init__(self, record: Path) -> None:
        self._record = record
        self._sink: SerialSink = lambda _: None
        self._outer, self._inner = os.openpty()
        self._device = os.ttyname(self._inner)
        os.set_blocking(self._outer, False)
        self._calm()
        self._log = record.open("ab", buffering=0)
        self._loop = asyncio.get_running_loop()
        self._loop.add_reader(self._outer, self._read)

    @property
    def terminal(self) -> int:
        """The descriptor that a program inside uses as its console."""
        return self._inner

    def attach(self, sink: SerialSink) -> None:
        self._sink = sink

    def typed(self, data: bytes) -> None:
        """Hand bytes to the node; what does not fit is lost, as on a line without flow control."""
        with contextlib.suppress(BlockingIOError):
            os.write(self._outer, data)

    def emit(self, text: str) -> None:
        """Write what the machine itself says before any system runs."""
        self._forward(text.replace("\n", "\r\n").encode())

    def reset(self) -> None:
        """Forget what was typed and set by the system that died; it may have hung up the line."""
        self._drain()
        os.close(self._inner)
        self._inner = os.open(self._device, os.O_RDWR | os.O_NOCTTY)
        termios.tcflush(self._inner, termios.TCIOFLUSH)
        self._calm()

    def close(self) -> None:
        self._loop.remove_reader(self._outer)
        self._log.close()
        os.close(self._outer)
        os.close(self._inner)

    def _calm(self) -> None:
        """A line as firmware leaves it: nothing is echoed, lines end in CR LF."""
        settings = termios.tcgetattr(self._inner)
        settings[1] |= termios.OPOST | termios.ONLCR
        settings[3] &= ~(termios.ECHO | termios.ICANON | termios.ISIG)
        termios.tcsetattr(self._inner, termios.TCSANOW, settings)

    def _read(self) -> None:
        with contextlib.suppress(BlockingIOError, OSError):
            data = os.read(self._outer, 65536)
            if data:
                self._forward(data)

    def _drain(self) -> None:
        with contextlib.suppress(BlockingIOError, OSError):
            while data := os.read(self._outer, 65536):
                self._forward(data)

    def _forward(self, data: bytes) -> None:
        if self._log.tell() > _KEPT_BYTES:
            self._log.truncate(0)
        self._log.write(data)
        self._sink(data)
