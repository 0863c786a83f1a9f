"""What fabric tools say about links, ports and switches."""

from __future__ import annotations

from health.outcome import Action, Finding, Status
from health.readers.fabric import FabricLink, PortCounters, SwitchPart

# Since they were cleared, which nobody knows when: only what no good port reaches. The gate counts deltas.
_FATAL = {
    "SymbolErrorCounter": 1000,
    "LinkErrorRecoveryCounter": 100,
    "LinkDownedCounter": 100,
    "PortRcvErrors": 1000,
    "LocalLinkIntegrityErrors": 0,
    "PortLocalPhysicalErrors": 1000,
    "PortBufferOverrunErrors": 100,
}
_WATCH = {
    "SymbolErrorCounter": 10,
    "LinkErrorRecoveryCounter": 10,
    "LinkDownedCounter": 10,
    "PortRcvErrors": 10,
    "PortRcvRemotePhysicalErrors": 100,
    "ExcessiveBufferOverrunErrors": 0,
    "PortLocalPhysicalErrors": 10,
    "VL15Dropped": 100,
    "PortXmitConstraintErrors": 10,
    "PortRcvConstraintErrors": 10,
}
_SHORT = {
    "SymbolErrors": "SymbolErrorCounter",
    "LinkRecovers": "LinkErrorRecoveryCounter",
    "LinkDowned": "LinkDownedCounter",
    "RcvErrors": "PortRcvErrors",
    "LocalLinkIntegrity": "LocalLinkIntegrityErrors",
    "RcvRemotePhysErrors": "PortRcvRemotePhysicalErrors",
    "ExcBufOverrunErrors": "ExcessiveBufferOverrunErrors",
}


def judge_links(links: tuple[FabricLink, ...]) -> list[Finding]:
    """Judge links: none below what both ends can do, no adapter's port down. Unused switch ports are."""
    findings = []
    for link in links:
        who = f"{link.node} port {link.port}"
        if link.better:
            message = f"{who} runs at {link.width} {link.speed} Gb/s a lane; could be {link.better}"
            findings.append(Finding("fabric", who, message, Action.RESEAT))
        elif link.state not in ("Active", "Armed") and (link.kind == "CA" or link.far):
            findings.append(Finding("fabric", who, f"{who} is {link.state}", Action.RESEAT))
    return findings


def judge_counters(ports: tuple[PortCounters, ...]) -> list[Finding]:
    """Judge absolute counters, of which the age is not known."""
    findings = []
    for port in ports:
        for short, value in port.counters.items():
            name = _SHORT.get(short, short)
            fatal, watch = _FATAL.get(name), _WATCH.get(name)
            if fatal is not None and value > fatal:
                findings.append(Finding("fabric", port.identity, f"{name} is {value}", Action.RESEAT))
            elif watch is not None and value > watch:
                message = f"{name} is {value}"
                findings.append(Finding("fabric", port.identity, message, Action.INVESTIGATE, Status.WARN))
    return findings


def judge_ibdiagnet(lines: tuple[tuple[str, str], ...]) -> list[Finding]:
    """Judge ibdiagnet's own complaints: errors fail; warnings are mostly about firmware and silence."""
    errors = [text for letter, text in lines if letter == "E"]
    # The line that names a link says more than the one that sums it up.
    named = [text for text in errors if "finished with errors" not in text] or errors
    findings = [Finding("fabric", _subject(text), text[:160], Action.RESEAT) for text in named]
    findings += [
        Finding("fabric", _subject(text), text[:160], Action.INVESTIGATE, Status.WARN)
        for letter, text in lines
        if letter == "W"
    ]
    return findings


def _subject(text: str) -> str:
    subject = text.removeprefix("Link: ").split(" - ", 1)[0]
    return subject if subject != text else "fabric"


def judge_switch(parts: tuple[SwitchPart, ...]) -> list[Finding]:
    """Judge a switch's own parts by the states it gives them."""
    return [
        Finding("switch", part.unit, f"{part.unit}: {part.label} is {part.value}", Action.VENDOR_TICKET)
        for part in parts
        if part.value.upper() in ("ERROR", "FAIL", "FAILED", "FATAL", "NOT PRESENT", "ABSENT")
    ]
