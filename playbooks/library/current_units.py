#!/usr/bin/python3
"""Brings systemd units to the wanted state, and restarts those that are older than their configuration."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

DOCUMENTATION = r"""
---
module: current_units
short_description: Keeps systemd units running with the configuration that is on disk
version_added: "2026.11.0"
description:
  - Starts, enables, stops and disables units, and restarts a unit that has been running since before one of
    its configuration files was last changed.
  - Whether to restart is read from the node and not from what this run wrote. A run that was cut off between
    writing and restarting is healed by the next.
options:
  units:
    description:
      - The units, each with C(name), C(state) (started, stopped or any), C(enabled) (left alone where it is
        not given), and C(files), the configuration whose change calls for a restart.
    type: list
    elements: dict
    default: []
  manager_files:
    description: Configuration of systemd itself. It is reloaded where one is newer than its last load.
    type: list
    elements: path
    default: []
author: Muster
"""

EXAMPLES = r"""
- name: Run the time service
  current_units:
    units:
      - {name: chrony.service, files: [/etc/chrony/conf.d/muster.conf]}
"""

RETURN = r"""
changes:
  description: What was done, one text a change.
  type: list
  returned: always
"""

_FIELDS = (
    "Id", "LoadState", "ActiveState", "UnitFileState", "NeedDaemonReload",
    "ActiveEnterTimestamp", "ActiveEnterTimestampMonotonic",
)  # fmt: skip
# When systemd started, and when it was last told to load its configuration anew.
_LOADED = ("UnitsLoadFinishTimestamp", "UnitsLoadTimestamp")
_UNUSABLE = frozenset({"not-found", "bad-setting", "error"})
_ENABLED = frozenset({"enabled", "static", "alias", "indirect", "generated"})


def parse_show(text: str) -> list[dict[str, str]]:
    """Read the blocks of `systemctl show`, one for each unit, in the order asked."""
    return [
        dict(line.partition("=")[::2] for line in block.splitlines() if "=" in line)
        for block in text.strip().split("\n\n")
    ]


def plan(unit: dict[str, Any], now: dict[str, str], *, stale: bool) -> list[str]:
    """Return the systemctl verbs that bring one unit to the wanted state."""
    verbs = []
    state = now.get("UnitFileState")
    if unit["enabled"] is True and state not in _ENABLED:
        verbs.append("enable")
    if unit["enabled"] is False and state == "enabled":
        verbs.append("disable")
    active = now.get("ActiveState") in {"active", "activating", "reloading"}
    if unit["state"] == "stopped":
        return [*verbs, "stop"] if active else verbs
    if not active:
        if unit["state"] == "started":
            verbs.append("start")
    elif stale:
        verbs.append("restart")
    return verbs


def is_stale(
    newest: float, entered_monotonic: float, entered_real: float, clocks: tuple[float, float]
) -> bool:
    """Tell whether a configuration changed at `newest` after something was entered; all in seconds.

    `clocks` is what the real and the monotonic clock show now. Their difference places the start in
    today's real time, so that a clock set since then does not count as a change. Only a file from
    the future, written before the clock was set back, is compared with the start as it was recorded.
    """
    real, monotonic = clocks
    if newest > real:
        return newest > entered_real + 1.0
    return newest > entered_monotonic + (real - monotonic)


def main() -> None:
    """Run as an Ansible module."""
    from ansible.module_utils.basic import AnsibleModule

    entry = {
        "name": {"type": "str", "required": True},
        "state": {"type": "str", "choices": ["started", "stopped", "any"], "default": "started"},
        "enabled": {"type": "bool"},
        "files": {"type": "list", "elements": "path", "default": []},
    }
    options = {
        "units": {"type": "list", "elements": "dict", "options": entry, "default": []},
        "manager_files": {"type": "list", "elements": "path", "default": []},
    }
    module = AnsibleModule(argument_spec=options, supports_check_mode=True)
    units = _show(module)
    changes = _reload_manager(module, units)
    if any(now.get("LoadState") in _UNUSABLE for now in units):
        units = _show(module)  # as they are now that systemd has looked again
    for unit, now in zip(module.params["units"], units):  # noqa: B905 - Python 3.8 has no strict
        if now.get("LoadState") in _UNUSABLE:
            if unit["state"] == "stopped":
                continue
            if module.check_mode:  # it comes with what an earlier task would install or write
                changes.append(f"start {unit['name']}")
                continue
            module.fail_json(msg=f"{unit['name']} cannot be run: systemd says {now['LoadState']}")
        for verb in plan(unit, now, stale=_stale(unit["files"], now)):
            changes.append(f"{verb} {unit['name']}")
            if not module.check_mode:
                _systemctl(module, verb, unit["name"])
    module.exit_json(changed=bool(changes), changes=changes)


def _show(module: Any) -> list[dict[str, str]]:
    names = [unit["name"] for unit in module.params["units"]]
    if not names:
        return []
    command = ["systemctl", "show", "--timestamp=unix", "--property", ",".join(_FIELDS), "--", *names]
    _, told, _ = module.run_command(command, check_rc=True)
    return parse_show(told)


def _reload_manager(module: Any, units: list[dict[str, str]]) -> list[str]:
    stale = False
    if module.params["manager_files"]:
        properties = [f"{name}{suffix}" for name in _LOADED for suffix in ("", "Monotonic")]
        command = ["systemctl", "show", "--timestamp=unix", "--property", ",".join(properties)]
        _, told, _ = module.run_command(command, check_rc=True)
        now = parse_show(told)[0]
        stale = all(_stale(module.params["manager_files"], now, name) for name in _LOADED)
    # A unit may have come since systemd looked, with a package or from a run that was cut off.
    noticed = any(
        unit.get("NeedDaemonReload") == "yes" or unit.get("LoadState") in _UNUSABLE for unit in units
    )
    if not stale and not noticed:
        return []
    if not module.check_mode:
        module.run_command(["systemctl", "daemon-reload"], check_rc=True)
    # Loading anew what systemd has noticed itself is part of the restart that follows.
    return ["daemon-reload"] if stale else []


def _systemctl(module: Any, verb: str, name: str) -> None:
    status, told, complaint = module.run_command(["systemctl", verb, "--", name])
    if status:
        journal = ["journalctl", "--unit", name, "--lines", "5", "--output", "cat", "--no-pager"]
        _, log, _ = module.run_command(journal)
        said = " ".join(f"{complaint or told} {log}".split())
        module.fail_json(msg=f"systemctl {verb} {name} failed: {said}", unit=name)


def _stale(files: list[str], now: dict[str, str], name: str = "ActiveEnterTimestamp") -> bool:
    # The change time and not the modification time: a rename into place keeps the latter.
    newest = max((Path(path).stat().st_ctime for path in files if Path(path).exists()), default=0.0)
    clocks = (time.clock_gettime(time.CLOCK_REALTIME), time.clock_gettime(time.CLOCK_MONOTONIC))
    monotonic = int(now.get(f"{name}Monotonic") or 0) / 1e6
    real = now.get(name, "").strip("@")
    return is_stale(newest, monotonic, float(real) if real.isdigit() else 0.0, clocks)


if __name__ == "__main__":
    main()
