"""Links between interfaces and subnets, and the addresses that go with them."""

from __future__ import annotations

import ipaddress

from lab.maas.errors import Refusal
from lab.maas.life.conductor import Conductor
from lab.maas.model.machine import Interface, Link, Machine
from lab.maas.model.region import Region, Subnet

MODES = ("auto", "dhcp", "static", "link_up")


def link_subnet(ctl: Conductor, port: Interface, mode: str, subnet_id: str | None, ip: str | None) -> None:
    """Join an interface to a subnet; the new link replaces the others. Raises Refusal."""
    mode = mode.lower()
    if mode not in MODES:
        known = ", ".join(f"'{one}'" for one in MODES)
        text = f"'{mode}' is not a valid mode.  It should be one of: {known}."
        raise Refusal(400, {"mode": [text]})
    subnet = _choose_subnet(ctl.region, port, mode, subnet_id)
    address = _choose_address(ctl.region, port, subnet, ip) if mode == "static" else None
    number = ctl.region.number("link")
    port.links = [Link(number, mode, subnet.id if subnet else None, address)]


def _choose_subnet(region: Region, port: Interface, mode: str, asked: str | None) -> Subnet | None:
    if not asked:
        if mode in {"auto", "static"}:
            raise Refusal(400, {"subnet": ["This field is required."]})
        return None
    for one in region.subnets.values():
        named = {str(one.id), one.name, one.cidr, f"cidr:{one.cidr}", f"name:{one.name}"}
        if asked in named and one.vlan_id == port.vlan_id:
            return one
    problems = [f"None found with id={asked}."]
    if mode in {"auto", "static"}:
        problems.append("This field is required.")
    raise Refusal(400, {"subnet": problems})


def _choose_address(region: Region, port: Interface, subnet: Subnet | None, ip: str | None) -> str | None:
    if subnet is None:
        return None
    if not ip:
        return free_address(region, subnet)
    try:
        address = ipaddress.ip_address(ip)
    except ValueError:
        raise Refusal(400, {"ip_address": ["Enter a valid IPv4 or IPv6 address."]}) from None
    if address not in ipaddress.ip_network(subnet.cidr):
        raise Refusal(400, {"ip_address": ["IP address is not in the given subnet '" + subnet.name + "'."]})
    if ip in used_addresses(region, besides=port):
        raise Refusal(400, {"ip_address": ["IP address is already in use."]})
    return ip


def used_addresses(region: Region, *, besides: Interface | None = None) -> set[str]:
    """Return every address that a link holds."""
    return {
        link.ip
        for machine in region.machines.values()
        for port in machine.interfaces
        if port is not besides
        for link in port.links
        if link.ip is not None
    }


def free_address(region: Region, subnet: Subnet) -> str:
    """Return the lowest address of a subnet that nobody holds."""
    taken = used_addresses(region) | ({subnet.gateway_ip} if subnet.gateway_ip else set())
    for address in ipaddress.ip_network(subnet.cidr).hosts():
        # The first ones are for routers and for MAAS itself.
        if int(address) & 0xFF > 2 and str(address) not in taken:
            return str(address)
    raise Refusal(503, f"No more IPs available in subnet: {subnet.cidr}.")


def claim_addresses(region: Region, machine: Machine) -> None:
    """Give every automatic link its address."""
    for port in machine.interfaces:
        for link in port.links:
            if link.mode == "auto" and link.ip is None and link.subnet_id in region.subnets:
                link.ip = free_address(region, region.subnets[link.subnet_id])


def drop_addresses(machine: Machine) -> None:
    """Give back what deployment claimed or found."""
    for port in machine.interfaces:
        port.discovered = None
        for link in port.links:
            if link.mode in {"auto", "dhcp"}:
                link.ip = None


def learn_address(region: Region, machine: Machine, address: str) -> None:
    """Remember the address that the deployed machine says it has."""
    port = machine.boot_interface
    if port is None:
        return
    port.discovered = address
    for link in port.links:
        if link.mode != "link_up":
            link.ip = address
            if link.subnet_id is None and (on := region.subnet_of_vlan(port.vlan_id)) is not None:
                link.subnet_id = on.id
            return


def is_on_network(region: Region, machine: Machine) -> bool:
    """Say whether some interface is joined to a subnet in a way that gives it an address."""
    return any(
        link.mode != "link_up" and link.subnet_id in region.subnets
        for port in machine.interfaces
        for link in port.links
    )
