"""Doubts an output in which no rule found anything: words of trouble that no rule has a place for."""

from __future__ import annotations

import re

from health.outcome import Action, Finding, Status

# Kinds whose readers look at every word themselves: structured answers, and kernel logs, whose rules
# know which lines that say "failed" are harmless.
_READ_WHOLE = frozenset({"redfish", "dmesg", "console"})
_VALUE = re.compile(
    r"""(?im)(?:[:=|]|\t|[ ]{2,})\s*"?(?:fail(?:ed|ure|ing)?|fatal|critical|lost|degraded|unreachable
    |broken|not\ ok|offline|faulted|unavail(?:able)?|corrupt(?:ed)?|timed\ ?out|aborted|hung|stalled
    |unhealthy|expired|err!|dead|crashed|refused|not\ responding|non-?recoverable)"?\s*(?:$|[,|}\]!.])""",
    re.VERBOSE,
)
_PROSE = re.compile(
    r"""\b(?:FAILED|FATAL|fatal\ error|[Kk]ernel\ panic|[Ff]ailed\ to|[Uu]nable\ to|[Cc]ould\ not
    |[Cc]annot\ (?!talk)|has\ failed|timed\ out|[Uu]nreachable(?![=\"])
    |segfault|Traceback\ \(most|core\ dumped|[Nn]o\ route\ to\ host|[Cc]onnection\ (?:refused|reset|lost)
    |GPU\ is\ lost|fallen\ off|not\ responding|Input/output\ error|ERROR:)""",
    re.VERBOSE,
)


def doubts(kind: str, text: str) -> list[Finding]:
    """Return a warning for the first words of trouble in an output that seemed well; none where it is."""
    if kind in _READ_WHOLE or (kind == "maas_ansible" and text.lstrip()[:1] in ("{", "[")):
        return []
    found = _VALUE.search(text) or _PROSE.search(text)
    if not found:
        return []
    begin = text.rfind("\n", 0, found.start()) + 1
    line = text[begin:].split("\n", 1)[0].strip() or found[0].strip()
    return [Finding("output", kind, f"no rule knows this: {line[:120]}", Action.INVESTIGATE, Status.WARN)]
