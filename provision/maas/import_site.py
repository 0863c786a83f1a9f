"""Makes site files from what an existing MAAS has, so that a fleet can be taken over as it is."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field

import yaml

from provision.maas.differences import SeenMachine

# Node names of the site files: what DNS takes, in lower case.
_NAME = re.compile(r"[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?")
_PROTOCOLS = {"ipmi": "ipmi", "redfish": "redfish"}


@dataclass(frozen=True, slots=True)
class ImportedCredential:
    """One BMC login that MAAS uses. Its password belongs in the file that the reference names."""

    name: str
    username: str
    password: str = field(repr=False)

    @property
    def reference(self) -> str:
        """What site.yaml says in place of the password."""
        return f"file:{self.name}-password"


@dataclass(frozen=True, slots=True)
class Skipped:
    """A machine that cannot be written into site files, and why."""

    hostname: str
    system_id: str
    why: str


@dataclass(frozen=True, slots=True)
class Imported:
    """The text of racks.yaml, the logins that it names, and what was left out."""

    racks: str
    credentials: tuple[ImportedCredential, ...]
    skipped: tuple[Skipped, ...]

    def credentials_yaml(self) -> str:
        """Return the credentials as site.yaml has them: references, no secrets."""
        entries = {
            one.name: {"username": one.username, "password": one.reference} for one in self.credentials
        }
        return _yaml({"credentials": entries})


def import_site(seen: Sequence[SeenMachine], *, profile: str) -> Imported:
    """Return site files for the machines of a MAAS: a rack a zone, all of one hardware profile."""
    logins = _Logins()
    racks: dict[str, dict[str, object]] = defaultdict(dict)
    skipped: list[Skipped] = []
    owners: dict[str, str] = {}
    for one in sorted(seen, key=lambda each: each.machine.hostname):
        machine = one.machine
        why = _unusable(one) or _taken(one, owners)
        if why:
            skipped.append(Skipped(machine.hostname, machine.system_id, why))
            continue
        racks[machine.zone or "default"][machine.hostname] = _node(one, logins)
    body = {
        _rack_name(zone): {"zone": zone, "profile": profile, "nodes": nodes}
        for zone, nodes in sorted(racks.items())
    }
    return Imported(_yaml({"racks": body}), logins.all(), tuple(skipped))


class _Logins:
    """Gives each distinct login one name."""

    def __init__(self) -> None:
        self._names: dict[tuple[str, str], str] = {}

    def name(self, username: str, password: str) -> str:
        return self._names.setdefault((username, password), f"bmc-{len(self._names) + 1}")

    def all(self) -> tuple[ImportedCredential, ...]:
        return tuple(ImportedCredential(name, *login) for login, name in self._names.items())


def _node(one: SeenMachine, logins: _Logins) -> dict[str, object]:
    values = one.power.values if one.power else {}
    credential = logins.name(values.get("power_user", ""), values.get("power_pass", ""))
    protocol = _PROTOCOLS[one.machine.power_type]
    node: dict[str, object] = {
        "bmc": {"host": one.bmc, "credential": credential, "protocol": protocol},
        "macs": list(one.machine.macs),
    }
    if one.machine.serial:
        node["serial"] = one.machine.serial
    if one.machine.architecture not in {"", "amd64/generic"}:
        node["architecture"] = one.machine.architecture
    return node


def _unusable(one: SeenMachine) -> str | None:
    machine = one.machine
    if not _NAME.fullmatch(machine.hostname):
        return f"{machine.hostname} is no node name: lower-case letters, digits and dashes"
    if machine.power_type not in _PROTOCOLS:
        return f"its power type is {machine.power_type or 'not set'}; a node needs ipmi or redfish"
    if not one.bmc:
        return "MAAS does not know its BMC's address"
    if not (one.power and one.power.values.get("power_user")):
        return "MAAS has no login for its BMC"
    if not machine.macs:
        return "MAAS knows no MAC of it"
    return None


def _taken(one: SeenMachine, owners: dict[str, str]) -> str | None:
    """Return why two machines cannot both be written: they share a BMC or a serial number."""
    keys = [f"BMC {one.bmc}"] + ([f"serial {one.machine.serial}"] if one.machine.serial else [])
    for key in keys:
        if key in owners:
            return f"its {key} is also {owners[key]}'s"
    owners.update(dict.fromkeys(keys, one.machine.hostname))
    return None


def _rack_name(zone: str) -> str:
    return re.sub(r"[^a-z0-9-]+", "-", zone.lower()).strip("-") or "default"


def _yaml(body: object) -> str:
    text: str = yaml.safe_dump(body, sort_keys=False, default_flow_style=None, width=110)
    return text
