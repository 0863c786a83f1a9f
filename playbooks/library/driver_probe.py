#!/usr/bin/python3
"""Says in one round trip whether a node can get a kernel driver, and which one it runs."""

from __future__ import annotations

import functools
import os
import re
from pathlib import Path
from typing import Any

DOCUMENTATION = r"""
---
module: driver_probe
short_description: Says whether a node can get a kernel driver, and which one it runs
version_added: "2026.11.0"
description:
  - Reads only. A driver is built for one kernel, so what counts is which kernel runs, which one the next boot
    would take, whether its headers are there, whether Secure Boot would refuse an unsigned module, and what
    is on the PCI bus.
options:
  module:
    description: Kernel module whose loaded and whose installed version are asked for.
    type: str
    default: nvidia
  builds:
    description: Whether a module is to be built and loaded here. Then what would end badly is objected to.
    type: bool
    default: false
  signed:
    description: Whether modules are signed with a key that the firmware knows.
    type: bool
    default: false
  at_least:
    description: How many C(gpus), C(switches) and C(nics) must be on the bus.
    type: dict
    default: {}
author: Muster
"""

EXAMPLES = r"""
- name: Look at the node
  driver_probe:
  register: nvidia_driver_node
"""

RETURN = r"""
objections:
  description: What speaks against going on, one text each.
  type: list
  returned: always
kernel:
  description: The kernel that runs.
  type: str
  returned: always
newest:
  description: The newest kernel that is installed.
  type: str
  returned: always
headers:
  description: Whether the headers of the running kernel are there.
  type: bool
  returned: always
secure_boot:
  description: Whether Secure Boot is on; null where it cannot be told.
  type: bool
  returned: always
gpus:
  description: PCI addresses of NVIDIA's GPUs.
  type: list
  returned: always
switches:
  description: PCI addresses of NVSwitches.
  type: list
  returned: always
nics:
  description: PCI addresses of Mellanox network cards.
  type: list
  returned: always
nouveau:
  description: Whether the module nouveau is loaded.
  type: bool
  returned: always
loaded:
  description: The version of the module that runs, or an empty text.
  type: str
  returned: always
built:
  description: The version of the module that the next load would take, or an empty text.
  type: str
  returned: always
container:
  description: The kind of container that the node is, or an empty text.
  type: str
  returned: always
"""

_KINDS = {"gpus": "GPUs", "switches": "NVSwitches", "nics": "network cards"}


def version_key(release: str) -> list[tuple[int, int, str]]:
    """Return what kernel releases are sorted by: numbers as numbers, and a candidate before its release."""
    key = []
    for part in re.findall(r"\d+|[a-z]+", release):
        if part.isdigit():
            key.append((2, int(part), ""))
        else:
            key.append((-1, 0, "") if part == "rc" else (1, 0, part))
    return [*key, (0, 0, "")]


def newest_kernel(images: list[str]) -> str:
    """Return the newest release among the names of kernel images."""
    releases = [name.partition("-")[2] for name in images if not name.endswith((".old", ".dpkg-bak"))]
    return max(releases, key=version_key, default="")


def devices(lspci: str) -> dict[str, list[str]]:
    """Sort the lines of `lspci -Dnn` by what concerns drivers."""
    found: dict[str, list[str]] = {"gpus": [], "switches": [], "nics": []}
    for line in lspci.splitlines():
        address = line.split(" ", 1)[0]
        if re.search(r"\[03(00|02)\]: .*\[10de:", line):
            found["gpus"].append(address)
        elif re.search(r"\[0680\]: .*\[10de:", line):
            found["switches"].append(address)
        elif re.search(r"\[02\d\d\]: .*\[15b3:", line):
            found["nics"].append(address)
    return found


def secure_boot(mokutil: str) -> bool | None:
    """Read what mokutil says; None where it says nothing of the kind."""
    match = re.search(r"SecureBoot (enabled|disabled)", mokutil)
    return match[1] == "enabled" if match else None


def too_few(node: dict[str, Any], at_least: dict[str, Any]) -> list[str]:
    """Return which devices are fewer on the bus than they must be."""
    return [
        f"{len(node[kind])} {_KINDS[kind]} on the bus, {number} expected"
        for kind, number in sorted(at_least.items())
        if len(node[kind]) < int(number)
    ]


def unbuildable(node: dict[str, Any], *, signed: bool) -> list[str]:
    """Return what speaks against building a module here and loading it at the next boot."""
    kernel, newest = node["kernel"], node["newest"]
    against = []
    if node["secure_boot"] and not signed:
        against.append("Secure Boot is on and would refuse the module: turn it off, or sign modules")
    if newest != kernel:
        against.append(
            f"kernel {kernel} runs and {newest} is installed, so the module would be built for a kernel"
            " that the next boot leaves: reboot first"
        )
    if not node["headers"]:
        against.append(f"no headers of the running kernel: install linux-headers-{kernel}")
    return against


def main() -> None:
    """Run as an Ansible module."""
    from ansible.module_utils.basic import AnsibleModule

    options = {
        "module": {"type": "str", "default": "nvidia"},
        "builds": {"type": "bool", "default": False},
        "signed": {"type": "bool", "default": False},
        "at_least": {"type": "dict", "default": {}},
    }
    module = AnsibleModule(argument_spec=options, supports_check_mode=True)
    told = functools.partial(_told, module)
    name = module.params["module"]
    kernel = os.uname().release
    images = [path.name for path in Path("/boot").glob("vmlinuz-*")]
    virt = told(["systemd-detect-virt", "--container"]).strip()
    node = {
        "kernel": kernel,
        "newest": newest_kernel(images) or kernel,
        "headers": Path(f"/lib/modules/{kernel}/build").exists(),
        "secure_boot": secure_boot(told(["mokutil", "--sb-state"])),
        "nouveau": Path("/sys/module/nouveau").exists(),
        "loaded": _read(f"/sys/module/{name}/version"),
        "built": told(["modinfo", "--field", "version", name]).strip(),
        "container": "" if virt == "none" else virt,
        **devices(told(["lspci", "-Dnn"])),
    }
    against = too_few(node, module.params["at_least"])
    if module.params["builds"]:
        against += unbuildable(node, signed=module.params["signed"])
    module.exit_json(changed=False, objections=against, **node)


def _told(module: Any, command: list[str]) -> str:
    if module.get_bin_path(command[0], opt_dirs=["/usr/local/sbin", "/usr/sbin", "/sbin"]) is None:
        return ""
    status, told, _ = module.run_command(command)
    return told if status == 0 else ""


def _read(path: str) -> str:
    try:
        return Path(path).read_text().strip()
    except OSError:
        return ""


if __name__ == "__main__":
    main()
