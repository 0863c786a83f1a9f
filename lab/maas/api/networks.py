"""Fabrics, VLANs, subnets, interfaces and disks."""

from __future__ import annotations

import ipaddress

from lab.maas.api.resource import Action, Answer, Call, Resource, bad, require_admin
from lab.maas.errors import Refusal
from lab.maas.life import network
from lab.maas.model.machine import Interface, Machine
from lab.maas.model.region import Subnet, Vlan
from lab.maas.model.status import Status
from lab.maas.render import network as render
from lab.maas.render import storage

_CHANGEABLE = frozenset({Status.NEW, Status.READY, Status.ALLOCATED, Status.FAILED_TESTING, Status.BROKEN})


def _missing(kind: str) -> Refusal:
    return Refusal(404, f"No {kind} matches the given query.", content_type="text/plain")


def read_fabrics(call: Call) -> Answer:
    """List fabrics."""
    return Answer([render.fabric(one) for one in call.region.vlans.values()])


def _vlan_of_fabric(call: Call) -> Vlan:
    wanted = call.params["id"]
    for one in call.region.vlans.values():
        if wanted in {str(one.fabric_id), f"fabric-{one.fabric_id}"}:
            return one
    raise _missing("Fabric")


def read_fabric(call: Call) -> Answer:
    """Show a fabric."""
    return Answer(render.fabric(_vlan_of_fabric(call)))


def read_fabric_vlans(call: Call) -> Answer:
    """List a fabric's VLANs."""
    return Answer([render.vlan(_vlan_of_fabric(call))])


def read_vlan(call: Call) -> Answer:
    """Show a VLAN."""
    found = next((one for one in call.region.vlans.values() if str(one.id) == call.params["id"]), None)
    if found is None:
        raise _missing("VLAN")
    return Answer(render.vlan(found))


def read_subnets(call: Call) -> Answer:
    """List subnets."""
    return Answer([render.subnet(call.region, one) for one in call.region.subnets.values()])


def read_subnet(call: Call) -> Answer:
    """Show a subnet."""
    wanted = call.params["id"]
    for one in call.region.subnets.values():
        if wanted in {str(one.id), one.name, one.cidr}:
            return Answer(render.subnet(call.region, one))
    raise _missing("Subnet")


def create_subnet(call: Call) -> Answer:
    """Make a subnet, on the first VLAN unless one is named."""
    require_admin(call)
    region, form = call.region, call.form
    try:
        cidr = str(ipaddress.ip_network(form.one("cidr")))
    except ValueError:
        raise bad("cidr", "This field is required." if not form.one("cidr") else "Invalid CIDR.") from None
    if any(one.cidr == cidr for one in region.subnets.values()):
        raise bad("cidr", "Subnet with this Cidr already exists.")
    if not region.vlans:
        region.new_fabric_vlan()
    vlan = _named_vlan(call) or next(iter(region.vlans.values()))
    number = region.number("subnet")
    gateway = form.given("gateway_ip") or None
    made = Subnet(number, form.one("name") or cidr, cidr, vlan.id, gateway, form.one("description"))
    region.subnets[number] = made
    return Answer(render.subnet(region, made))


def _named_vlan(call: Call) -> Vlan | None:
    asked = call.form.given("vlan")
    if asked is None:
        return None
    found = next((one for one in call.region.vlans.values() if str(one.id) == asked), None)
    if found is None:
        raise bad("vlan", "Select a valid choice. That choice is not one of the available choices.")
    return found


def read_interfaces(call: Call) -> Answer:
    """List a machine's interfaces."""
    one = call.machine()
    return Answer([render.interface(call.region, one, port) for port in one.interfaces])


def _port(call: Call) -> tuple[Machine, Interface]:
    one = call.machine()
    wanted = call.params["id"]
    for port in one.interfaces:
        if wanted in {str(port.id), port.name}:
            return one, port
    raise _missing("Interface")


def _port_to_change(call: Call) -> tuple[Machine, Interface]:
    one, port = _port(call)
    if one.locked or (one.owner not in {None, call.who.name} and not call.who.superuser):
        raise Refusal(403, "")
    if one.status not in _CHANGEABLE:
        text = "Cannot change interfaces of a machine that is not New, Ready, Allocated or Broken."
        raise Refusal(409, text)
    return one, port


def read_interface(call: Call) -> Answer:
    """Show an interface."""
    return Answer(render.interface(call.region, *_port(call)))


def update_interface(call: Call) -> Answer:
    """Change an interface's name or VLAN; another VLAN drops its links."""
    one, port = _port_to_change(call)
    vlan = _named_vlan(call)
    if vlan is not None and vlan.id != port.vlan_id:
        port.vlan_id = vlan.id
        port.links = []
    port.name = call.form.one("name", port.name)
    return Answer(render.interface(call.region, one, port))


def link_subnet(call: Call) -> Answer:
    """Join an interface to a subnet."""
    one, port = _port_to_change(call)
    form = call.form
    if "mode" not in form:
        raise bad("mode", "This field is required.")
    given = form.given("subnet"), form.given("ip_address")
    network.link_subnet(call.ctl, port, form.one("mode"), *given)
    return Answer(render.interface(call.region, one, port))


def unlink_subnet(call: Call) -> Answer:
    """Take an interface off a subnet."""
    one, port = _port_to_change(call)
    port.links = [link for link in port.links if str(link.id) != call.form.one("id")]
    return Answer(render.interface(call.region, one, port))


def read_disks(call: Call) -> Answer:
    """List a machine's block devices."""
    one = call.machine()
    return Answer([storage.listed_disk(one, found) for found in one.disks])


def read_disk(call: Call) -> Answer:
    """Show a block device."""
    one = call.machine()
    for found in one.disks:
        if call.params["id"] in {str(found.id), found.name}:
            return Answer(storage.listed_disk(one, found))
    raise _missing("BlockDevice")


RESOURCES = (
    Resource("FabricsHandler", "fabrics/", (Action("GET", None, read_fabrics),)),
    Resource("FabricHandler", "fabrics/{id}/", (Action("GET", None, read_fabric),)),
    Resource("VlansHandler", "fabrics/{id}/vlans/", (Action("GET", None, read_fabric_vlans),)),
    Resource("VlanHandler", "vlans/{id}/", (Action("GET", None, read_vlan),)),
    Resource(
        "SubnetsHandler", "subnets/", (Action("GET", None, read_subnets), Action("POST", None, create_subnet))
    ),
    Resource("SubnetHandler", "subnets/{id}/", (Action("GET", None, read_subnet),)),
    Resource("InterfacesHandler", "nodes/{system_id}/interfaces/", (Action("GET", None, read_interfaces),)),
    Resource(
        "InterfaceHandler",
        "nodes/{system_id}/interfaces/{id}/",
        (
            Action("GET", None, read_interface),
            Action("PUT", None, update_interface),
            Action("POST", "link_subnet", link_subnet),
            Action("POST", "unlink_subnet", unlink_subnet),
        ),
    ),
    Resource("BlockDevicesHandler", "nodes/{system_id}/blockdevices/", (Action("GET", None, read_disks),)),
    Resource("BlockDeviceHandler", "nodes/{system_id}/blockdevices/{id}/", (Action("GET", None, read_disk),)),
)
