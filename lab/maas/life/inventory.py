"""What commissioning writes onto a machine: processor, memory, disks, ports, serial numbers."""

from __future__ import annotations

import base64
import binascii
import json
from typing import Any

from lab.maas.config import DiskSpec
from lab.maas.life import storage
from lab.maas.life.conductor import Conductor
from lab.maas.model.machine import Disk, Facts, Interface, Link, Machine
from lab.maas.model.results import ScriptSet

# The scripts whose output is the inventory, the better one first.
_INVENTORY = ("50-maas-01-commissioning", "20-maas-03-machine-resources")
_SYSTEM = {
    "system_vendor": ("system", "vendor"),
    "system_product": ("system", "product"),
    "system_family": ("system", "family"),
    "system_version": ("system", "version"),
    "system_sku": ("system", "sku"),
    "system_serial": ("system", "serial"),
    "mainboard_vendor": ("motherboard", "vendor"),
    "mainboard_product": ("motherboard", "product"),
    "mainboard_serial": ("motherboard", "serial"),
    "mainboard_version": ("motherboard", "version"),
    "mainboard_firmware_vendor": ("firmware", "vendor"),
    "mainboard_firmware_date": ("firmware", "date"),
    "mainboard_firmware_version": ("firmware", "version"),
    "chassis_vendor": ("chassis", "vendor"),
    "chassis_type": ("chassis", "type"),
    "chassis_serial": ("chassis", "serial"),
    "chassis_version": ("chassis", "version"),
}


def apply(ctl: Conductor, machine: Machine, made: ScriptSet) -> None:
    """Take over what the machine reported about itself, or what the lab's profile says."""
    found = _reported(made)
    if found is None:
        _from_profile(ctl, machine)
    else:
        _from_report(ctl, machine, found)
    storage.flat(ctl, machine)
    _join_networks(ctl, machine)


def _reported(made: ScriptSet) -> dict[str, Any] | None:
    for name in _INVENTORY:
        for one in made.results:
            if one.name == name and one.stdout:
                try:
                    parsed = json.loads(base64.b64decode(one.stdout, validate=True))
                except (binascii.Error, ValueError):
                    continue
                if isinstance(parsed, dict) and isinstance(parsed.get("resources"), dict):
                    resources: dict[str, Any] = parsed["resources"]
                    return resources
    return None


def _from_profile(ctl: Conductor, machine: Machine) -> None:
    profile = ctl.config.hardware
    info = {
        "system_vendor": profile.vendor,
        "system_product": profile.product,
        "system_serial": f"LAB-{machine.hostname}",
    }
    machine.facts = Facts(profile.cores, profile.memory, 2000, ctl.region.fresh_uuid(), info)
    machine.disks = _disks(ctl, profile.disks)
    for port in machine.interfaces:
        port.link_speed = 10000
        port.vendor, port.product, port.firmware = "Muster Lab", "Virtual port", "1.0"


def _from_report(ctl: Conductor, machine: Machine, found: dict[str, Any]) -> None:
    cpu, system = found.get("cpu", {}), found.get("system", {})
    threads = [t for s in cpu.get("sockets", []) for c in s.get("cores", []) for t in c.get("threads", [])]
    info = {}
    for key, (part, name) in _SYSTEM.items():
        place = system if part == "system" else system.get(part) or {}
        if place.get(name):
            info[key] = str(place[name])
    model = next((s.get("name") for s in cpu.get("sockets", []) if s.get("name")), None)
    if model:
        info["cpu_model"] = str(model)
    memory = int(found.get("memory", {}).get("total", 0)) // (1024 * 1024)
    machine.facts = Facts(len(threads), memory, 0, system.get("uuid") or None, info)
    machine.disks = _disks(ctl, _reported_disks(found))
    _reported_ports(ctl, machine, found)


def _reported_disks(found: dict[str, Any]) -> tuple[DiskSpec, ...]:
    return tuple(
        DiskSpec(
            str(one.get("id", "sda")),
            int(one.get("size", 0)),
            str(one.get("model", "")),
            str(one.get("serial", "")),
        )
        for one in found.get("storage", {}).get("disks", [])
        if one.get("size") and not one.get("read_only", False)
    )


def _reported_ports(ctl: Conductor, machine: Machine, found: dict[str, Any]) -> None:
    for card in found.get("network", {}).get("cards", []):
        for one in card.get("ports", []):
            mac = str(one.get("address", "")).lower()
            port = next((known for known in machine.interfaces if known.mac == mac), None)
            if port is None:
                if not mac:
                    continue
                port = Interface(ctl.region.number("interface"), str(one.get("id", "eth0")), mac)
                machine.interfaces.append(port)
            port.link_speed = int(one.get("link_speed") or 0)
            port.vendor = card.get("vendor")
            port.product = card.get("product")
            port.firmware = card.get("firmware_version")


def _disks(ctl: Conductor, specs: tuple[DiskSpec, ...]) -> list[Disk]:
    return [
        Disk(ctl.region.number("disk"), one.name, one.size, model=one.model, serial=one.serial, tags=["ssd"])
        for one in specs
    ]


def _join_networks(ctl: Conductor, machine: Machine) -> None:
    """Join the boot port to the lab's first subnet by DHCP, and others to a fabric of their own."""
    first = next(iter(ctl.region.subnets.values()), None) if ctl.config.subnets else None
    for number, port in enumerate(machine.interfaces):
        if port.vlan_id is None:
            known = number == 0 and first is not None
            port.vlan_id = first.vlan_id if known and first else ctl.region.new_fabric_vlan().id
        if port.links:
            continue
        on = ctl.region.subnet_of_vlan(port.vlan_id) if number == 0 else None
        mode = "dhcp" if number == 0 else "link_up"
        port.links = [Link(ctl.region.number("link"), mode, on.id if on else None)]
