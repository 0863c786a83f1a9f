"""mirror.*: files in and out of the site's mirror, and from there to many nodes at once."""

from __future__ import annotations

import asyncio
import re
import sys
from collections.abc import Awaitable, Callable, Sequence
from contextlib import aclosing
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from typing import TypeVar

from inventory.nodeset import fold
from provision import advice
from provision.access import Access
from provision.cli import render
from provision.cli.command import Ended, command
from provision.cli.confirm import asking
from provision.cli.selection import NODES, POOL, RACK, open_site, select
from provision.cli.transfers import Line, RackBars
from provision.errors import BadRequest, Declined
from provision.mirror.client import Credentials, File, Mirror
from provision.mirror.fetching import fetch as fetch_file
from provision.spread.spreading import Arrival, Receiver, Source, Wish
from provision.spread.spreading import spread as spread_file

T = TypeVar("T")
_OUTPUTS = "table, wide, json or yaml"
_DIGEST = re.compile(r"[0-9a-f]{64}")
_UNITS = {"h": 1 / 24, "d": 1.0, "w": 7.0}


def open_mirror(access: Access) -> Mirror:
    """Return the site's mirror, to be entered. Raises BadRequest where the site has none, SecretMissing."""
    endpoint = access.site.mirror
    if endpoint is None:
        raise BadRequest("site.yaml", "the site names no mirror", "add mirror: {url: ..., token: ...}")
    token = access.secret(endpoint.token) if endpoint.token else None
    return Mirror(endpoint.url, Credentials(token))


def _with_mirror(work: Callable[[Mirror], Awaitable[T]]) -> T:
    mirror = open_mirror(open_site(prepare=True))

    async def run() -> T:
        async with mirror:
            return await work(mirror)

    return asyncio.run(run())


@command(
    {
        "file": "file to send; required",
        "name": "its name on the mirror, for example nvidia/driver-570.run (default: the file's own)",
        "replace": "move the name, where it leads to other content",
        "pin": "keep the content from collection; says why",
    }
)
def put(file: str = "", name: str = "", replace: bool = False, pin: str = "") -> None:
    """Send a file to the mirror; what an earlier attempt has sent is not sent again."""
    path = _readable(file)

    async def work(mirror: Mirror) -> File:
        with Line(path.name) as line:
            sent = await mirror.put(path, name or path.name, replace=replace, progress=line.at)
        if pin:
            await mirror.pin(sent.sha256, pin)
        return sent

    _print_file(_with_mirror(work))


@command({"name": "name or sha256; required", "out": "file to write (default: the last part of the name)"})
def get(name: str = "", out: str = "") -> None:
    """Fetch a file from the mirror; it appears whole and verified, or not at all."""
    _required("--name", name)
    path = Path(out or name.rpartition("/")[2])
    if not path.parent.is_dir():
        raise BadRequest("--out", f"{path.parent} is no folder", "name a file in a folder that is there")

    async def work(mirror: Mirror) -> File:
        with Line(path.name) as line:
            return await mirror.get(name, path, progress=line.at)

    _print_file(_with_mirror(work))


@command({"output": _OUTPUTS})
def list_(output: str = "table") -> None:
    """List what the mirror holds."""
    files = _with_mirror(lambda mirror: mirror.files())
    render.answer("files", [_row(file) for file in files], ("name", "size", "stored", "by", "pinned"), output)


@command(
    {
        "name": "name or sha256; required",
        "reason": "why it must stay; required unless --remove",
        "remove": "take the pin away",
    }
)
def pin(name: str = "", reason: str = "", remove: bool = False) -> None:
    """Keep content from collection, or let it be collected again."""
    _required("--name", name)
    if not remove:
        _required("--reason", reason)

    async def work(mirror: Mirror) -> File:
        file = await mirror.look_up(name)
        await (mirror.unpin(file.sha256) if remove else mirror.pin(file.sha256, reason))
        return file

    file = _with_mirror(work)
    sys.stdout.write(f"{file.sha256}  {'no longer pinned' if remove else f'pinned: {reason}'}\n")


@command(
    {
        "older_than": "age, for example 30d or 12h (default: the mirror's own limit)",
        "dry_run": "only say what would go",
        "yes": "do not ask",
        "output": _OUTPUTS,
    }
)
def gc(older_than: str = "", dry_run: bool = False, yes: bool = False, output: str = "table") -> None:
    """Remove old content that no name leads to and no pin keeps."""
    days = _days(older_than) if older_than else None
    going = _with_mirror(lambda mirror: mirror.collect(days, dry_run=True))
    if not dry_run and going:
        _consent(going, yes=yes)
        going = _with_mirror(lambda mirror: mirror.collect(days, dry_run=False))
    rows = [_row(file) for file in going]
    render.answer("files", rows, ("sha256", "size", "stored", "by"), output)
    word = "would go" if dry_run else "removed"
    sys.stdout.flush()
    sys.stderr.write(f"{len(going)} files {word}, {_size(sum(file.size for file in going))}\n")


@command({"output": _OUTPUTS})
def verify(output: str = "table") -> None:
    """Have the mirror read everything again; what lost its digest is put away and served no more."""

    async def work(mirror: Mirror) -> dict[str, bool]:
        async with aclosing(mirror.verify()) as read:
            return {sha256: intact async for sha256, intact in read}

    found = _with_mirror(work)
    broken = [{"sha256": sha256, "state": "broken"} for sha256, intact in found.items() if not intact]
    if broken or output != "table":
        rows = [{"sha256": sha, "state": "intact" if good else "broken"} for sha, good in found.items()]
        render.answer("files", broken if output == "table" else rows, ("sha256", "state"), output)
        sys.stdout.flush()
    sys.stderr.write(f"{len(found) - len(broken)} of {len(found)} files intact\n")
    if broken:
        sys.stderr.write("  next: docs/runbooks/mirror-digest.md\n")
        raise Ended(advice.EXIT_NODES_FAILED)


@command(
    {
        "url": "where the file lies outside; required",
        "sha256": "what it must be; required",
        "name": "its name on the mirror (default: the last part of the url)",
    }
)
def fetch(url: str = "", sha256: str = "", name: str = "") -> None:
    """Bring one copy of a file from outside into the mirror."""
    _required("--url", url)
    if not _DIGEST.fullmatch(sha256):
        raise BadRequest(
            "--sha256", "it needs 64 hexadecimal digits", "take it from where the file is published"
        )
    access = open_site(prepare=True)
    name = name or url.partition("?")[0].rpartition("/")[2]

    async def work() -> tuple[File, bool]:
        async with open_mirror(access) as mirror:
            with Line(name) as line:
                folder = access.settings.state / "fetching"
                return await fetch_file(mirror, url, File(sha256, 0, (name,)), folder, progress=line.at)

    file, fetched = asyncio.run(work())
    _print_file(file)
    if not fetched:
        sys.stderr.write("the mirror had it: nothing came from outside\n")


@command(
    {
        "file": "a file here, or a name or sha256 on the mirror; required",
        "dest": "absolute path on the nodes; required",
        "nodes": NODES,
        "rack": RACK,
        "pool": POOL,
        "http": "every node from the mirror, none from others",
        "port": "where nodes serve each other",
        "output": "table or json",
    },
    lists=("rack",),
)
def spread(
    file: str = "",
    dest: str = "",
    nodes: str = "",
    rack: Sequence[str] = (),
    pool: str = "",
    http: bool = False,
    port: str = "6881",
    output: str = "table",
) -> None:
    """Bring a file to many nodes: nodes serve nodes, and the mirror sends about one copy."""
    _required("--file", file)
    if not dest.startswith("/") or dest.endswith("/"):
        raise BadRequest("--dest", "it needs the absolute path of a file", "for example /var/cache/image.tar")
    if not port.isdigit() or not 0 < int(port) < 65536:
        raise BadRequest("--port", f"{port} is no port", "for example 6881")
    access = open_site(prepare=True)
    chosen = select(access, nodes, rack, pool)
    sudo = ("sudo", "-n") if access.site.ssh.become and access.site.ssh.user != "root" else ()
    receivers = [
        Receiver(node.name, node.rack, tuple(access.ssh(node).arguments()), (*sudo, "python3"))
        for node in chosen
    ]
    source = Source.HTTP if http else Source.PEERS
    arrivals = asyncio.run(_spread(access, file, receivers, dest, source, int(port)))
    _print_arrivals(arrivals, output)


async def _spread(
    access: Access, name: str, receivers: Sequence[Receiver], dest: str, source: Source, port: int
) -> Sequence[Arrival]:
    async with open_mirror(access) as mirror:
        if Path(name).is_file():
            with Line(Path(name).name) as line:
                file = await mirror.put(Path(name), "", progress=line.at)
        else:
            file = await mirror.look_up(name)
        if source is Source.PEERS:
            await mirror.ask(f"/api/torrents/{file.sha256}", {"url": mirror.url})
        wish = Wish(mirror.url, file, dest, source, port)
        with RackBars({one.node: one.rack for one in receivers}, file.size) as bars:
            return tuple((await spread_file(receivers, wish, bars.at)).values())


def _print_arrivals(arrivals: Sequence[Arrival], output: str) -> None:
    rows = [asdict(one) for one in sorted(arrivals, key=lambda one: one.node)]
    failed = [one for one in arrivals if not one.ok]
    if output == "table":
        good = [one for one in arrivals if one.ok]
        by_source = {
            source: fold(one.node for one in good if one.source == source)
            for source in ("peers", "http", "there")
        }
        for source, names in by_source.items():
            if names:
                words = {"peers": "from each other", "http": "from the mirror", "there": "had it"}
                sys.stdout.write(f"{names}  {words[source]}\n")
    else:
        render.answer("nodes", rows, ("node", "ok", "source", "seconds", "why"), output)
    sys.stdout.flush()
    taken = sum(one.fetched for one in arrivals)
    sys.stderr.write(
        f"{len(arrivals) - len(failed)} of {len(arrivals)} nodes have it; the mirror sent {_size(taken)}\n"
    )
    if failed:
        for why in sorted({one.why for one in failed}):
            names = fold(one.node for one in failed if one.why == why)
            sys.stderr.write(f"  {names}  {why}\n    next: invoke show --nodes {names}\n")
        raise Ended(advice.EXIT_NODES_FAILED)


def _row(file: File) -> dict[str, object]:
    return {
        "name": ", ".join(file.names),
        "size": file.size,
        "stored": datetime.fromtimestamp(file.stored_at, UTC),
        "by": file.by,
        "pinned": file.pinned,
        "sha256": file.sha256,
    }


def _print_file(file: File) -> None:
    name = f"  {file.names[0]}" if file.names else ""
    sys.stdout.write(f"{file.sha256}{name}  {_size(file.size)}\n")


def _consent(going: Sequence[File], *, yes: bool) -> None:
    asked = asking(yes=yes)
    if asked.yes:
        return
    size = _size(sum(file.size for file in going))
    if asked.typed is None:
        raise Declined(f"removing {len(going)} files needs --yes where there is no terminal to ask at")
    if asked.typed(f"{len(going)} files, {size}, will be removed.  type yes to go on: ").strip() != "yes":
        raise Declined(f"removing {len(going)} files was not confirmed")


def _days(text: str) -> float:
    if not re.fullmatch(r"\d{1,5}[hdw]", text):
        raise BadRequest("--older-than", f"{text} is no age", "for example 12h, 30d or 4w")
    return int(text[:-1]) * _UNITS[text[-1]]


def _readable(name: str) -> Path:
    _required("--file", name)
    path = Path(name)
    if not path.is_file():
        raise BadRequest("--file", f"{name} is no file here", "name a file that can be read")
    return path


def _required(option: str, value: str) -> None:
    if not value:
        raise BadRequest(option, "it needs a value", "see --help of this command")


def _size(count: float) -> str:
    for unit in ("B", "kB", "MB", "GB"):
        if count < 1000:
            return f"{count:.0f} {unit}" if unit == "B" else f"{count:.1f} {unit}"
        count /= 1000
    return f"{count:.1f} TB"
