#!/usr/bin/python3
"""Writes a set of small files in one round trip: each is checked, replaced whole, and left alone if equal."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

DOCUMENTATION = r"""
---
module: drop_ins
short_description: Writes a set of small configuration files
version_added: "2026.11.0"
description:
  - Writes every file whose content, owner or mode differs, by an atomic rename. A file with empty content is
    removed.
  - Every check runs before the first file is replaced, so that a bad file changes nothing.
options:
  files:
    description:
      - The files, each with C(path), C(content), C(mode) (default 0644) and C(check), a command that is
        given the new file's path in place of C(%s) and must succeed.
    type: list
    elements: dict
    required: true
author: Muster
"""

EXAMPLES = r"""
- name: Write the configuration
  drop_ins:
    files:
      - path: /etc/sudoers.d/60-muster
        content: "%muster ALL=(ALL) NOPASSWD: ALL\n"
        mode: "0440"
        check: visudo -cf %s
"""

RETURN = r"""
written:
  description: The paths that were written or removed.
  type: list
  returned: always
"""


def wanted_mode(mode: object) -> int:
    """Return a mode that may be written as text or as a number read from text."""
    return int(str(mode), 8)


def main() -> None:
    """Run as an Ansible module."""
    from ansible.module_utils.basic import AnsibleModule

    entry = {
        "path": {"type": "path", "required": True},
        "content": {"type": "str", "required": True},
        "mode": {"type": "raw", "default": "0644"},
        "check": {"type": "str", "default": ""},
    }
    files = {"type": "list", "elements": "dict", "options": entry, "required": True}
    module = AnsibleModule(argument_spec={"files": files}, supports_check_mode=True)
    changes = [entry for entry in module.params["files"] if _differs(entry)]
    before = {entry["path"]: _read(Path(entry["path"])) or "" for entry in changes}
    staged = [(entry, _stage(module, entry)) for entry in changes]
    for entry, temporary in staged:
        if not module.check_mode:
            _put(module, Path(entry["path"]), temporary, wanted_mode(entry["mode"]))
        elif temporary is not None:
            temporary.unlink()
    diff = [
        {"after_header": entry["path"], "before": before[entry["path"]], "after": entry["content"]}
        for entry in changes
    ]
    module.exit_json(changed=bool(changes), written=list(before), diff=diff if module._diff else [])


def _differs(entry: dict[str, Any]) -> bool:
    path = Path(entry["path"])
    now = _read(path)
    if not entry["content"]:
        return now is not None
    if now != entry["content"]:
        return True
    found = path.stat()
    return found.st_mode & 0o7777 != wanted_mode(entry["mode"]) or (found.st_uid, found.st_gid) != (0, 0)


def _read(path: Path) -> str | None:
    try:
        return path.read_text(encoding="utf-8", errors="surrogateescape")
    except FileNotFoundError:
        return None


def _stage(module: Any, entry: dict[str, Any]) -> Path | None:
    """Write the new file where nobody reads it yet, and check it. None: the file is to go."""
    if not entry["content"]:
        return None
    temporary = Path(module.tmpdir, entry["path"].strip("/").replace("/", "_"))
    temporary.touch(0o600)
    temporary.write_text(entry["content"], encoding="utf-8", errors="surrogateescape")
    temporary.chmod(wanted_mode(entry["mode"]))
    # In check mode the checking program may be part of what an earlier task would install.
    if entry["check"] and not (module.check_mode and _absent(module, entry["check"])):
        words = [str(temporary) if word == "%s" else word for word in entry["check"].split()]
        status, told, complaint = module.run_command(words)
        if status:
            reason = (complaint or told).strip().replace(str(temporary), entry["path"])
            module.fail_json(msg=f"{entry['path']} would be wrong: {reason}", path=entry["path"])
    return temporary


def _absent(module: Any, command: str) -> bool:
    return module.get_bin_path(command.split()[0]) is None


def _put(module: Any, path: Path, temporary: Path | None, mode: int) -> None:
    if temporary is None:
        path.unlink()
        return
    path.parent.mkdir(mode=0o755, parents=True, exist_ok=True)
    module.atomic_move(str(temporary), str(path))
    os.chown(path, 0, 0)
    path.chmod(mode)


if __name__ == "__main__":
    main()
