"""What the growth of a fabric port's counters says. Thresholds are a port's own, over any window."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from health.outcome import Action, Finding, Status
from health.rules.counters import Growth

# Any growth at all: the link went down, or packets were lost on the wire or in the port.
_NEVER = frozenset({"link_downed", "local_link_integrity_errors", "excessive_buffer_overrun_errors"})
_SYMBOL_HOURLY = 120.0
# Warnings, per hour.
_HOURLY = {
    "link_error_recovery": 300.0,
    "port_rcv_errors": 36_000.0,
    "port_xmit_discards": 360_000.0,
    "port_rcv_remote_physical_errors": 36_000.0,
    "port_xmit_constraint_errors": 3_600.0,
    "port_rcv_constraint_errors": 3_600.0,
    "VL15_dropped": 36_000.0,
}


def judge_growth(found: Growth, devices: Mapping[str, str]) -> list[Finding]:
    """Judge counters named "DEVICE/PORT COUNTER"; `devices` gives each device's identity."""
    findings = []
    for name in found.by:
        port, _, counter = name.partition(" ")
        identity = devices.get(port.partition("/")[0])
        if identity is not None:
            findings += [*_counter(found, name, counter, identity)]
    return findings


def _counter(found: Growth, name: str, counter: str, identity: str) -> Iterator[Finding]:
    by, hourly = found.by[name], found.hourly(name)
    watched = counter in _NEVER or counter == "symbol_error" or counter in _HOURLY
    if name in found.full and watched:
        yield Finding("nic", identity, f"{counter} is full and counts no more", Action.RESEAT)
    elif by <= 0:
        return
    elif counter in _NEVER or (counter == "symbol_error" and hourly > _SYMBOL_HOURLY):
        message = f"{counter} grew by {by} in {found.seconds:.0f} s"
        yield Finding("nic", identity, message, Action.RESEAT)
    elif hourly > _HOURLY.get(counter, float("inf")):
        message = f"{counter} grew by {by} in {found.seconds:.0f} s"
        yield Finding("nic", identity, message, Action.INVESTIGATE, Status.WARN)
