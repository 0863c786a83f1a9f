#!/usr/bin/python3
"""Installs Debian packages in one round trip, all or nothing, and holds them against upgrades."""

from __future__ import annotations

import fnmatch
import os
import re
import time
from pathlib import Path
from typing import Any

DOCUMENTATION = r"""
---
module: held_packages
short_description: Installs Debian packages all or nothing, and holds them
version_added: "2026.11.0"
description:
  - Installs what is missing or in another version. What dpkg left half done is finished first, so that a run
    which was cut off is healed by the next.
  - Sources are read, the versions are looked for, the space is measured and everything is downloaded before
    the first package is unpacked. A dead mirror, a wrong checksum, an unknown version or a full disk
    changes nothing and is named.
  - Never removes a package.
options:
  packages:
    description: Packages, each a name or name=version, where the version may end in C(*).
    type: list
    elements: str
    required: true
  hold:
    description: Which packages are held, C(all) or only those with a version (C(pinned)).
    type: str
    choices: [all, pinned]
    default: all
author: Muster
"""

EXAMPLES = r"""
- name: Install the container runtime
  held_packages:
    packages: [containerd=1.6.20*]
"""

RETURN = r"""
changes:
  description: What was done, one text a change.
  type: list
  returned: always
versions:
  description: The version of each wanted package that is installed.
  type: dict
  returned: always
"""

_LISTS_VALID_S = 600.0
_STAMP = Path("/run/muster-package-lists")
_UNITS = {"B": 1, "kB": 10**3, "MB": 10**6, "GB": 10**9}
_SPARE = 32 * 10**6  # what dpkg and the package's own scripts need beside the files
_APT = [
    "apt-get", "--yes", "--no-install-recommends", "--allow-downgrades", "--allow-change-held-packages",
    "--option", "DPkg::Lock::Timeout=300", "--option", "Acquire::Retries=2",
    "--option", "Acquire::http::Timeout=20", "--option", "APT::Update::Error-Mode=any",
    "--option", "Dpkg::Options::=--force-confdef", "--option", "Dpkg::Options::=--force-confold",
    "--option", "Dpkg::Use-Pty=0",
]  # fmt: skip


def parse_installed(text: str) -> dict[str, tuple[str, bool]]:
    """Read lines of status, name, version: the version and whether it is held, of what is installed."""
    have = {}
    for line in text.splitlines():
        fields = line.split()
        if len(fields) == 3 and fields[0] in {"ii", "hi"}:
            have[fields[1]] = (fields[2], fields[0] == "hi")
    return have


def missing_packages(wanted: list[str], have: dict[str, tuple[str, bool]]) -> list[str]:
    """Return the packages that are not installed, or not in the wanted version."""
    missing = []
    for package in wanted:
        name, _, version = package.partition("=")
        if name not in have or (version and not fnmatch.fnmatchcase(have[name][0], version)):
            missing.append(package)
    return missing


def to_hold(wanted: list[str], have: dict[str, tuple[str, bool]], which: str) -> list[str]:
    """Return the names that are to be held and are not."""
    chosen = [package.partition("=")[0] for package in wanted if which == "all" or "=" in package]
    return [name for name in chosen if not have.get(name, ("", False))[1]]


def needed_bytes(told: str) -> tuple[int, int]:
    """Return what apt says that it would download and occupy, in bytes; nothing where it frees space."""
    get = re.search(r"^Need to get (?:[\d.,]+ [kMG]?B/)?([\d.,]+) ([kMG]?B) of archives", told, re.MULTILINE)
    keep = re.search(
        r"^After this operation, ([\d.,]+) ([kMG]?B) of additional disk space", told, re.MULTILINE
    )
    return _size(get), _size(keep)


def _size(match: re.Match[str] | None) -> int:
    return int(float(match[1].replace(",", "")) * _UNITS[match[2]]) if match else 0


def removals(told: str) -> list[str]:
    """Return the packages that apt would remove."""
    match = re.search(r"^The following packages will be REMOVED:\n((?:  .*\n?)+)", told, re.MULTILINE)
    return match[1].split() if match else []


def complaint(text: str) -> str:
    """Return in one line why apt or dpkg failed."""
    lines = [line.strip() for line in text.splitlines()]
    wanted = [line for line in lines if re.match(r"(E:|Err:|dpkg: error|.*No space left|.*Hash Sum)", line)]
    return "; ".join(dict.fromkeys(wanted or lines[-3:])) or "no message"


def main() -> None:
    """Run as an Ansible module."""
    from ansible.module_utils.basic import AnsibleModule

    options = {
        "packages": {"type": "list", "elements": "str", "required": True},
        "hold": {"type": "str", "choices": ["all", "pinned"], "default": "all"},
    }
    module = AnsibleModule(argument_spec=options, supports_check_mode=True)
    module.run_command_environ_update = {"DEBIAN_FRONTEND": "noninteractive", "LC_ALL": "C"}
    wanted = module.params["packages"]
    changes = _finish(module)
    have = _installed(module, wanted)
    missing = missing_packages(wanted, have)
    if missing and not module.check_mode:
        _install(module, missing)
        have = _installed(module, wanted)
        left = missing_packages(wanted, have)
        if left:
            module.fail_json(msg=f"apt ended well and did not install {' '.join(left)}")
    changes += [f"install {package}" for package in missing]
    names = to_hold(wanted, have, module.params["hold"])
    if names and not module.check_mode:
        module.run_command(["apt-mark", "hold", *names], check_rc=True)
    changes += [f"hold {name}" for name in names]
    versions = {name: version for name, (version, _) in have.items()}
    module.exit_json(changed=bool(changes), changes=changes, versions=versions)


def _installed(module: Any, wanted: list[str]) -> dict[str, tuple[str, bool]]:
    names = [package.partition("=")[0] for package in wanted]
    form = "${db:Status-Abbrev} ${Package} ${Version}\n"
    _, told, _ = module.run_command(["dpkg-query", "--show", f"--showformat={form}", "--", *names])
    return parse_installed(told)


def _finish(module: Any) -> list[str]:
    """Finish what an earlier dpkg was stopped in."""
    _, told, _ = module.run_command(["dpkg", "--audit"])
    journal = Path("/var/lib/dpkg/updates")
    if not told.strip() and not (journal.is_dir() and any(journal.iterdir())):
        return []
    if not module.check_mode:
        command = ["dpkg", "--force-confdef", "--force-confold", "--configure", "--pending"]
        status, out, err = module.run_command(command)
        if status:
            module.warn(f"dpkg --configure --pending: {complaint(out + err)}")  # installing anew may heal it
        module.run_command([*_APT, "--fix-broken", "install"])
    return ["finish what dpkg had begun"]


def _install(module: Any, missing: list[str]) -> None:
    as_read = _lists_are_new()
    if not as_read:
        _read_lists(module)
    refused, told = _plan(module, missing)
    if refused and as_read:
        _read_lists(module)  # the mirror may have got that version a moment ago
        refused, told = _plan(module, missing)
    if refused:
        module.fail_json(msg=f"cannot install {' '.join(missing)}: {complaint(told)}")
    gone = removals(told)
    if gone:
        module.fail_json(
            msg=f"installing {' '.join(missing)} would remove {' '.join(gone)}; nothing was done"
        )
    _refuse_full_disk(module, told)
    for step in (["--download-only"], ["--no-download"]):
        status, out, err = module.run_command([*_APT, *step, "install", "--", *missing])
        if status:
            module.fail_json(msg=f"cannot install {' '.join(missing)}: {complaint(out + err)}")
    module.run_command(["apt-get", "clean"])


def _lists_are_new() -> bool:
    """Tell whether the lists were read a short while ago, and sources have not changed since."""
    try:
        read = _STAMP.stat().st_mtime
    except OSError:
        return False
    sources = [Path("/etc/apt"), *Path("/etc/apt").rglob("*")]
    changed = max((path.stat().st_ctime for path in sources if path.exists()), default=0.0)
    return changed < read and 0.0 <= time.time() - read < _LISTS_VALID_S


def _read_lists(module: Any) -> None:
    status, out, err = module.run_command([*_APT, "update"])
    if status:
        module.fail_json(msg=f"the package sources cannot be read: {complaint(out + err)}")
    _STAMP.touch()


def _plan(module: Any, missing: list[str]) -> tuple[bool, str]:
    """Ask apt what it would do; with --print-uris it tells sizes, and never begins."""
    status, out, err = module.run_command([*_APT, "--print-uris", "install", "--", *missing])
    return status != 0, f"{out}\n{err}"


def _refuse_full_disk(module: Any, told: str) -> None:
    get, keep = needed_bytes(told)
    for folder, needed in (("/var/cache/apt/archives", get), ("/", get + keep + _SPARE)):
        found = os.statvfs(folder if Path(folder).exists() else "/")
        free = found.f_bavail * found.f_frsize
        if free < needed:
            module.fail_json(
                msg=f"{folder} has {free // 10**6} MB free, {needed // 10**6} MB are needed; nothing was done"
            )


if __name__ == "__main__":
    main()
