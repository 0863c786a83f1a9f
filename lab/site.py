"""Writes a site folder for a lab of any size, in the form that the product reads."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from lab.errors import BadRequest
from lab.plan import Plan
from lab.spec import BMC_USER, LabNet, RackKind, rack_specs

_SITE = """\
# The emulated lab on net 127.{octet}. References lie below the state folder, where the lab puts its secrets.
name: {name}
maas:
  url: {maas}
  key: file:lab/secrets/maas-key
ssh:
  user: ubuntu
  key: file:lab/secrets/ssh_key
credentials:
  bmc:
    username: {user}
    password: file:lab/secrets/bmc-password
prepare: [python, -m, lab, up, --if-down, --nodes, "{nodes}", --real, "{real}", --light, "{light}"]
spare_share: 0.0
"""

# A light node has a BMC and nothing behind it, so only what a BMC shows can be asked of it.
_LIGHT_PROFILE = """\
  lab-light:
    vendor: Muster
    model: Imaginary lab node
    os_image: custom/debian-12
"""
# The site that ships with the product says what a healthy lab node is; there is one such place.
_PROFILES = Path(__file__).resolve().parent.parent / "inventory" / "sites" / "lab" / "profiles.yaml"


def write_site(folder: Path, net: LabNet, plan: Plan) -> Path:
    """Write site.yaml, racks.yaml and profiles.yaml. Raises BadRequest where the folder holds other files."""
    files = {"site.yaml", "racks.yaml", "profiles.yaml"}
    if folder.exists() and any(path.name not in files for path in folder.iterdir()):
        raise BadRequest(str(folder), "it holds other files", follow="name a new folder with --out")
    folder.mkdir(parents=True, exist_ok=True)
    site = _SITE.format(
        octet=net.octet,
        name=folder.name,
        maas=net.maas_url,
        user=BMC_USER,
        nodes=plan.nodes,
        real=plan.real,
        light=plan.light,
    )
    (folder / "site.yaml").write_text(site, encoding="utf-8")
    profiles = _PROFILES.read_text(encoding="utf-8") + _LIGHT_PROFILE
    (folder / "profiles.yaml").write_text(profiles, encoding="utf-8")
    (folder / "racks.yaml").write_text("\n".join(["racks:", *_racks(net, plan)]) + "\n", encoding="utf-8")
    return folder


def _racks(net: LabNet, plan: Plan) -> Iterator[str]:
    for rack in RackKind:
        if not plan.count(rack):
            continue
        yield f"  {rack}:"
        yield f"    profile: {rack}"
        yield "    bmc: {credential: bmc, protocol: ipmi}"
        yield "    nodes:"
        for spec in rack_specs(net, rack, plan.count(rack)):
            yield f"      {spec.name}:"
            yield f"        bmc: {spec.bmc_host}"
            yield f"        serial: {spec.serial}"
            yield f'        mac: "{spec.mac}"'
            yield f"        address: {spec.address}"
