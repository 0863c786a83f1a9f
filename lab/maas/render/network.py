"""Zones, pools, tags, fabrics, subnets and interfaces as API answers."""

from __future__ import annotations

from lab.maas.model.machine import Interface, Link, Machine
from lab.maas.model.region import Region, Subnet, Tag, Vlan, Zone
from lab.maas.render import API

Json = dict[str, object]


def zone(one: Zone) -> Json:
    """Render a zone."""
    return {
        "name": one.name,
        "description": one.description,
        "id": one.id,
        "resource_uri": f"{API}/zones/{one.name}/",
    }


def pool(one: Zone) -> Json:
    """Render a resource pool."""
    return {
        "name": one.name,
        "description": one.description,
        "id": one.id,
        "resource_uri": f"{API}/resourcepool/{one.id}/",
    }


def tag(one: Tag) -> Json:
    """Render a tag."""
    return {
        "name": one.name,
        "definition": one.definition,
        "comment": one.comment,
        "kernel_opts": one.kernel_opts,
        "resource_uri": f"{API}/tags/{one.name}/",
    }


def domain() -> Json:
    """Render the one DNS domain that the lab has."""
    return {
        "authoritative": True,
        "ttl": None,
        "is_default": True,
        "resource_record_count": 0,
        "name": "maas",
        "id": 0,
        "resource_uri": f"{API}/domains/0/",
    }


def vlan(one: Vlan) -> Json:
    """Render a VLAN."""
    return {
        "vid": one.vid,
        "mtu": one.mtu,
        "dhcp_on": one.dhcp_on,
        "external_dhcp": None,
        "relay_vlan": None,
        "name": one.name,
        "primary_rack": None,
        "fabric_id": one.fabric_id,
        "secondary_rack": None,
        "id": one.id,
        "fabric": f"fabric-{one.fabric_id}",
        "space": "undefined",
        "resource_uri": f"{API}/vlans/{one.id}/",
    }


def fabric(one: Vlan) -> Json:
    """Render the fabric that a VLAN is the only one of."""
    return {
        "class_type": None,
        "vlans": [vlan(one)],
        "id": one.fabric_id,
        "name": f"fabric-{one.fabric_id}",
        "resource_uri": f"{API}/fabrics/{one.fabric_id}/",
    }


def subnet(region: Region, one: Subnet) -> Json:
    """Render a subnet."""
    return {
        "name": one.name,
        "description": one.description,
        "vlan": vlan(region.vlans[one.vlan_id]),
        "cidr": one.cidr,
        "rdns_mode": 2,
        "gateway_ip": one.gateway_ip,
        "dns_servers": [],
        "allow_dns": True,
        "allow_proxy": True,
        "active_discovery": False,
        "managed": True,
        "disabled_boot_architectures": [],
        "id": one.id,
        "space": "undefined",
        "resource_uri": f"{API}/subnets/{one.id}/",
    }


def link(region: Region, one: Link) -> Json:
    """Render a link; the address and the subnet appear only when known."""
    found: Json = {"id": one.id, "mode": one.mode}
    if one.ip is not None:
        found["ip_address"] = one.ip
    if one.subnet_id is not None and one.subnet_id in region.subnets:
        found["subnet"] = subnet(region, region.subnets[one.subnet_id])
    return found


def interface(region: Region, machine: Machine, one: Interface) -> Json:
    """Render a machine's interface."""
    discovered: list[Json] | None = None
    if one.discovered is not None:
        on = region.subnet_of_vlan(one.vlan_id)
        discovered = [{"ip_address": one.discovered, "subnet": subnet(region, on) if on else None}]
    return {
        "link_connected": True,
        "numa_node": 0,
        "tags": [],
        "system_id": machine.system_id,
        "type": "physical",
        "link_speed": one.link_speed,
        "name": one.name,
        "links": [link(region, found) for found in one.links],
        "mac_address": one.mac,
        "id": one.id,
        "interface_speed": one.link_speed,
        "discovered": discovered,
        "vlan": vlan(region.vlans[one.vlan_id]) if one.vlan_id is not None else None,
        "enabled": True,
        "vendor": one.vendor,
        "effective_mtu": 1500,
        "children": [],
        "parents": [],
        "params": {},
        "sriov_max_vf": 0,
        "firmware_version": one.firmware,
        "product": one.product,
        "resource_uri": f"{API}/nodes/{machine.system_id}/interfaces/{one.id}/",
    }


def gateways(region: Region, machine: Machine) -> Json:
    """Render the default gateways: that of the first subnet that has one."""
    found: str | None = None
    for port in machine.interfaces:
        for joined in port.links:
            on = region.subnets.get(joined.subnet_id) if joined.subnet_id is not None else None
            if found is None and on is not None:
                found = on.gateway_ip
    return {
        "ipv4": {"gateway_ip": found, "link_id": None},
        "ipv6": {"gateway_ip": None, "link_id": None},
    }
