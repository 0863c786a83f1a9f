#!/usr/bin/env python3
"""Inventory script that standard Ansible reads: `ansible-inventory -i inventory/ansible.py --list`.

MUSTER_SITE names the site folder (default: sites/lab beside this file), MUSTER_STATE the state
folder (default: var in the checkout), MUSTER_DATABASE_URL a database other than the one in it.
"""
# A script's own folder comes first in sys.path, where our secrets.py and site.py would stand in
# for Python's; it is replaced before anything else is imported.

from __future__ import annotations

import sys

if __name__ == "__main__":
    sys.path[0] = __file__.rpartition("/")[0].rpartition("/")[0] or ".."

import argparse
import json
import os
import re
from collections.abc import Mapping, Sequence
from pathlib import Path

from inventory.errors import InventoryError
from inventory.model import Node, Site
from inventory.records import NodeState
from inventory.secrets import secret_path
from inventory.site import load
from inventory.store import Store

_CHECKOUT = Path(__file__).resolve().parent.parent


def inventory(site: Site, states: Mapping[str, NodeState], *, state_folder: Path) -> dict[str, object]:
    """Return the inventory as Ansible's `--list` wants it. Holds paths of secrets, never secrets.

    Groups are `rack_R`, `pool_P`, `profile_P` and `role_R`, with a _ for what Ansible does not
    take in a name. A node whose address is not known yet has no ansible_host.
    """
    groups: dict[str, list[str]] = {}
    hosts: dict[str, object] = {}
    for node in site.nodes:
        state = states.get(node.name, NodeState(node.name))
        hosts[node.name] = _variables(site, node, state, state_folder)
        for group in _groups(node, state):
            groups.setdefault(group, []).append(node.name)
    listed: dict[str, object] = {name: {"hosts": members} for name, members in sorted(groups.items())}
    listed["all"] = {"children": ["ungrouped", *sorted(groups)]}
    listed["_meta"] = {"hostvars": hosts}
    return listed


def group_name(kind: str, name: str) -> str:
    """Return the name of a group as Ansible takes it: `rack_lab_real`."""
    return re.sub(r"[^A-Za-z0-9_]", "_", f"{kind}_{name}")


def _groups(node: Node, state: NodeState) -> list[str]:
    groups = [group_name("rack", node.rack), group_name("profile", node.profile)]
    groups += [group_name("role", role) for role in node.roles]
    return groups if state.pool is None else [*groups, group_name("pool", state.pool)]


def _variables(site: Site, node: Node, state: NodeState, state_folder: Path) -> dict[str, object]:
    known_hosts = state_folder.absolute() / "known_hosts" / node.name
    variables: dict[str, object] = {
        "ansible_port": node.ssh_port,
        "ansible_user": site.ssh.user,
        "ansible_ssh_private_key_file": str(secret_path(site.ssh.key, base=state_folder)),
        "ansible_ssh_common_args": f'-o "UserKnownHostsFile={known_hosts}"',
        "ansible_become": site.ssh.become,
        "muster_rack": node.rack,
        "muster_profile": node.profile,
        "muster_stage": str(state.stage),
        "muster_pool": state.pool and str(state.pool),
        "muster_serial": node.serial,
        "muster_unit": node.unit,
    }
    address = node.address or state.address
    return {"ansible_host": address, **variables} if address else variables


def _states(environ: Mapping[str, str], state_folder: Path) -> dict[str, NodeState]:
    """Read the states; a site that has never run has no database, and reading makes none."""
    url = environ.get("MUSTER_DATABASE_URL")
    file = state_folder / "muster.sqlite"
    if not url and not file.exists():
        return {}
    with Store.open(url or f"sqlite:///{file}") as store:
        return store.nodes()


def main(arguments: Sequence[str], environ: Mapping[str, str] = os.environ) -> int:
    """Print what Ansible asks for. Returns the exit code."""
    parser = argparse.ArgumentParser(description="Muster's inventory, as Ansible reads it.")
    asked = parser.add_mutually_exclusive_group(required=True)
    asked.add_argument("--list", action="store_true", help="everything")
    asked.add_argument("--host", metavar="NAME", help="the variables of one node")
    options = parser.parse_args(arguments)
    site_folder = Path(environ.get("MUSTER_SITE") or Path(__file__).resolve().parent / "sites" / "lab")
    state_folder = Path(environ.get("MUSTER_STATE") or _CHECKOUT / "var").absolute()
    try:
        site = load(site_folder)
        states = _states(environ, state_folder)
        if options.list:
            answer = inventory(site, states, state_folder=state_folder)
        else:
            nodes = {node.name: node for node in site.nodes}
            node = nodes.get(options.host)
            state = states.get(options.host, NodeState(options.host))
            answer = {} if node is None else _variables(site, node, state, state_folder)
    except InventoryError as error:
        sys.stderr.write(
            f"error: {error}\n  why: {error.__cause__ or 'see above'}\n  next: invoke inventory.check\n"
        )
        return 5
    sys.stdout.write(json.dumps(answer, indent=2) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
