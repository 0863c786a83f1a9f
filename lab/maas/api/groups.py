"""Zones, resource pools and tags."""

from __future__ import annotations

from lab.maas.api.resource import Action, Answer, Call, Resource, bad, require_admin
from lab.maas.errors import Refusal
from lab.maas.model.region import Tag, Zone
from lab.maas.render import machine as render_machine
from lab.maas.render import network

_REQUIRED = "This field is required."


def _new_name(call: Call, kind: str, taken: object) -> str:
    require_admin(call)
    name = call.form.one("name")
    if not name:
        raise bad("name", _REQUIRED)
    if name in taken:  # type: ignore[operator]
        raise bad("name", f"{kind} with this Name already exists.")
    return name


def read_zones(call: Call) -> Answer:
    """List zones."""
    return Answer([network.zone(one) for one in call.region.zones.values()])


def create_zone(call: Call) -> Answer:
    """Make a zone."""
    name = _new_name(call, "Zone", call.region.zones)
    made = Zone(call.region.number("zone"), name, call.form.one("description"))
    call.region.zones[name] = made
    return Answer(network.zone(made))


def _zone(call: Call) -> Zone:
    found = call.region.zones.get(call.params["name"])
    if found is None:
        raise Refusal(404, "No Zone matches the given query.", content_type="text/plain")
    return found


def read_zone(call: Call) -> Answer:
    """Show a zone."""
    return Answer(network.zone(_zone(call)))


def delete_zone(call: Call) -> Answer:
    """Remove a zone; its machines go to the default one."""
    require_admin(call)
    found = _zone(call)
    if found.name == "default":
        raise Refusal(400, "This zone is the default zone, it cannot be deleted.")
    for one in call.region.machines.values():
        one.zone = "default" if one.zone == found.name else one.zone
    del call.region.zones[found.name]
    return Answer(b"", status=204, content_type="text/plain")


def read_pools(call: Call) -> Answer:
    """List resource pools."""
    return Answer([network.pool(one) for one in call.region.pools.values()])


def create_pool(call: Call) -> Answer:
    """Make a resource pool."""
    name = _new_name(call, "Resource pool", call.region.pools)
    made = Zone(call.region.number("pool"), name, call.form.one("description"))
    call.region.pools[name] = made
    return Answer(network.pool(made))


def _pool(call: Call) -> Zone:
    wanted = call.params["id"]
    found = next((one for one in call.region.pools.values() if wanted in {str(one.id), one.name}), None)
    if found is None:
        raise Refusal(404, "No ResourcePool matches the given query.", content_type="text/plain")
    return found


def read_pool(call: Call) -> Answer:
    """Show a resource pool."""
    return Answer(network.pool(_pool(call)))


def delete_pool(call: Call) -> Answer:
    """Remove an empty resource pool."""
    require_admin(call)
    found = _pool(call)
    if found.id == 0:
        raise Refusal(400, "Default pool cannot be deleted.")
    if any(one.pool == found.name for one in call.region.machines.values()):
        raise Refusal(400, f"Can't delete pool '{found.name}', it contains machines.")
    del call.region.pools[found.name]
    return Answer(b"", status=204, content_type="text/plain")


def read_tags(call: Call) -> Answer:
    """List tags."""
    return Answer([network.tag(one) for one in call.region.tags.values()])


def create_tag(call: Call) -> Answer:
    """Make a tag."""
    name = _new_name(call, "Tag", call.region.tags)
    form = call.form
    made = Tag(name, form.one("comment"), form.one("definition"), form.one("kernel_opts"))
    call.region.tags[name] = made
    return Answer(network.tag(made))


def _tag(call: Call) -> Tag:
    found = call.region.tags.get(call.params["name"])
    if found is None:
        raise Refusal(404, "No Tag matches the given query.", content_type="text/plain")
    return found


def read_tag(call: Call) -> Answer:
    """Show a tag."""
    return Answer(network.tag(_tag(call)))


def update_tag(call: Call) -> Answer:
    """Change a tag's comment or kernel options."""
    require_admin(call)
    found = _tag(call)
    found.comment = call.form.one("comment", found.comment)
    found.kernel_opts = call.form.one("kernel_opts", found.kernel_opts)
    return Answer(network.tag(found))


def delete_tag(call: Call) -> Answer:
    """Remove a tag, from its machines too."""
    require_admin(call)
    found = _tag(call)
    for one in call.region.machines.values():
        if found.name in one.tags:
            one.tags.remove(found.name)
    del call.region.tags[found.name]
    return Answer(b"", status=204, content_type="text/plain")


def tag_machines(call: Call) -> Answer:
    """List the machines that bear a tag."""
    found = _tag(call)
    bearing = [one for one in call.region.machines.values() if found.name in one.tags]
    return Answer([render_machine.machine(call.region, one) for one in bearing])


def update_nodes(call: Call) -> Answer:
    """Put a tag on machines and take it from others."""
    require_admin(call)
    name = _tag(call).name
    added = removed = 0
    for system_id in call.form.listed("add"):
        one = call.region.machines.get(system_id)
        if one is not None and name not in one.tags:
            one.tags.append(name)
            added += 1
    for system_id in call.form.listed("remove"):
        one = call.region.machines.get(system_id)
        if one is not None and name in one.tags:
            one.tags.remove(name)
            removed += 1
    return Answer({"added": added, "removed": removed})


RESOURCES = (
    Resource("ZonesHandler", "zones/", (Action("GET", None, read_zones), Action("POST", None, create_zone))),
    Resource(
        "ZoneHandler", "zones/{name}/", (Action("GET", None, read_zone), Action("DELETE", None, delete_zone))
    ),
    Resource(
        "ResourcePoolsHandler",
        "resourcepools/",
        (Action("GET", None, read_pools), Action("POST", None, create_pool)),
    ),
    Resource(
        "ResourcePoolHandler",
        "resourcepool/{id}/",
        (Action("GET", None, read_pool), Action("DELETE", None, delete_pool)),
    ),
    Resource("TagsHandler", "tags/", (Action("GET", None, read_tags), Action("POST", None, create_tag))),
    Resource(
        "TagHandler",
        "tags/{name}/",
        (
            Action("GET", None, read_tag),
            Action("PUT", None, update_tag),
            Action("DELETE", None, delete_tag),
            Action("GET", "machines", tag_machines),
            Action("GET", "nodes", tag_machines),
            Action("POST", "update_nodes", update_nodes),
        ),
    ),
)
