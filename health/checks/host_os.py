"""Does the node run an OS release that the profile names?"""

from __future__ import annotations

import shlex

from health import limits
from health.check import Check, Collect, Level
from health.checks.sources import whole
from health.errors import Unreadable
from health.evidence import Evidence
from health.outcome import Action, Finding, Outcome, conclude
from inventory.model import Profile

ID = "host.os"
OS_RELEASE = Collect("os.release", file="/etc/os-release")


def judge(evidence: Evidence, profile: Profile) -> Outcome:
    """Compare "ID VERSION_ID", "debian 12" for one, with the list `os.releases`."""
    wanted = limits.words(profile, "os.releases")
    fields = read_os_release(whole(evidence, OS_RELEASE.id).text)
    release = f"{fields['ID']} {fields['VERSION_ID']}"
    if release in wanted:
        return conclude(ID, (), release)
    message = f"runs {release}; the profile wants {' or '.join(wanted)}"
    return conclude(ID, (Finding("os", release, message, Action.REIMAGE),), "")


def read_os_release(text: str) -> dict[str, str]:
    """Read the file's fields. Raises Unreadable without ID and VERSION_ID."""
    fields: dict[str, str] = {}
    for line in text.splitlines():
        name, sign, value = line.partition("=")
        if sign and not name.startswith("#"):
            if name.strip() in fields:
                raise Unreadable("/etc/os-release", f"{name.strip()} comes twice")
            try:
                fields[name.strip()] = "".join(shlex.split(value))
            except ValueError as exc:
                raise Unreadable("/etc/os-release", f"line {line[:60]!r}") from exc
    for name in ("ID", "VERSION_ID"):
        if not fields.get(name):
            raise Unreadable("/etc/os-release", f"it has no {name}")
    return fields


CHECK = Check(id=ID, level=Level.QUICK, collects=(OS_RELEASE,), judge=judge)
