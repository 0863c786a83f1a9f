"""Making machines: by a signed request, or by an unknown machine that enlists itself."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field

from lab.maas.api.form import Form
from lab.maas.errors import Refusal
from lab.maas.model.machine import Interface, Machine
from lab.maas.model.region import Region

ARCHITECTURES = ("amd64/generic",)
_MAC = re.compile(r"^([0-9a-fA-F]{2}[:-]){5}[0-9a-fA-F]{2}$")
_REQUIRED = ["This field is required."]
_PREFIX = "power_parameters_"
_IPMI_DEFAULTS = {
    "power_driver": "LAN_2_0",
    "power_boot_type": "auto",
    "power_off_mode": "hard",
    "cipher_suite_id": "3",
    "privilege_level": "OPERATOR",
    "k_g": "",
    "mac_address": "",
    "power_user": "",
    "power_pass": "",
}
POWER_TYPES = frozenset({"", "manual", "ipmi", "redfish"})

Problems = dict[str, list[str]]


@dataclass(slots=True)
class NewMachine:
    """A checked request for a machine."""

    hostname: str = ""
    architecture: str = ""
    macs: list[str] = field(default_factory=list)
    power_type: str = ""
    power: dict[str, str] = field(default_factory=dict, repr=False)
    description: str = ""
    zone: str = "default"
    pool: str = "default"


def power_parameters(form: Form) -> dict[str, str] | None:
    """Return power parameters given as JSON or one by one; None when there are none. Raises Refusal."""
    found: dict[str, str] = {}
    given = form.given("power_parameters")
    if given:
        try:
            parsed = json.loads(given)
        except ValueError:
            raise Refusal(400, {"power_parameters": ["Failed to parse JSON power_parameters"]}) from None
        if not isinstance(parsed, dict):
            raise Refusal(400, {"power_parameters": ["Failed to parse JSON power_parameters"]})
        found |= {str(key): _text(value) for key, value in parsed.items()}
    found |= {key.removeprefix(_PREFIX): value for key, value in form if key.startswith(_PREFIX)}
    return found or None


def _text(value: object) -> str:
    return value if isinstance(value, str) else json.dumps(value)


def check(region: Region, form: Form) -> NewMachine:
    """Check a request for a machine. Raises Refusal with every problem found."""
    problems: Problems = {}
    new = NewMachine(description=form.one("description"))
    new.power_type = form.one("power_type")
    if new.power_type not in POWER_TYPES:
        text = f"Select a valid choice. {new.power_type} is not one of the available choices."
        problems["power_type"] = [text]
    new.architecture = check_architecture(form.one("architecture"), problems)
    new.macs = _check_macs(region, form, new.power_type, problems)
    new.power = _check_power(form, new.power_type, problems)
    new.hostname = form.one("hostname") or f"lab-{region.fresh_system_id()}"
    if region.by_hostname(new.hostname) is not None:
        problems["hostname"] = ["Node with this Hostname already exists."]
    new.zone = check_choice("zone", form.given("zone"), region.zones.keys(), problems) or "default"
    new.pool = check_choice("pool", form.given("pool"), region.pools.keys(), problems) or "default"
    if problems:
        raise Refusal(400, problems)
    return new


def check_architecture(given: str, problems: Problems) -> str:
    """Return the whole name of an architecture."""
    if not given:
        problems["architecture"] = _REQUIRED
        return ""
    name = given if "/" in given else f"{given}/generic"
    if name not in ARCHITECTURES:
        known = ", ".join(f"'{one}'" for one in ARCHITECTURES)
        text = f"'{name}' is not a valid architecture.  It should be one of: {known}."
        problems["architecture"] = [text]
    return name


def check_choice(name: str, given: str | None, known: object, problems: Problems) -> str | None:
    """Return a given name if it is known."""
    if given is not None and given not in known:  # type: ignore[operator]
        text = "Select a valid choice. That choice is not one of the available choices."
        problems[name] = [text]
    return given


def _check_macs(region: Region, form: Form, power_type: str, problems: Problems) -> list[str]:
    macs = [one.lower().replace("-", ":") for one in form.listed("mac_addresses")]
    good = [one for one in macs if _MAC.match(one)]
    if power_type == "manual" and not good:
        text = "Can't set power type to manual without network interfaces"
        problems.setdefault("power_type", []).append(text)
    if bad := [one for one in macs if not _MAC.match(one)]:
        problems["mac_addresses"] = [f"'{one}' is not a valid MAC address." for one in bad]
    elif not macs and power_type not in {"ipmi"}:
        problems["mac_addresses"] = _REQUIRED
    for one in good:
        if (holder := region.by_mac(one)) is not None:
            text = f"MAC address {one} already in use on {holder.hostname}."
            problems.setdefault("mac_addresses", []).append(text)
    return good


def _check_power(form: Form, power_type: str, problems: Problems) -> dict[str, str]:
    given = power_parameters(form)
    if power_type not in {"ipmi", "redfish"}:
        return given or {}
    if given is None:
        problems["power_parameters"] = _REQUIRED
        return {}
    if not given.get("power_address"):
        problems["power_parameters"] = ["Power address: This field is required."]
    return _IPMI_DEFAULTS | given if power_type == "ipmi" else given


def add(region: Region, new: NewMachine, now: float) -> Machine:
    """Put a checked machine into the region, as New."""
    made = Machine(
        system_id=region.fresh_system_id(),
        hostname=new.hostname,
        created=now,
        architecture=new.architecture,
        description=new.description,
        power_type=new.power_type,
        power_parameters=new.power,
        zone=new.zone,
        pool=new.pool,
    )
    made.interfaces = [
        Interface(region.number("interface"), f"eth{number}", mac) for number, mac in enumerate(new.macs)
    ]
    region.machines[made.system_id] = made
    return made
