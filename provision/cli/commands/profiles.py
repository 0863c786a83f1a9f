"""profile.*: a hardware profile from nodes that are known to be good."""

from __future__ import annotations

import asyncio
import secrets
import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import yaml

from health import catalogue
from health import evidence as evidence_files
from health.check import Level
from health.errors import EvidenceBroken
from health.evidence import Evidence
from inventory.model import Node, Pool, Profile
from inventory.nodeset import fold
from provision import gate, profile_learning
from provision.access import Access
from provision.cli.command import command
from provision.cli.selection import NODES, POOL, RACK, node_sets, open_site, select
from provision.errors import BadRequest, Refused
from provision.profile_learning import Merged

_GOOD = frozenset({Pool.RELIABLE, Pool.SPARE})


@command(
    {
        "nodes": NODES,
        "rack": RACK,
        "pool": POOL,
        "name": "name of the new profile; required",
        "trust": "node set: believe these although they are not reliable, as for the first node of its kind",
        "level": "quick, or full to learn speeds too, on idle nodes",
        "out": "file to write it into (default: stdout)",
    },
    lists=("rack",),
)
def learn(
    nodes: str = "",
    rack: Sequence[str] = (),
    pool: str = "",
    name: str = "",
    trust: str = "",
    level: str = "quick",
    out: str = "",
) -> None:
    """Write a hardware profile from known-good nodes of one kind, to be read over and kept in the site."""
    if not name.strip():
        raise BadRequest("--name", "the profile needs a name", "add --name dell-xe9680-h100")
    access = open_site(prepare=True)
    chosen = select(access, nodes, rack, pool)
    _all_good(access, chosen, trust)
    like = access.profile(chosen[0])
    learned = asyncio.run(_learned(access, chosen, name, like, _level(level)))
    if learned.doubts:
        more = f", and {len(learned.doubts) - 1} more" if len(learned.doubts) > 1 else ""
        node, _, what = learned.doubts[0].partition(": ")
        raise Refused("not-healthy", node, f"no profile is learned from it: {what}{more}")
    text = as_yaml(learned, fold(node.name for node in chosen))
    if out:
        Path(out).write_text(text, encoding="utf-8")
    else:
        sys.stdout.write(text)
    sys.stdout.flush()
    for what, why in sorted(learned.left_out.items()):
        sys.stderr.write(f"left out: {what}: {why}\n")
    limits, checks = len(learned.profile.limits), len(learned.profile.checks)
    sys.stderr.write(
        f"{name}: {limits} limits and {checks} checks from {fold(node.name for node in chosen)}\n"
        f"  next: read it over, then put it into {access.site.path / 'profiles.yaml'}\n"
    )


def as_yaml(learned: Merged, source: str) -> str:
    """Return the profile in the form of profiles.yaml."""
    profile = learned.profile
    entry = {
        "vendor": profile.vendor,
        "model": profile.model,
        "os_image": profile.os_image,
        "deadlines": {stage: _plain(value) for stage, value in profile.deadlines.items()},
        "limits": {limit: _plain(value) for limit, value in sorted(profile.limits.items())},
        "checks": list(profile.checks),
        "playbook": profile.playbook,
    }
    document = {"profiles": {profile.name: {key: value for key, value in entry.items() if value}}}
    return f"# Learned from {source}.\n" + yaml.safe_dump(document, sort_keys=False, default_flow_style=None)


def _plain(value: object) -> object:
    """Return a list as one, and a number without the noughts that the loader takes for a version's."""
    if isinstance(value, tuple):
        return list(value)
    return int(value) if isinstance(value, float) and value.is_integer() else value


def _all_good(access: Access, nodes: Sequence[Node], trust: str) -> None:
    """Raise Refused for a node that is neither reliable nor named as trusted."""
    trusted = {node.name for node in node_sets(access).select(trust, (), None)} if trust else set()
    for node in nodes:
        pool = access.store.node(node.name).pool
        if pool not in _GOOD and node.name not in trusted:
            where = f"it is in {pool}" if pool else "it is in no pool"
            raise Refused(
                "not-reliable", node.name, where, detail=f"--trust {node.name} believes it all the same"
            )


def _level(text: str) -> Level:
    try:
        return Level(text)
    except ValueError as error:
        raise BadRequest("--level", f"{text} is no level", f"one of {', '.join(Level)}") from error


async def _learned(access: Access, nodes: Sequence[Node], name: str, like: Profile, level: Level) -> Merged:
    """Collect twice: some items are collected only where a profile states a limit, so learn it first."""
    first = await _evidence(access, nodes, replace(like, checks=()), Level.QUICK)
    bare = profile_learning.learn(first, name, like).profile
    found = await _evidence(access, nodes, replace(bare, checks=()), level)
    return profile_learning.learn(found, name, like)


async def _evidence(
    access: Access, nodes: Sequence[Node], by: Profile, level: Level
) -> Mapping[str, Evidence]:
    """Collect all that a gate of `level` can look at. Raises Refused where evidence is not whole."""
    plan = catalogue.plan(by, level)

    async def one(node: Node) -> Evidence:
        nonce = secrets.token_hex(16)
        got = await gate.collect(access.ssh(node), plan, nonce, become=access.site.ssh.become)
        if got.lost:
            raise Refused("not-healthy", node.name, got.lost)
        try:
            return evidence_files.parse(got.out, nonce=nonce)
        except EvidenceBroken as error:
            raise Refused("not-healthy", node.name, str(error)) from error

    found = await asyncio.gather(*(one(node) for node in nodes))
    return {node.name: evidence for node, evidence in zip(nodes, found, strict=True)}
