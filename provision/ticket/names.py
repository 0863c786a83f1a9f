"""How addresses, users, hosts and jobs show themselves in logs.

Each context begins with a literal text that is found first: logs have tens of megabytes.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Iterator
from dataclasses import dataclass

# Accounts that every system has: they name nobody.
_SYSTEM = """
    root daemon bin sys sync games man lp mail news uucp proxy backup list irc gnats nobody sshd
    messagebus systemd-network systemd-resolve systemd-timesync systemd-coredump _apt _chrony chrony ntp
    syslog polkitd dbus tss uuidd tcpdump landscape pollinate lxd munge slurm nvidia-persistenced nvidia
    prometheus node_exporter unknown none null automation muster
"""
SYSTEM_ACCOUNTS = frozenset(_SYSTEM.split())
# Words of other meaning too: replaced only where they stand for a user, a host or a job.
_EVERYDAY = """
    admin administrator operator user users guest test tester default ubuntu debian rocky centos redhat
    fedora suse dell hpe lenovo supermicro host node local localhost python python3 bash sh java job jobs
    train training main server console login system kernel linux debug error info true false yes no on off
    ipmi redfish http https maas sessions session data space memory service client gpu cpu
"""
EVERYDAY = frozenset(_EVERYDAY.split())

_NAME = r"[A-Za-z_][A-Za-z0-9_.-]*"
_HOST = r"[A-Za-z0-9](?:[A-Za-z0-9.-]*[A-Za-z0-9])?"
_JOB = r"[A-Za-z0-9_./\[\]-]*[A-Za-z0-9_/\]]"
_IS = r"""["']?[ \t]*[=:][ \t]*["']?"""
_MONTHS = "Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec"
_TIME = rf"(?:(?:{_MONTHS}) [ \d]\d \d\d:\d\d:\d\d(?:\.\d+)?|\d{{4}}-\d\d-\d\dT[\d:.,]+(?:Z|[+-]\d\d:?\d\d))"
_WRITER = r"[\w./@()\\-]+(?:\[\d+\])?: "  # who wrote a line of a log
# With a dot, as in mail addresses, or before a path, as in prompts: `memory@80000000` names nobody,
# nor do systemd's units and Redfish's annotations.
_UNITS = "service|socket|timer|slice|scope|target|mount|path|device"
_UNIT = rf"(?!odata\.|Redfish\.|Message\.|[\w.:\\-]*\.(?:{_UNITS})\b)"
_DOTTED = r"[A-Za-z][A-Za-z0-9-]*(?:\.[A-Za-z0-9-]+)*\.[A-Za-z]{2,}\b"
_PUBLIC = r"(?!(?:[\w-]+\.)*(?:dmtf|kernel|freedesktop|ipxe|nvidia)\.(?:org|com)\b)"  # everybody's manuals


@dataclass(frozen=True, slots=True)
class _Context:
    """A literal text, what must stand right before it, and what behind it; a group is the name."""

    kind: str
    literal: str
    ahead: re.Pattern[str]
    back: re.Pattern[str] | None = None


def _after(kind: str, literals: str, ahead: str, back: str = "") -> tuple[_Context, ...]:
    behind = re.compile(rf"(?:{back})\Z") if back else None
    return tuple(_Context(kind, literal, re.compile(ahead), behind) for literal in literals.split("|"))


_WORD = r"(?:^|[^A-Za-z0-9])"  # a word begins here; an underscore may stand before it

_CONTEXTS: tuple[_Context, ...] = (
    *_after("user", "/home/|/Users/", rf"({_NAME})"),
    *_after("user", "user|User|USER", rf"(?:_?[nN]ame|NAME)?{_IS}({_NAME})", rf"{_WORD}r?"),
    *_after("user", "logname|acct|owner|Owner|actor|who|pool_by", rf"{_IS}({_NAME})", _WORD),
    *_after("user", "nvalid user |llegal user |authenticating user ", rf"({_NAME})"),
    *_after("user", "session opened for user |session closed for user ", rf"({_NAME})"),
    *_after("user", " of user ", rf"({_NAME})", r"[Ss]ession c?\d+"),
    *_after("user", "from user ", rf"({_NAME}) [0-9A-Fa-f.:]+ port"),
    *_after("user", "Accepted |Failed |Postponed ", rf"[\w/-]+ for (?!invalid user|user)({_NAME})"),
    *_after("user", "sudo", rf"(?:\[\d+\])?:\s+({_NAME}) :"),
    *_after("user", "ogged in using |ogged in as |login user ", rf"({_NAME})"),
    *_after("user", "@", rf"{_UNIT}(?:{_DOTTED}|{_HOST}(?=:[~/]))", rf"{_WORD}({_NAME})"),
    *_after("host", "@", rf"{_UNIT}({_DOTTED}|{_HOST}(?=:[~/]))", rf"{_WORD}{_NAME}"),
    *_after("host", "\n", rf"{_TIME} ({_HOST}) (?={_WRITER})"),
    *_after("host", "\nLinux ", rf"({_HOST}) \d+\.\S+ #\d"),
    *_after("host", " login:", r"", rf"(?:^|[^A-Za-z0-9.-])({_HOST})"),
    *_after("host", "ostname to |ostname set to ", rf"<?({_HOST})"),
    *_after("host", "ostname|ostName|OSTNAME|host_name|fqdn|FQDN|nodename", rf"{_IS}({_HOST})"),
    *_after("host", "://", rf"(?:[^/@\s\"']*@)?{_PUBLIC}({_HOST})", r"[A-Za-z]"),
    *_after("job", "JobName|job_name|JOB_NAME|jobname|job-name", rf"{_IS}({_JOB})"),
    *_after("job", "pod_name|podName|container_name", rf"{_IS}({_JOB})"),
    *_after("job", 'pod="', rf'({_JOB})"'),
    *_after("job", "pid=", rf"'?\d+'?, name='?({_JOB})", _WORD),
    *_after("job", "Process ID", r"\s+: \d+\n\s+Type\s+: \S+\n\s+Name\s+: (\S[^\n]*)"),
)
_MOST_BACK = 64  # letters that a name may have

# What may stand behind a host's name and belongs to it; one label more is rather a file's ending.
DOMAIN = re.compile(
    r"(?:\.[A-Za-z0-9-]+)*\.(?:local|lan|internal|maas|lab|corp|intra)\b|(?:\.[A-Za-z0-9-]+)+\.[A-Za-z]{2,}\b"
)

_IPV4 = re.compile(r"[0-9]+(?:\.[0-9]+){3,}")
_IPV6 = re.compile(r"[0-9A-Fa-f:][0-9A-Fa-f]{0,4}:[0-9A-Fa-f:]*(?:\.[0-9]+){0,3}")
_VERSION = re.compile(
    r"""(?:version|firmware|fw|rev|revision|vbios|bios|driver|release)["']?\s*[:=]?\s*["'v]*\Z""",
    re.IGNORECASE,
)
_VERSION_BACK = 24  # letters that may say that four numbers are a version
_EUI64 = re.compile(r"(?:[0-9A-Fa-f]{2}:){7}[0-9A-Fa-f]{2}")


def contexts(text: str) -> Iterator[tuple[str, int, int]]:
    """Yield kind, start and end of each name that what stands around it gives away."""
    text = f"\n{text}"  # the first line begins as all others do
    for context in _CONTEXTS:
        at = text.find(context.literal)
        while at >= 0:
            end = at + len(context.literal)
            place = _named(context, text, at, end)
            if place is not None:
                yield context.kind, place[0] - 1, place[1] - 1
            at = text.find(context.literal, end if context.literal != "\n" else at + 1)


def _named(context: _Context, text: str, at: int, end: int) -> tuple[int, int] | None:
    ahead = context.ahead.match(text, end)
    if ahead is None:
        return None
    if context.back is None:
        return ahead.span(1)
    start = max(0, at - _MOST_BACK)
    back = context.back.search(text[start:at])
    if back is None:
        return None
    if back.re.groups:
        return start + back.start(1), start + back.end(1)
    return ahead.span(1)


def ip_spans(text: str) -> Iterator[tuple[int, int, str]]:
    """Yield start, end and canonical form of each address. Versions, netmasks and loopback are none."""
    for match in _IPV4.finditer(text):
        if _alone(text, match.start(), match.end()):
            found = _ipv4(match.group())
            if found and not _VERSION.search(text, max(0, match.start() - _VERSION_BACK), match.start()):
                yield match.start(), match.end(), found
    for match in _IPV6.finditer(text):
        start, end = _without_colons(text, *match.span())
        address = text[start:end]
        if ("::" in address or address.count(":") == 7) and _alone(text, start, end):
            found = _ipv6(address)
            if found and not text.startswith("_", end):  # else it is C++
                yield start, end, found


def _alone(text: str, start: int, end: int) -> bool:
    """Tell whether what stands here is no part of a longer word or number."""
    before = text[start - 1 : start]
    return not (before.isalnum() or before == "." or text[end : end + 1].isalnum())


def _without_colons(text: str, start: int, end: int) -> tuple[int, int]:
    """Leave out the colon of what stands before an address, `from:`, and the one that ends a clause."""
    if text.startswith(":", start) and not text.startswith("::", start):
        start += 1
    if text.endswith(":", start, end) and not text.endswith("::", start, end):
        end -= 1
    return start, end


def _ipv4(text: str) -> str:
    try:
        address = ipaddress.IPv4Address(text)
    except ValueError:
        return ""
    if address.packed[0] in (0, 255) or text == "127.0.0.1":
        return ""
    return str(address)


def _ipv6(text: str) -> str:
    if _EUI64.fullmatch(text):  # a port's or a drive's identity
        return ""
    try:
        address = ipaddress.IPv6Address(text)
    except ValueError:
        return ""
    return "" if address.is_loopback or address.is_unspecified else str(address)
