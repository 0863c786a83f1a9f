"""Version, users, preferences, settings and rack controllers."""

from __future__ import annotations

from lab.maas.api.resource import Action, Answer, Call, Resource, bad, require_admin
from lab.maas.config import User
from lab.maas.errors import Refusal
from lab.maas.model.region import SshKey
from lab.maas.render import API, network

Json = dict[str, object]

_CAPABILITIES = (
    "networks-management",
    "static-ipaddresses",
    "ipv6-deployment-ubuntu",
    "devices-management",
    "storage-deployment-ubuntu",
    "network-deployment-ubuntu",
    "bridging-interface-ubuntu",
    "bridging-automatic-ubuntu",
    "authenticate-api",
)


def version(call: Call) -> Answer:
    """Show what this MAAS is and can; everybody may ask."""
    capabilities = list(_CAPABILITIES)
    return Answer({"capabilities": capabilities, "version": call.ctl.config.version, "subversion": ""})


def _user(one: User) -> Json:
    return {
        "is_superuser": one.superuser,
        "username": one.name,
        "email": one.email,
        "is_local": True,
        "resource_uri": f"{API}/users/{one.name}/",
    }


def whoami(call: Call) -> Answer:
    """Show the caller."""
    return Answer(_user(call.who))


def read_users(call: Call) -> Answer:
    """List users."""
    return Answer([_user(one) for one in call.region.users.values()])


def read_user(call: Call) -> Answer:
    """Show a user."""
    found = call.region.users.get(call.params["username"])
    if found is None:
        raise Refusal(404, "No User matches the given query.", content_type="text/plain")
    return Answer(_user(found))


def _key(one: SshKey) -> Json:
    return {
        "id": one.id,
        "key": one.key,
        "keysource": None,
        "resource_uri": f"{API}/account/prefs/sshkeys/{one.id}/",
    }


def read_keys(call: Call) -> Answer:
    """List the caller's SSH keys."""
    mine = [one for one in call.region.ssh_keys.values() if one.user == call.who.name]
    return Answer([_key(one) for one in mine])


def create_key(call: Call) -> Answer:
    """Add an SSH key; it goes onto every machine deployed from now on."""
    given = call.form.one("key").strip()
    if not given:
        raise bad("key", "This field is required.")
    if not given.startswith(("ssh-", "ecdsa-", "sk-")) or len(given.split()) < 2:
        raise bad("key", "Invalid SSH public key.")
    if any(one.key == given and one.user == call.who.name for one in call.region.ssh_keys.values()):
        raise bad("__all__", "This key has already been added for this user.")
    number = call.region.number("sshkey")
    made = SshKey(number, given, call.who.name)
    call.region.ssh_keys[number] = made
    return Answer(_key(made), status=201)


def _own_key(call: Call) -> SshKey:
    wanted = call.params["id"]
    found = call.region.ssh_keys.get(int(wanted)) if wanted.isdigit() else None
    if found is None:
        raise Refusal(404, "No SSHKey matches the given query.", content_type="text/plain")
    if found.user != call.who.name:
        raise Refusal(403, "Can't delete a key you don't own.")
    return found


def read_key(call: Call) -> Answer:
    """Show an SSH key."""
    return Answer(_key(_own_key(call)))


def delete_key(call: Call) -> Answer:
    """Remove an SSH key."""
    del call.region.ssh_keys[_own_key(call).id]
    return Answer(b"", status=204, content_type="text/plain")


def get_config(call: Call) -> Answer:
    """Show a setting."""
    name = call.query.one("name")
    if name not in call.region.settings:
        known = ", ".join(sorted(call.region.settings))
        raise bad(name or "name", f"{name} is not a valid config setting (valid settings are: {known}).")
    return Answer(call.region.settings[name], content_type="application/json")


def set_config(call: Call) -> Answer:
    """Change a setting."""
    require_admin(call)
    call.region.settings[call.form.one("name")] = call.form.one("value")
    return Answer(b"OK", content_type="text/plain; charset=utf-8")


def read_racks(call: Call) -> Answer:
    """List rack controllers."""
    return Answer([_rack(call, *found) for found in call.region.racks.items()])


def read_rack(call: Call) -> Answer:
    """Show a rack controller."""
    wanted = call.params["system_id"]
    if wanted not in call.region.racks:
        raise Refusal(404, "No RackController matches the given query.", content_type="text/plain")
    return Answer(_rack(call, wanted, call.region.racks[wanted]))


def _rack(call: Call, system_id: str, name: str) -> Json:
    zone = network.zone(call.region.zones["default"])
    return {
        "system_id": system_id,
        "hostname": name,
        "fqdn": f"{name}.maas",
        "domain": network.domain(),
        "node_type": 2,
        "node_type_name": "Rack controller",
        "architecture": "amd64/generic",
        "cpu_count": 2,
        "memory": 4096,
        "zone": zone,
        "version": call.ctl.config.version,
        "service_set": [{"name": "rackd", "status": "running", "status_info": ""}],
        "interface_set": [],
        "ip_addresses": [],
        "power_type": "",
        "resource_uri": f"{API}/rackcontrollers/{system_id}/",
    }


RESOURCES = (
    Resource("VersionHandler", "version/", (Action("GET", None, version, anonymous=True),)),
    Resource("UsersHandler", "users/", (Action("GET", None, read_users), Action("GET", "whoami", whoami))),
    Resource("UserHandler", "users/{username}/", (Action("GET", None, read_user),)),
    Resource(
        "SSHKeysHandler",
        "account/prefs/sshkeys/",
        (Action("GET", None, read_keys), Action("POST", None, create_key)),
    ),
    Resource(
        "SSHKeyHandler",
        "account/prefs/sshkeys/{id}/",
        (Action("GET", None, read_key), Action("DELETE", None, delete_key)),
    ),
    Resource(
        "MaasHandler",
        "maas/",
        (Action("GET", "get_config", get_config), Action("POST", "set_config", set_config)),
    ),
    Resource("RackControllersHandler", "rackcontrollers/", (Action("GET", None, read_racks),)),
    Resource("RackControllerHandler", "rackcontrollers/{system_id}/", (Action("GET", None, read_rack),)),
)
