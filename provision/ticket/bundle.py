"""Makes one node's ticket: collect, redact, fit, scan for secrets, and only then write it down."""

from __future__ import annotations

import asyncio
import platform
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from ipaddress import ip_address
from pathlib import Path
from urllib.parse import urlsplit

from bmc.drivers import connect, connect_redfish
from inventory.model import Node
from inventory.records import AUTOMATION
from provision.access import Access
from provision.errors import BadRequest
from provision.ticket import pack, scan, summary
from provision.ticket.artifact import File, Json, Text
from provision.ticket.collecting import Case, Collected, Collector, Outcome, Report, collect
from provision.ticket.errors import SecretInTicket, TicketTooLarge
from provision.ticket.lines import Login, SshHost
from provision.ticket.redact import Known, Profile, Redactor
from provision.ticket.table import COLLECTORS

LIMIT = 100 << 20

_MOST_EVENTS = 10_000
_SHORT_NAME = 4  # letters; a host of ours called `vm` is a word of many logs
_LEAST_NUMBER = 5  # letters of a serial number; what is shorter is a filler


@dataclass(frozen=True, slots=True)
class Wish:
    """What the operator asks for. `limit` is in bytes, of the archive."""

    out: Path
    component: str = ""
    profile: Profile = Profile.VENDOR
    limit: int = LIMIT
    dump: bool = True


@dataclass(frozen=True, slots=True)
class Bundle:
    """A ticket that was made. `missing` is what could not be had, `paste` five lines for a vendor's form."""

    node: str
    path: Path
    size: int
    sha256: str
    missing: tuple[str, ...]
    paste: tuple[str, ...]


def open_case(access: Access, node: Node, wish: Wish, *, now: datetime | None = None) -> Case:
    """Return a case with real ways to the node; nothing is opened yet."""
    return Case(
        access=access,
        node=node,
        profile=access.profile(node),
        now=now or datetime.now(UTC),
        bmc=Login(lambda: connect(access.bmc(node))),
        redfish=Login(lambda: connect_redfish(access.bmc(node))),
        host=SshHost(access, node),
        audience=wish.profile,
        dump=wish.dump,
    )


async def make(
    case: Case, wish: Wish, needles: scan.Needles, *, collectors: Sequence[Collector] = COLLECTORS
) -> Bundle:
    """Make the ticket of a node. Nothing is written before it is whole and holds no secret.

    Raises SecretInTicket, TicketTooLarge, BadRequest where `wish.out` cannot be written.
    """
    collected = await collect(case, collectors)
    return await asyncio.to_thread(_finish, case, wish, needles, collected)


def _finish(case: Case, wish: Wish, needles: scan.Needles, collected: Collected) -> Bundle:
    redactor = Redactor(wish.profile, known_names(case, collected))
    found, reports = render(redactor, collected)
    about = _About(case, wish, needles, redactor, tuple(found))
    story = _story(case, wish, collected, reports)
    room = wish.limit - pack.packed_size(about.files(story)) * 5 // 4  # what is cut makes it longer
    fitted = pack.fit(found, room)
    story = replace(story, cuts=fitted.cuts)
    files = {**fitted.files, **about.files(story)}
    hit = scan.scan(files, needles)
    if hit is not None:
        raise SecretInTicket(case.node.name, hit.file, hit.secret)
    stem = f"ticket-{case.node.name}-{case.now:%Y%m%dT%H%M%SZ}"
    # Tickets of two nodes, unpacked in one place, must not meet; a vendor's must not name the node.
    data = pack.archive(files, top=redactor.text(stem), time=case.now)
    if len(data) > wish.limit:
        raise TicketTooLarge(case.node.name, len(data), wish.limit)
    path = wish.out / f"{stem}.tar.gz"
    digest = _publish(path, data)
    paste = [redactor.text(line) for line in summary.paste_lines(story)]
    return Bundle(
        node=case.node.name,
        path=path,
        size=len(data),
        sha256=digest,
        missing=tuple(summary.missing(story.reports, story.cuts)),
        paste=(*paste, f"Attached: {path.name}, sha256 {digest}"),
    )


def known_names(case: Case, collected: Collected) -> Known:
    """Return what the site files, the store and the BMC say of names, and which numbers must stay."""
    site, node = case.access.site, case.node
    others = [other for other in site.nodes if other is not node]
    state = case.access.store.node(node.name)
    events = case.access.store.events(node=node.name, limit=_MOST_EVENTS)
    maas = urlsplit(site.maas.url).hostname or ""
    places = [
        *(place for one in (node, *others) for place in (one.address, one.bmc.host)),
        state.address,
        maas,
    ]
    credentials = site.credentials.values()
    people = [case.access.settings.who, site.ssh.user, *(ref.username for ref in credentials)]
    people += [event.actor for event in events if event.actor != AUTOMATION]
    names = [*(one.name for one in (node, *others)), *(p for p in places if p and not _is_ip(p))]
    ours = [host for host in (platform.node(), *(event.host for event in events)) if len(host) > _SHORT_NAME]
    return Known(
        hosts=tuple(dict.fromkeys([*names, *ours])),
        ips=tuple(dict.fromkeys(place for place in places if place and _is_ip(place))),
        users=tuple(dict.fromkeys(people)),
        keep=tuple(_numbers(node, collected)),
    )


def _is_ip(text: str) -> bool:
    try:
        ip_address(text)
    except ValueError:
        return False
    return True


def _numbers(node: Node, collected: Collected) -> Iterator[str]:
    """Yield the serial and part numbers that are known: a vendor needs them as they are."""
    yield from node.macs
    if node.serial:
        yield node.serial
    for _, _, value in summary.serials(collected.facts):
        if len(value) >= _LEAST_NUMBER and any(letter.isdigit() for letter in value):
            yield value


def render(redactor: Redactor, collected: Collected) -> tuple[dict[str, bytes], tuple[Report, ...]]:
    """Redact every file, having learned from all of them. What cannot be, or is sealed, is left out."""
    for report in collected.reports:
        redactor.learn(report.reason)
    for file in collected.files:
        for text in file.content.texts():
            redactor.learn(text)
    found: dict[str, bytes] = {}
    lost: dict[str, str] = {}
    for file in collected.files:
        try:
            found[file.path] = file.content.rendered(redactor)
        except Exception as exc:  # noqa: BLE001  what cannot be redacted must not cost the rest
            lost[file.path] = f"it cannot be redacted: {type(exc).__name__}"
            continue
        if scan.sealed(file.path, found[file.path]):
            del found[file.path]
            lost[file.path] = "left out: it cannot be looked into for secrets"
    return found, tuple(_without(report, lost) for report in collected.reports)


def _without(report: Report, lost: Mapping[str, str]) -> Report:
    gone = [f"{path}: {lost[path]}" for path in report.files if path in lost]
    if not gone:
        return report
    left = tuple(path for path in report.files if path not in lost)
    reason = "; ".join([*([report.reason] if report.reason else []), *gone])
    return replace(report, files=left, reason=reason, outcome=Outcome.PARTIAL if left else Outcome.ERROR)


def _story(case: Case, wish: Wish, collected: Collected, reports: tuple[Report, ...]) -> summary.Story:
    store, name = case.access.store, case.node.name
    return summary.Story(
        node=case.node,
        hardware=case.profile,
        state=store.node(name),
        verdicts=store.verdicts(name),
        events=store.events(node=name, limit=_MOST_EVENTS),
        facts=collected.facts,
        reports=reports,
        cuts=(),
        now=case.now,
        component=wish.component,
    )


@dataclass(frozen=True, slots=True)
class _About:
    """What the ticket says about itself."""

    case: Case
    wish: Wish
    needles: scan.Needles
    redactor: Redactor
    paths: tuple[str, ...]

    def files(self, story: summary.Story) -> dict[str, bytes]:
        contents = (
            File("SUMMARY.md", Text(summary.markdown(story).encode())),
            File("ticket.json", Json(summary.document(story, profile=str(self.wish.profile)))),
            File("collection.json", Json(self._collection(story))),
        )
        found = {file.path: file.content.rendered(self.redactor) for file in contents}
        found["redactions.txt"] = "\n".join([*self._redactions(), ""]).encode()
        return found

    def _collection(self, story: summary.Story) -> dict[str, object]:
        return {
            "schema": summary.SCHEMA,
            "node": story.node.name,
            "made_at": story.now,
            "collectors": [asdict(report) for report in story.reports],
            "cuts": [asdict(cut) for cut in story.cuts],
        }

    def _redactions(self) -> Iterator[str]:
        yield f"profile {self.wish.profile}"
        if self.wish.profile is Profile.INTERNAL:
            yield "nothing was replaced: this ticket is not for a vendor"
        else:
            yield "kind  placeholders  replaced"
            for row in self.redactor.replaced():
                yield f"{row.kind:<4}  {row.tokens:>12}  {row.times:>8}"
            yield "kept: serial and part numbers, MAC and PCI addresses, UUIDs"
            for path in self.paths:
                if path.startswith("bmc/vendor/"):
                    yield f"not redacted: {path}, which is as the BMC made it"
        yield f"secrets looked for in every file: {len(self.needles.names)}, none was found"
        for name, why in self.needles.unknown:
            yield f"could not be looked for: {name}: {why}"


def _publish(path: Path, data: bytes) -> str:
    try:
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        return pack.publish(path, data)
    except OSError as exc:
        what = f"{path}: {exc.strerror or exc}"
        raise BadRequest("--out", what, "name a folder that can be written and has room") from exc
