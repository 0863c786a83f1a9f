"""ticket: everything known about a node in one archive, for a vendor or for ourselves."""

from __future__ import annotations

import asyncio
import contextlib
import re
import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from pathlib import Path

from inventory.model import Node
from inventory.nodeset import fold
from provision.access import Access
from provision.cli import render
from provision.cli.command import command
from provision.cli.selection import NODES, POOL, RACK, open_site, select
from provision.errors import BadRequest, ProvisionError
from provision.ticket import bundle
from provision.ticket.bundle import LIMIT, Bundle, Wish
from provision.ticket.errors import TicketError
from provision.ticket.ledger import record_ticket
from provision.ticket.redact import Profile
from provision.ticket.scan import site_needles

_AT_ONCE = 4  # nodes; a ticket lies in memory until it is whole
_OUTPUTS = ("table", "json")


@command(
    {
        "nodes": NODES,
        "rack": RACK,
        "pool": POOL,
        "component": "what is broken, for example gpu5 or psu1 (default: the whole node)",
        "profile": "vendor: names and addresses replaced; internal: as they are",
        "out": "folder to write into (default: here)",
        "limit": f"megabytes that an archive may have (default {LIMIT >> 20})",
        "no_dump": "do not have the BMC make its own dump, which takes minutes",
        "output": "table or json",
    },
    lists=("rack",),
)
def ticket(
    nodes: str = "",
    rack: Sequence[str] = (),
    pool: str = "",
    component: str = "",
    profile: str = "vendor",
    out: str = ".",
    limit: str = str(LIMIT >> 20),
    no_dump: bool = False,
    output: str = "table",
) -> None:
    """Collect all evidence of nodes into one archive each; made also when node or BMC is dead."""
    wish = Wish(Path(out), _component(component), _profile(profile), _limit(limit), dump=not no_dump)
    if output not in _OUTPUTS:
        raise BadRequest("--output", f"{output} is no output form here", f"one of {', '.join(_OUTPUTS)}")
    access = open_site(prepare=True)
    chosen = select(access, nodes, rack, pool)
    with _writable(wish.out):
        sys.stderr.write(f"collecting from {fold(node.name for node in chosen)}\n")
        results = asyncio.run(_make(access, chosen, wish))
        made = [result for result in results if isinstance(result, Bundle)]
        _print(made, output)
        for one in made:
            record_ticket(
                access.store,
                access.node(one.node),
                who=access.settings.who,
                file=one.path.name,
                sha256=one.sha256,
                component=wish.component,
            )
        _raise([result for result in results if not isinstance(result, Bundle)], len(results))


def _component(name: str) -> str:
    if name and re.fullmatch(r"[a-z][a-z0-9._-]*", name) is None:
        raise BadRequest("--component", f"{name} is no component", "for example gpu5, nic0, psu1 or dimm-a1")
    return name


def _profile(name: str) -> Profile:
    if name not in tuple(Profile):
        raise BadRequest("--profile", f"{name} is no profile", f"one of {', '.join(Profile)}")
    return Profile(name)


def _limit(megabytes: str) -> int:
    if not megabytes.isdigit() or not 0 < int(megabytes) <= 100_000:
        raise BadRequest("--limit", f"{megabytes} is no number of megabytes", "for example 100")
    return int(megabytes) << 20


@contextlib.contextmanager
def _writable(folder: Path) -> Iterator[None]:
    """Make the folder before minutes are spent on collecting; take it away where no ticket came into it."""
    made = not folder.exists()
    try:
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        with tempfile.TemporaryFile(dir=folder):
            pass
    except OSError as error:
        what = f"{folder}: {error.strerror}"
        raise BadRequest("--out", what, "name a folder that can be written") from error
    try:
        yield
    finally:
        if made:
            with contextlib.suppress(OSError):
                folder.rmdir()


async def _make(access: Access, nodes: Sequence[Node], wish: Wish) -> list[Bundle | ProvisionError]:
    needles = site_needles(access)
    turn = asyncio.Semaphore(_AT_ONCE)

    async def one(node: Node) -> Bundle | ProvisionError:
        async with turn:
            try:
                return await bundle.make(bundle.open_case(access, node, wish), wish, needles)
            except (TicketError, BadRequest) as error:
                return error

    return await asyncio.gather(*(one(node) for node in nodes))


def _print(made: Sequence[Bundle], output: str) -> None:
    if output == "json":
        render.answer("tickets", [{**asdict(one), "path": str(one.path)} for one in made], ("node",), output)
        return
    for number, one in enumerate(made):
        blank = "\n" if number else ""
        sys.stdout.write(f"{blank}{one.node}  {one.path}\n")
        sys.stdout.write(f"  size     {_megabytes(one.size)}\n  sha256   {one.sha256}\n")
        for row, line in enumerate(one.missing or ("nothing",)):
            sys.stdout.write(f"  {'' if row else 'missing':<8} {line}\n")
        sys.stdout.write("  for the vendor's form:\n")
        sys.stdout.writelines(f"    {line}\n" for line in one.paste)
    sys.stdout.flush()


def _megabytes(size: int) -> str:
    return f"{size / (1 << 20):.1f} MB" if size >= 1 << 20 else f"{size / 1024:.0f} kB"


def _raise(errors: Sequence[ProvisionError], of: int) -> None:
    """Raise the first error, having named the others."""
    if not errors:
        return
    if len(errors) > 1:
        sys.stderr.write(f"failed {len(errors)} of {of}\n")
        sys.stderr.writelines(f"  {error}\n" for error in errors[1:])
    raise errors[0]
