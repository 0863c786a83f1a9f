"""Stands in for QEMU: takes its arguments, speaks QMP and owns a serial line, without a machine.

What is typed on the serial line steers it: `reboot`, `poweroff` and `die` are lines that the machine
inside would act on; everything else is echoed.
"""

from __future__ import annotations

import json
import re
import selectors
import socket
import sys


class Fake:
    def __init__(self, argv: list[str]) -> None:
        chardevs = dict(re.findall(r"socket,id=(\w+),fd=(\d+)", "\n".join(argv)))
        self.serial = socket.socket(fileno=int(chardevs["serial0"]))
        self.monitor = socket.socket(fileno=int(chardevs["monitor"]))
        self.reboot_action = "shutdown"
        self.monitor.sendall(b'{"QMP": {"version": {}, "capabilities": []}}\n')
        self.print("power on " + json.dumps(argv))

    def print(self, text: str) -> None:
        self.serial.sendall(text.encode() + b"\r\n")

    def event(self, name: str, **data: object) -> None:
        self.monitor.sendall(json.dumps({"event": name, "data": data}).encode() + b"\n")

    def command(self, line: bytes) -> None:
        asked = json.loads(line)
        name, given = asked["execute"], asked["arguments"]
        answer: dict[str, object] = {"return": {}}
        if name == "set-action":
            self.reboot_action = given["reboot"]
        elif name == "system_reset":
            self.event("RESET" if self.reboot_action == "reset" else "SHUTDOWN", guest=False)
            self.print("reset")
        elif name == "system_powerdown":
            self.event("SHUTDOWN", guest=True, reason="guest-shutdown")
        elif name in {"inject-nmi", "chardev-send-break", "cont"}:
            self.print(f"{name} {json.dumps(given)}")
        elif name != "qmp_capabilities":
            answer = {"error": {"class": "CommandNotFound", "desc": f"no command {name}"}}
        self.monitor.sendall(json.dumps(answer | {"id": asked["id"]}).encode() + b"\n")

    def typed(self, text: bytes) -> None:
        if text == b"die\n":
            sys.exit(1)
        elif text == b"reboot\n":
            self.event("SHUTDOWN", guest=True, reason="guest-reset")
        elif text == b"poweroff\n":
            for number in range(1000):
                self.print(f"last words {number}")
            self.event("SHUTDOWN", guest=True, reason="guest-shutdown")
        else:
            self.serial.sendall(text)

    def run(self) -> None:
        selector = selectors.DefaultSelector()
        selector.register(self.serial, selectors.EVENT_READ, self.typed)
        selector.register(self.monitor, selectors.EVENT_READ, self.command)
        while True:
            for key, _ in selector.select():
                for line in key.fileobj.recv(4096).splitlines(keepends=True):  # type: ignore[union-attr]
                    key.data(line)


Fake(sys.argv[1:]).run()
