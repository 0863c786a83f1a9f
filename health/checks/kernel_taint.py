"""Has the kernel marked itself as no longer trustworthy?"""

from __future__ import annotations

from health import limits
from health.check import Check, Collect, Level
from health.checks.sources import word
from health.errors import Unreadable
from health.evidence import Evidence
from health.outcome import Action, Finding, Outcome, Status, conclude
from inventory.model import Profile

ID = "kernel.taint"
TAINTED = Collect("kernel.tainted", file="/proc/sys/kernel/tainted")

# Bit number is the place in the string: the letters of the kernel's documentation.
_LETTERS = "PFSRMBUDAWCIOELKXTNJ"
_MEANS_DAMAGE = {
    "M": ("a machine check was taken", Action.VENDOR_TICKET),
    "B": ("a bad page was found", Action.REBOOT),
    "D": ("the kernel has oopsed", Action.REBOOT),
    "L": ("a soft lockup happened", Action.REBOOT),
}
# Drivers that are not in the kernel's tree, proprietary or unsigned.
_USUAL = "POE"


def judge(evidence: Evidence, profile: Profile) -> Outcome:
    """Fail on marks of damage; warn on others but `kernel.taint_allowed` (POE where not stated)."""
    allowed = _USUAL if profile.limit("kernel.taint_allowed") is None else limits.text(
        profile, "kernel.taint_allowed"
    )  # fmt: skip
    text = word(evidence, TAINTED.id)
    if not text.isdecimal():
        raise Unreadable("/proc/sys/kernel/tainted", f"it says {text[:40]!r}")
    value = int(text)
    set_letters = [letter for bit, letter in enumerate(_LETTERS) if value >> bit & 1]
    findings = []
    for letter in set_letters:
        if letter in _MEANS_DAMAGE:
            why, action = _MEANS_DAMAGE[letter]
            findings.append(Finding("kernel", f"taint {letter}", why, action))
        elif letter not in allowed:
            message = f"kernel is marked {letter} (value {value})"
            findings.append(Finding("kernel", f"taint {letter}", message, Action.INVESTIGATE, Status.WARN))
    return conclude(ID, findings, f"kernel marks: {''.join(set_letters) or 'none'}")


CHECK = Check(id=ID, level=Level.QUICK, collects=(TAINTED,), judge=judge)
