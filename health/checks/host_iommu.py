"""Is the IOMMU off, on, or in pass-through, as the profile says?"""

from __future__ import annotations

from health import limits
from health.check import Check, Collect, Level
from health.errors import NotCollected
from health.evidence import Evidence
from health.outcome import Action, Outcome, conclude
from health.readers.json_text import sections
from health.rules import expect
from inventory.model import Profile

ID = "host.iommu"
GROUPS = Collect("host.iommu", file="/sys/kernel/iommu_groups/*/type")
_KINDS = frozenset({"identity", "DMA", "DMA-FQ", "auto", "blocked"})


def judge(evidence: Evidence, profile: Profile) -> Outcome:
    """Compare with `host.iommu`: off, passthrough or on. On, it slows DMA between devices."""
    wanted = limits.text(profile, "host.iommu")
    item = evidence.item(GROUPS.id)
    if item is None or item.truncated or (item.problem and item.rc not in (0, 1, 2)):
        raise NotCollected(GROUPS.id, item.problem if item and item.problem else "groups were not collected")
    kinds = {text.strip() for text in sections(item.text).values()}
    if kinds - _KINDS:
        raise NotCollected(GROUPS.id, f"{item.source} holds {sorted(kinds - _KINDS)[0][:20]!r}")
    if not kinds:
        # No group at all is how the kernel shows that there is no IOMMU; the errors must say so.
        if "no file matches" not in item.errors:
            raise NotCollected(GROUPS.id, item.problem or "groups were not collected")
        found = "off"
    else:
        found = "passthrough" if kinds == {"identity"} else "on"
    findings = expect.one_of("host", "IOMMU", found, (wanted,), "IOMMU", Action.REBOOT)
    return conclude(ID, findings, f"IOMMU {found}")


CHECK = Check(id=ID, level=Level.QUICK, collects=(GROUPS,), judge=judge)
