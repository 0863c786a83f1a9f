"""Saved outputs about adapters, cables, links and switches."""

from __future__ import annotations

import re
from collections.abc import Callable

from health.errors import Unreadable
from health.outcome import Action, Finding, Status
from health.readers import fabric, infiniband, network, optics, pci
from health.readers.json_text import plain, read_json
from health.recognise import more
from health.rules import fabric as fabric_rules
from health.rules import infiniband as port_rules
from health.rules import network as network_rules
from health.rules import optics as optics_rules
from health.rules import pci as pci_rules


def judge(text: str) -> list[Finding]:
    """Judge one output by its own form. Raises Unreadable."""
    text = plain(text)
    if text.lstrip().startswith(("{", "[{", "[\n")):
        return _json(text)
    for form, judge_form in (*_FORMS, *more.FABRIC):
        if re.search(form, text, re.MULTILINE):
            return judge_form(text)
    raise Unreadable("fabric output", f"it begins {text.strip()[:60]!r}")


def _json(text: str) -> list[Finding]:
    document = read_json("fabric output", text)
    if isinstance(document, dict) and any(path.startswith("/sys/") for path in document):
        return port_rules.judge_ports(infiniband.read_sysfs(document))
    if isinstance(document, dict) and "result" in document:
        return [found for one in optics.read_mlxlink(text) for found in optics_rules.judge_link(one)]
    return network_rules.judge_links(network.read_links(text), bonded_speed=network_rules.BONDED_SPEED)


def _ports(text: str) -> list[Finding]:
    findings = port_rules.judge_ports(infiniband.read_ports(text))
    for line in re.findall(r"^(?:ibpanic|ibwarn).*", text, re.MULTILINE):
        device = re.search(r"IB device '([^']+)'", line)
        who = device[1] if device else "an adapter"
        findings.append(Finding("nic", who, line.strip()[:160], Action.POWER_CYCLE))
    return findings


def _linkinfo(text: str) -> list[Finding]:
    return fabric_rules.judge_links(fabric.read_linkinfo(text))


def _perfquery(text: str) -> list[Finding]:
    return fabric_rules.judge_counters(fabric.read_perfquery(text))


def _queryerrors(text: str) -> list[Finding]:
    return fabric_rules.judge_counters(fabric.read_queryerrors(text))


def _ibdiagnet(text: str) -> list[Finding]:
    return fabric_rules.judge_ibdiagnet(fabric.read_ibdiagnet(text))


def _switch(text: str) -> list[Finding]:
    return fabric_rules.judge_switch(fabric.read_switch(text))


def _topology(text: str) -> list[Finding]:
    complaints, _ = fabric.read_topology(text)
    return [Finding("fabric", "discovery", said[:160], Action.RERUN, Status.WARN) for said in complaints]


def _mlxlink(text: str) -> list[Finding]:
    return [found for one in optics.read_mlxlink(text) for found in optics_rules.judge_link(one)]


def _module(text: str) -> list[Finding]:
    return optics_rules.judge_module(optics.read_module(text))


def _ethtool(text: str) -> list[Finding]:
    return [
        Finding("nic", one.name, f"{one.name} has no link", Action.RESEAT)
        for one in network.read_ethtool(text)
        if not one.carrier
    ]


def _interfaces(text: str) -> list[Finding]:
    return network_rules.judge_links(network.read_links_text(text), bonded_speed=None)


def _bonding(text: str) -> list[Finding]:
    return network_rules.judge_members(network.read_bonding(text))


def _lspci(text: str) -> list[Finding]:
    gone = re.findall(r"^(\S+) .*\(rev ff\)", text, re.MULTILINE)
    return [
        *(
            Finding("pcie", one, "it answers nothing but ones: it is off the bus", Action.POWER_CYCLE)
            for one in gone
        ),
        *pci_rules.judge_links(pci.read_lspci(text)),
    ]


# What an output says of itself, most telling first.
_FORMS: tuple[tuple[str, Callable[[str], list[Finding]]], ...] = (
    (r"\]\s*==\(.*\)==>", _linkinfo),
    (r"^# Port\w* ?\w* ?counters", _perfquery),
    (r"^Errors for |GUID 0x[0-9a-f]+ port \w+: \[", _queryerrors),
    (r"^-I- |IBDIAGNET", _ibdiagnet),
    (r"^PSU\d+ status|^fan status", _switch),
    (r"^CA '|^Infiniband device|^hca_id:|^(?:\d+: )?link \S+/\d+ |^\S+ port \d+ ==> ", _ports),
    (r"^(?:CA|SW|RT)\s+\d+\s+\d+ 0x|^vendid=|^# Topology file", _topology),
    (r"BER|Physical Counters|^Operational Info", _mlxlink),
    (r"^\s*Identifier\s+: 0x", _module),
    (r"^\d+: \S+: <[A-Z_,0-9-]+> mtu ", _interfaces),
    (r"^Settings for ", _ethtool),
    (r"^Ethernet Channel Bonding|^Bonding Mode:", _bonding),
    (r"LnkSta:|^(?:[0-9a-f]{4}:)?[0-9a-f]{2}:[0-9a-f]{2}\.\d ", _lspci),
)
