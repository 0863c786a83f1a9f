"""Compares what was found with what a profile says, one finding for each part that differs."""

from __future__ import annotations

from collections.abc import Iterable
from fnmatch import fnmatchcase

from health.outcome import Action, Finding, Status
from health.readers.smi import Gpu


def gpu_field(
    gpus: tuple[Gpu, ...], path: str, wanted: tuple[str, ...], what: str, action: Action
) -> list[Finding]:
    """Compare one field of every GPU with patterns; one that cannot be read is unknown."""
    findings = []
    for gpu in gpus:
        value = gpu.fields.get(path) if "N/A" in wanted else gpu.value(path)
        if value is None:
            message = f"{what} cannot be read"
            findings.append(Finding("gpu", gpu.name, message, Action.RERUN, Status.UNKNOWN))
        elif not any(fnmatchcase(value, pattern) for pattern in wanted):
            message = f"{what} is {value}; the profile wants {' or '.join(wanted)}"
            findings.append(Finding("gpu", gpu.name, message, action))
    return findings


def gpu_number(gpu: Gpu, path: str, wanted: float, what: str, action: Action) -> list[Finding]:
    """Compare one number of a GPU; one that cannot be read is unknown."""
    value = gpu.number(path)
    if value is None:
        return [Finding("gpu", gpu.name, f"{what} cannot be read", Action.RERUN, Status.UNKNOWN)]
    if value != wanted:
        message = f"{what} is {value:g}; the profile wants {wanted:g}"
        return [Finding("gpu", gpu.name, message, action)]
    return []


def one_of(
    component: str, identity: str, value: str, wanted: tuple[str, ...], what: str, action: Action
) -> list[Finding]:
    """Compare one word with patterns."""
    if any(fnmatchcase(value, pattern) for pattern in wanted):
        return []
    message = f"{what} is {value[:80]}; the profile wants {' or '.join(wanted)}"
    return [Finding(component, identity, message, action)]


def same_set(
    component: str, found: Iterable[str], wanted: Iterable[str], what: str, action: Action
) -> list[Finding]:
    """Compare identities: each that is missing, each that is too many."""
    have, want = set(found), set(wanted)
    findings = [Finding(component, name, f"{what} {name} is missing", action) for name in sorted(want - have)]
    findings += [
        Finding(component, name, f"{what} {name} is not in the profile", Action.INVESTIGATE)
        for name in sorted(have - want)
    ]
    return findings


def count(component: str, found: int, wanted: int, what: str, action: Action) -> list[Finding]:
    """Compare a count."""
    if found == wanted:
        return []
    return [Finding(component, f"{what} of this node", f"{found} of {wanted} {what}", action)]
