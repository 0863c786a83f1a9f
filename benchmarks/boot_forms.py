"""Writes made-up boots in the forms in which a kernel's words come out: its ring, and a serial console."""

from __future__ import annotations

import random

from benchmarks.boot_generator import Boot

# The board's own clock at power on, seconds since 1970.
BOOTED_AT = 1_772_442_000
_FIRMWARE = (
    "\x1b[2J\x1b[1;1H\x1b[0m\x1b[37m\x1b[40mPowerEdge XE9680\r\n"
    "\x1b[7mF2 \x1b[0m= System Setup\r\n"
    "Initializing Firmware Interfaces...\r\n"
    "  Booting `Ubuntu'\r\n\r\nLoading Linux 5.15.0-122-generic ...\r\nLoading initial ramdisk ...\r\n"
)
_UNITS = (
    "Reached target \x1b[0;1;39mLocal File Systems",
    "Started \x1b[0;1;39mDaily Cleanup of Temporary Directories",
    "Finished \x1b[0;1;39mnvidia-persistenced.service - NVIDIA Persistence Daemon",
    "Started \x1b[0;1;39mOpenBSD Secure Shell server",
    "Reached target \x1b[0;1;39mMulti-User System",
)


def as_ring(lines: Boot) -> str:
    """Write lines as /dev/kmsg gives them."""
    rows = (f"6,{n},{n * 40000},-;{line.text}\n" for n, line in enumerate(lines))
    return "".join(rows) + "# end of kmsg\n"


def as_console(lines: Boot, chance: random.Random) -> str:
    """Write lines as a serial console shows them: firmware before, units between, a login prompt behind."""
    clock = "rtc_cmos 00:01: setting system clock to 2026-03-02T09:00:04 UTC (%d)"
    early = sum(line.thread in ("firmware", "early") for line in lines)
    rows = [(0.0 if n < 60 else n * 0.04, line.text) for n, line in enumerate(lines)]
    at = rows[early][0]
    rows[early:early] = [
        (at, clock % (BOOTED_AT + round(at))),
        (at, "Run /init as init process"),
    ]
    units = list(_UNITS)
    shown = []
    for n, (stamp, text) in enumerate(rows):
        if units and n > early + 20 and chance.random() < 0.02:
            status = f"[\x1b[0;32m  OK  \x1b[0m] {units.pop(0)}\x1b[0m."
            # The kernel may cut in on a program's line.
            shown.append(status + ("" if chance.random() < 0.3 else "\r\n"))
        shown.append(f"[{stamp:12.6f}] {text}\r\n")
    rest = "".join(f"[\x1b[0;32m  OK  \x1b[0m] {unit}\x1b[0m.\r\n" for unit in units)
    return _FIRMWARE + "".join(shown) + rest + "\r\nUbuntu 22.04.5 LTS gpu-node ttyS1\r\n\r\ngpu-node login: "
