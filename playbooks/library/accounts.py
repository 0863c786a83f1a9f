#!/usr/bin/python3
"""Makes the accounts of a node's administrators and writes their keys, all in one round trip."""

from __future__ import annotations

import grp
import pwd
from pathlib import Path
from typing import Any

DOCUMENTATION = r"""
---
module: accounts
short_description: Makes the accounts of a node's administrators and writes their keys
version_added: "2026.11.0"
description:
  - Accounts have no password. Keys lie in a folder that belongs to root, one file an account, so that an
    account cannot add to its own. A key file of nobody in the list is removed.
options:
  users:
    description: The accounts, each with C(name), C(keys), C(sudo) (member of C(group)) and C(shell).
    type: list
    elements: dict
    default: []
  absent:
    description: Accounts that must not exist. Their homes are kept.
    type: list
    elements: str
    default: []
  group:
    description: The group of those who may become root.
    type: str
    required: true
  keys_folder:
    description: Where the key files lie.
    type: path
    required: true
author: Muster
"""

EXAMPLES = r"""
- name: Make the accounts
  accounts:
    group: muster-admins
    keys_folder: /etc/ssh/authorized_keys.d
    users:
      - {name: ada, keys: [ssh-ed25519 AAAA ada]}
"""

RETURN = r"""
changes:
  description: What was done, one text a change.
  type: list
  returned: always
"""


def commands(user: dict[str, Any], group: str, entry: Any, members: list[str]) -> list[list[str]]:
    """Return the commands that bring one account to the wanted state; `entry` is None for a new one."""
    name = user["name"]
    wanted: list[list[str]] = []
    if entry is None:
        wanted.append(["useradd", "--create-home", "--user-group", "--shell", user["shell"], "--", name])
    elif entry.pw_shell != user["shell"]:
        wanted.append(["usermod", "--shell", user["shell"], "--", name])
    if user["sudo"] and name not in members:
        wanted.append(["usermod", "--append", "--groups", group, "--", name])
    if not user["sudo"] and name in members:
        wanted.append(["gpasswd", "--delete", name, group])
    return wanted


def main() -> None:
    """Run as an Ansible module."""
    from ansible.module_utils.basic import AnsibleModule

    entry = {
        "name": {"type": "str", "required": True},
        "keys": {"type": "list", "elements": "str", "default": [], "no_log": False},
        "sudo": {"type": "bool", "default": True},
        "shell": {"type": "str", "default": "/bin/bash"},
    }
    options = {
        "users": {"type": "list", "elements": "dict", "options": entry, "default": []},
        "absent": {"type": "list", "elements": "str", "default": []},
        "group": {"type": "str", "required": True},
        "keys_folder": {"type": "path", "required": True, "no_log": False},
    }
    module = AnsibleModule(argument_spec=options, supports_check_mode=True)
    params = module.params
    wanted, members = _group(params["group"])
    for user in params["users"]:
        wanted += commands(user, params["group"], _entry(user["name"]), members)
    wanted += [["userdel", "--", name] for name in params["absent"] if _entry(name) is not None]
    changes = [" ".join(command) for command in wanted]
    for command in wanted:
        if not module.check_mode:
            module.run_command(command, check_rc=True)
    changes += _write_keys(module, {user["name"]: user["keys"] for user in params["users"] if user["keys"]})
    module.exit_json(changed=bool(changes), changes=changes)


def _group(name: str) -> tuple[list[list[str]], list[str]]:
    try:
        return [], list(grp.getgrnam(name).gr_mem)
    except KeyError:
        return [["groupadd", "--system", "--", name]], []


def _entry(name: str) -> Any:
    try:
        return pwd.getpwnam(name)
    except KeyError:
        return None


def _write_keys(module: Any, wanted: dict[str, list[str]]) -> list[str]:
    folder = Path(module.params["keys_folder"])
    there = {path.name for path in folder.iterdir()} if folder.is_dir() else set()
    changes = []
    for name in sorted(there - set(wanted)):
        changes.append(f"remove {folder / name}")
        if not module.check_mode:
            (folder / name).unlink()
    for name, keys in sorted(wanted.items()):
        content = "".join(f"{key.strip()}\n" for key in keys)
        if name in there and (folder / name).read_text(encoding="utf-8", errors="replace") == content:
            continue
        changes.append(f"write {folder / name}")
        if not module.check_mode:
            _replace(module, folder / name, content)
    return changes


def _replace(module: Any, path: Path, content: str) -> None:
    path.parent.mkdir(mode=0o755, parents=True, exist_ok=True)
    temporary = Path(module.tmpdir, "keys")
    temporary.write_text(content, encoding="utf-8")
    module.atomic_move(str(temporary), str(path))
    path.chmod(0o644)


if __name__ == "__main__":
    main()
