#!/usr/bin/python3
"""Says in one round trip what a node is, what its kernel lets us change, and what differs already."""

from __future__ import annotations

import json
import os
import re
import resource
from pathlib import Path
from typing import Any

DOCUMENTATION = r"""
---
module: node_probe
short_description: Says what a node is and what its kernel lets us change
version_added: "2026.11.0"
description:
  - Reads only. One call replaces fact gathering and a dozen commands.
  - A kernel that is shared with another system (a container) refuses some changes. This tells which,
    so that roles leave them out and say so, instead of failing or ignoring errors.
options:
  sysctl:
    description: Wanted kernel settings, by name. The answer tells which differ and which cannot be set.
    type: dict
    default: {}
  modules:
    description: Wanted kernel modules. The answer tells which are not there.
    type: list
    elements: str
    default: []
  limits:
    description: Wanted resource limits, nofile in files and memlock in KiB, or unlimited.
    type: dict
    default: {}
  devices:
    description: Block devices to describe. The answer tells what each holds.
    type: list
    elements: str
    default: []
author: Muster
"""

EXAMPLES = r"""
- name: Look at the node
  node_probe:
    sysctl: {kernel.panic: 10}
    modules: [br_netfilter]
  register: base_probe
"""

RETURN = r"""
os:
  description: The fields of /etc/os-release.
  type: dict
  returned: always
container:
  description: The kind of container that the node is, or an empty text.
  type: str
  returned: always
clock_settable:
  description: Whether the system clock may be set.
  type: bool
  returned: always
sysctl_wrong:
  description: Settings that differ and can be set, with the wanted value.
  type: dict
  returned: always
sysctl_refused:
  description: Settings that the kernel lacks or does not let us set.
  type: list
  returned: always
modules_missing:
  description: Modules that are neither loaded nor built in and may be loaded.
  type: list
  returned: always
modules_refused:
  description: Modules that are missing where none may be loaded.
  type: list
  returned: always
limits_refused:
  description: Limits that are above ours where no limit may be raised.
  type: list
  returned: always
devices:
  description: For each device what it holds (signature), where it is mounted, and its real path.
  type: dict
  returned: always
"""

CAP_SYS_MODULE = 16
CAP_SYS_RESOURCE = 24
CAP_SYS_TIME = 25

_LIMITS = {"nofile": (resource.RLIMIT_NOFILE, 1), "memlock": (resource.RLIMIT_MEMLOCK, 1024)}


def os_release(text: str) -> dict[str, str]:
    """Read /etc/os-release."""
    found = {}
    for line in text.splitlines():
        name, separator, value = line.partition("=")
        if separator and not name.startswith("#"):
            found[name.strip().lower()] = value.strip().strip("\"'")
    return found


def capable(status: str, number: int) -> bool:
    """Tell from /proc/self/status whether we hold a capability."""
    match = re.search(r"^CapEff:\s*([0-9a-fA-F]+)$", status, re.MULTILINE)
    return bool(match and int(match[1], 16) >> number & 1)


def same_setting(current: str, wanted: object) -> bool:
    """Compare a kernel setting, where any run of blanks separates fields."""
    return current.split() == str(wanted).split()


def sysctl_path(root: Path, name: str) -> Path:
    """Return the file of a setting; a slash in a name stands for a dot in an interface's name."""
    return root / name.replace(".", "\0").replace("/", ".").replace("\0", "/")


def look_at_sysctl(root: Path, wanted: dict[str, Any]) -> tuple[dict[str, Any], list[str]]:
    """Return the settings that differ and can be set, and those that cannot be set."""
    wrong: dict[str, Any] = {}
    refused = []
    for name, value in sorted(wanted.items()):
        path = sysctl_path(root, name)
        try:
            current = path.read_text()
        except OSError:
            refused.append(name)
            continue
        if same_setting(current, value):
            continue
        if os.access(path, os.W_OK):
            wrong[name] = value
        else:
            refused.append(name)
    return wrong, refused


def missing_modules(wanted: list[str], loaded: str, builtin: str) -> list[str]:
    """Return the modules that the kernel does not have; dashes and underscores are the same."""
    have = {line.split()[0] for line in loaded.splitlines() if line.strip()}
    have |= {Path(line).name.partition(".")[0].replace("-", "_") for line in builtin.splitlines()}
    return [name for name in wanted if name.replace("-", "_") not in have]


def refused_limits(wanted: dict[str, Any], hard: dict[str, int]) -> list[str]:
    """Return the limits that are above the hard ones; -1 is no limit, in the units of the kernel."""
    refused = []
    for name, value in sorted(wanted.items()):
        unit = _LIMITS[name][1]
        over = str(value) == "unlimited" or int(value) * unit > hard[name]
        if hard[name] != resource.RLIM_INFINITY and over:
            refused.append(name)
    return refused


def container(environ: str, virt: str) -> str:
    """Return the kind of container: what systemd says, else what PID 1 was told."""
    if virt and virt != "none":
        return virt
    match = re.search(r"(?:^|\0)container=([^\0]*)", environ)
    return match[1] if match else ""


def _read(path: str) -> str:
    try:
        return Path(path).read_text(errors="replace")
    except OSError:
        return ""


def _device(module: Any, path: str, mounts: str) -> dict[str, Any]:
    real = os.path.realpath(path)
    if not Path(real).exists():
        return {"exists": False, "signature": "", "mounted": "", "real": real}
    _, told, _ = module.run_command(["blkid", "-p", "-o", "export", real])
    fields = dict(line.partition("=")[::2] for line in told.splitlines())
    mounted = [line.split()[1] for line in mounts.splitlines() if line.split()[:1] == [real]]
    kind = fields.get("TYPE") or fields.get("PTTYPE") or ""
    return {"exists": True, "signature": kind, "mounted": mounted[0] if mounted else "", "real": real}


def main() -> None:
    """Run as an Ansible module."""
    from ansible.module_utils.basic import AnsibleModule

    options = {
        "sysctl": {"type": "dict", "default": {}},
        "modules": {"type": "list", "elements": "str", "default": []},
        "limits": {"type": "dict", "default": {}},
        "devices": {"type": "list", "elements": "str", "default": []},
    }
    module = AnsibleModule(argument_spec=options, supports_check_mode=True)
    status = _read("/proc/self/status")
    release = os.uname().release
    wrong, refused = look_at_sysctl(Path("/proc/sys"), module.params["sysctl"])
    missing = missing_modules(
        module.params["modules"], _read("/proc/modules"), _read(f"/lib/modules/{release}/modules.builtin")
    )
    loads = capable(status, CAP_SYS_MODULE)
    hard = {name: resource.getrlimit(number)[1] for name, (number, _unit) in _LIMITS.items()}
    raises = capable(status, CAP_SYS_RESOURCE)
    _, virt, _ = module.run_command(["systemd-detect-virt", "--container"])
    mounts = _read("/proc/self/mounts")
    module.exit_json(
        changed=False,
        os=os_release(_read("/etc/os-release")),
        kernel=release,
        container=container(_read("/proc/1/environ"), virt.strip()),
        clock_settable=capable(status, CAP_SYS_TIME),
        sysctl_wrong=wrong,
        sysctl_refused=refused,
        modules_missing=missing if loads else [],
        modules_refused=[] if loads else missing,
        limits_refused=[] if raises else refused_limits(module.params["limits"], hard),
        devices={path: _device(module, path, mounts) for path in module.params["devices"]},
        memory=json.loads(re.sub(r"^MemTotal:\s+(\d+) kB[\s\S]*", r"\1", _read("/proc/meminfo")) or "0")
        * 1024,
    )


if __name__ == "__main__":
    main()
