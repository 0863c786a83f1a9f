"""What the state of a node's fabric ports says, without a profile: sick ports, and odd ones out."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable
from itertools import pairwise

from health.outcome import Action, Finding, Status
from health.readers.infiniband import Port


def judge_ports(ports: tuple[Port, ...]) -> list[Finding]:
    """Judge ports by themselves and against their like."""
    findings = [finding for port in ports for finding in _port(port)]
    findings += _down_among_like(ports)
    findings += _slower_than_like(ports)
    findings += _out_of_order(ports)
    return findings


def _port(port: Port) -> Iterable[Finding]:
    if port.layer == "InfiniBand":
        yield from _infiniband(port)
    if not port.layer and not port.up and port.netdev.startswith("ib"):
        message = f"port is {port.state}, its interface {port.netdev} has no link"
        yield Finding("nic", port.identity, message, Action.RESEAT)
    if port.up and port.netdev_state == "down":
        message = f"{port.netdev} is down while its port is active"
        yield Finding("nic", port.identity, message, Action.RESTART_SERVICE)
    if port.up and port.netdev_speed and port.rate and port.rate < 0.9 * port.netdev_speed:
        message = f"the link runs at {port.rate:.0f} Gb/s, its interface says {port.netdev_speed:.0f}"
        yield Finding("nic", port.identity, message, Action.RESEAT)


def _infiniband(port: Port) -> Iterable[Finding]:
    if port.state == "Initializing" and port.physical == "LinkUp":
        message = "the link is up but no subnet manager has configured it"
        yield Finding("fabric", port.identity, message, Action.INVESTIGATE)
    elif not port.up:
        message = f"port is {port.state}, link {port.physical}"
        yield Finding("nic", port.identity, message, _link_action(port))
    elif port.lid in (0, 65535) or port.sm_lid == 0:
        message = "port is active without an address from a subnet manager"
        yield Finding("fabric", port.identity, message, Action.INVESTIGATE)


def _link_action(port: Port) -> Action:
    return Action.INVESTIGATE if port.physical == "Disabled" else Action.RESEAT


def _down_among_like(ports: tuple[Port, ...]) -> Iterable[Finding]:
    """Find Ethernet ports that are down while most of their model are up: the others are not cabled."""
    groups: dict[tuple[str, str], list[Port]] = defaultdict(list)
    for port in ports:
        if port.layer != "InfiniBand":
            groups[port.model, port.layer].append(port)
    for group in groups.values():
        down = [port for port in group if not port.up]
        if len(group) >= 4 and len(down) < len(group) / 2:
            for port in down:
                message = f"port is {port.state}, link {port.physical}, where its like are up"
                yield Finding("nic", port.identity, message, _link_action(port))


def _slower_than_like(ports: tuple[Port, ...]) -> Iterable[Finding]:
    rates = Counter(port.rate for port in ports if port.up and port.layer == "InfiniBand" and port.rate)
    if len(rates) < 2:
        return
    usual = max(rates, key=lambda rate: (rates[rate], rate or 0))
    for port in ports:
        if port.up and port.layer == "InfiniBand" and port.rate and usual and port.rate < usual:
            message = f"port runs at {port.rate:.0f} Gb/s, most of this node at {usual:.0f}"
            yield Finding("nic", port.identity, message, Action.RESEAT, Status.WARN)


def _out_of_order(ports: tuple[Port, ...]) -> Iterable[Finding]:
    """Find device names that do not rise with the PCI address: rails are then not where they seem."""
    numbered = [
        (port, int(found[1]))
        for port in sorted(ports, key=lambda port: port.pci)
        if port.pci and (found := re.fullmatch(r"mlx\d+_(\d+)", port.device))
    ]
    for (_, before), (port, number) in pairwise(numbered):
        if number < before:
            message = f"{port.device} does not follow the order of PCI addresses: rails are mixed up"
            yield Finding("nic", port.pci, message, Action.REBOOT)
