#!/usr/bin/python3
"""Mirrors Debian package sources with aptly and publishes dated snapshots of them that never change."""

from __future__ import annotations

import json
import os
from typing import Any

DOCUMENTATION = r"""
---
module: apt_snapshots
short_description: Publishes dated snapshots of Debian package sources
version_added: "2026.11.0"
description:
  - Each source is mirrored, a snapshot of it is taken under the given name, and that snapshot is published. A
    snapshot that exists is never taken again, so a second run changes nothing and asks nobody outside.
  - What is published changes only when the new snapshot is complete. A source that is away leaves the old one
    published.
options:
  snapshot:
    description: Name of the snapshots to take and to publish, for example 2026-11-30.
    type: str
    required: true
  sources:
    description:
      - The sources, each with C(name), C(url), C(suite), C(components), C(architectures), C(filter) (which
        packages, in aptly's form) and C(keyring) (a file; without it signatures are not checked).
    type: list
    elements: dict
    required: true
  config:
    description: The configuration of aptly.
    type: path
    required: true
  key:
    description: Fingerprint or name of the key that signs.
    type: str
    required: true
  home:
    description: The folder of GnuPG with that key.
    type: path
    required: true
author: Muster
"""

EXAMPLES = r"""
- name: Publish this month's packages
  apt_snapshots:
    snapshot: 2026-11-01
    config: /etc/aptly.conf
    key: Muster packages
    home: /var/lib/muster-apt/gnupg
    sources:
      - {name: debian, url: "http://mirror.example/debian", suite: bookworm, components: [main]}
"""

RETURN = r"""
changes:
  description: What was done, one text a change.
  type: list
  returned: always
"""


def snapshot_name(source: dict[str, Any], snapshot: str) -> str:
    """Return the name of a source's snapshot."""
    return f"{source['name']}-{snapshot}"


def trust(source: dict[str, Any]) -> list[str]:
    """Return how signatures of a source are checked."""
    return [f"-keyring={source['keyring']}"] if source["keyring"] else ["-ignore-signatures"]


def mirror_command(source: dict[str, Any]) -> list[str]:
    """Return what makes the mirror of a source."""
    words = ["mirror", "create", f"-architectures={','.join(source['architectures'])}"]
    if source["filter"]:
        words += [f"-filter={source['filter']}", "-filter-with-deps"]
    words += [*trust(source), source["name"], source["url"], source["suite"]]
    return words + ([] if source["suite"].endswith("/") else source["components"])


def distribution(source: dict[str, Any]) -> str:
    """Return the suite under which a source is published; a flat source has none of its own."""
    suite = str(source["suite"]).strip("./")
    return suite or "stable"


def published(answer: str) -> dict[tuple[str, str], list[str]]:
    """Read what aptly publishes: the snapshots of each prefix and distribution."""
    return {
        (entry["Prefix"], entry["Distribution"]): [one["Name"] for one in entry["Sources"]]
        for entry in json.loads(answer)
    }


def main() -> None:
    """Run as an Ansible module."""
    from ansible.module_utils.basic import AnsibleModule

    entry = {
        "name": {"type": "str", "required": True},
        "url": {"type": "str", "required": True},
        "suite": {"type": "str", "required": True},
        "components": {"type": "list", "elements": "str", "default": ["main"]},
        "architectures": {"type": "list", "elements": "str", "default": ["amd64"]},
        "filter": {"type": "str", "default": ""},
        "keyring": {"type": "str", "default": "", "no_log": False},
    }
    options = {
        "snapshot": {"type": "str", "required": True},
        "sources": {"type": "list", "elements": "dict", "options": entry, "required": True},
        "config": {"type": "path", "required": True},
        "key": {"type": "str", "required": True, "no_log": False},
        "home": {"type": "path", "required": True},
    }
    module = AnsibleModule(argument_spec=options, supports_check_mode=True)
    module.run_command_environ_update = {"GNUPGHOME": module.params["home"], "LC_ALL": "C"}
    if module.check_mode and module.get_bin_path("aptly") is None:
        module.exit_json(changed=True, changes=[f"publish {one['name']}" for one in module.params["sources"]])
    os.umask(0o022)  # nginx reads what is published
    changes: list[str] = []
    for source in module.params["sources"]:
        changes += _take(module, source)
        changes += _publish(module, source)
    module.exit_json(changed=bool(changes), changes=changes)


def _aptly(module: Any, words: list[str], doing: str) -> str:
    status, told, complaint = module.run_command(["aptly", f"-config={module.params['config']}", *words])
    if status:
        lines = [line.strip() for line in f"{told}\n{complaint}".splitlines() if line.strip()]
        said = "; ".join([line for line in lines if line.startswith("ERROR")] or lines[-2:])
        module.fail_json(msg=f"cannot {doing}: {said}; what is published stays as it was")
    return str(told)


def _take(module: Any, source: dict[str, Any]) -> list[str]:
    name = snapshot_name(source, module.params["snapshot"])
    if name in _aptly(module, ["snapshot", "list", "-raw"], "list snapshots").split():
        return []
    if module.check_mode:
        return [f"take {name}"]
    if source["name"] in _aptly(module, ["mirror", "list", "-raw"], "list mirrors").split():
        # It may have another address or filter now; what was fetched stays in aptly's pool.
        _aptly(module, ["mirror", "drop", "-force", source["name"]], f"renew the mirror {source['name']}")
    _aptly(module, mirror_command(source), f"mirror {source['url']}")
    # Every file is compared with the checksum that the source's index gives.
    update = ["mirror", "update", "-max-tries=3", *trust(source), source["name"]]
    _aptly(module, update, f"fetch {source['url']}")
    _aptly(module, ["snapshot", "create", name, "from", "mirror", source["name"]], f"take {name}")
    return [f"take {name}"]


def _publish(module: Any, source: dict[str, Any]) -> list[str]:
    name = snapshot_name(source, module.params["snapshot"])
    place = (source["name"], distribution(source))
    now = published(_aptly(module, ["publish", "list", "-json"], "list what is published")).get(place)
    if now == [name]:
        return []
    if not module.check_mode:
        sign = [f"-gpg-key={module.params['key']}", "-batch"]
        if now is None:
            kinds = f"-architectures={','.join(source['architectures'])}"
            words = ["snapshot", *sign, kinds, f"-distribution={place[1]}", name, place[0]]
        else:
            words = ["switch", *sign, place[1], place[0], name]
        _aptly(module, ["publish", *words], f"publish {name}")
    return [f"publish {name}"]


if __name__ == "__main__":
    main()
