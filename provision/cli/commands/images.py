"""images.*: container images into the site's registry, onto nodes, and whether they are the same there."""

from __future__ import annotations

import asyncio
import random
import re
import sys
from collections.abc import Sequence
from dataclasses import asdict

from inventory.model import Node
from inventory.nodeset import fold
from inventory.secrets import Secret
from provision import advice, ssh
from provision.access import Access
from provision.cli import render
from provision.cli.command import Ended, command
from provision.cli.selection import NODES, POOL, RACK, open_site, select, select_or_all
from provision.errors import BadRequest
from provision.images import nodes as on_nodes
from provision.images.nodes import Holding, ImageNode
from provision.images.push import push as push_image
from provision.images.registry import Image, Name, Registry
from provision.ssh import SshResult

_IMAGE = "REPOSITORY:TAG or REPOSITORY@sha256:DIGEST, without the registry's host; required"
_NAMESPACE = "containerd's namespace (default: k8s.io)"
_OUTPUTS = "table, wide, json, yaml or nodeset"


@command(
    {
        "source": "docker-archive:FILE, oci:FOLDER:TAG, docker-daemon:NAME or docker://NAME; required",
        "image": _IMAGE,
    }
)
def push(source: str = "", image: str = "") -> None:
    """Push a container image into the site's registry and print its digest."""
    if not re.match(r"(docker-archive|oci|oci-archive|docker-daemon|docker|dir):", source):
        raise BadRequest("--source", "it needs a form and a place", "for example docker-archive:image.tar")
    name = _name(image)
    registry, username, password = _registry(open_site(prepare=True))

    async def work() -> str:
        digest = await push_image(registry, source, name, username=username, password=password)
        async with registry:
            # What the registry says now, not what the tool believes to have sent.
            found = await registry.image(Name(name.repository, digest))
        return found.digest

    sys.stdout.write(f"{name.repository}@{asyncio.run(work())}\n")


@command(
    {
        "image": _IMAGE,
        "nodes": NODES,
        "rack": RACK,
        "pool": POOL,
        "sample": "have this many random nodes pull it and compare every byte (default: none)",
        "namespace": _NAMESPACE,
        "jobs": "nodes at once",
        "output": _OUTPUTS,
    },
    lists=("rack",),
)
def status(
    image: str = "",
    nodes: str = "",
    rack: Sequence[str] = (),
    pool: str = "",
    sample: str = "0",
    namespace: str = "k8s.io",
    jobs: str = "32",
    output: str = "table",
) -> None:
    """Say which digest of an image is where; with --sample, prove that nodes get the registry's bytes."""
    name, at_once, count = _name(image), _number("--jobs", jobs), _number("--sample", sample, least=0)
    _namespace(namespace)
    render.check_format(output)
    access = open_site(prepare=True)
    chosen = [_image_node(access, node) for node in select_or_all(access, nodes, rack, pool)]
    registry, _, _ = _registry(access)

    async def work() -> tuple[Image, Sequence[Holding], Sequence[Holding]]:
        async with registry:
            found = await registry.image(name)
        sampled = random.SystemRandom().sample(chosen, min(count, len(chosen)))
        compared = await on_nodes.each(
            sampled, lambda node: on_nodes.compare(node, registry.host, name, found, namespace), at_once
        )
        held = await on_nodes.each(
            chosen, lambda node: on_nodes.holding(node, registry.host, name, namespace), at_once
        )
        return found, held, compared

    found, held, compared = asyncio.run(work())
    _print(found, held, compared, output)


@command(
    {
        "image": _IMAGE,
        "nodes": NODES,
        "rack": RACK,
        "pool": POOL,
        "namespace": _NAMESPACE,
        "jobs": "nodes that pull at once",
        "output": _OUTPUTS,
    },
    lists=("rack",),
)
def preheat(
    image: str = "",
    nodes: str = "",
    rack: Sequence[str] = (),
    pool: str = "",
    namespace: str = "k8s.io",
    jobs: str = "32",
    output: str = "table",
) -> None:
    """Have nodes pull an image before it is needed, so many at once."""
    name, at_once = _name(image), _number("--jobs", jobs)
    _namespace(namespace)
    render.check_format(output)
    access = open_site(prepare=True)
    chosen = [_image_node(access, node) for node in select(access, nodes, rack, pool)]
    registry, _, _ = _registry(access)

    async def work() -> tuple[Image, Sequence[Holding]]:
        async with registry:
            found = await registry.image(name)
        return found, await on_nodes.each(
            chosen, lambda node: on_nodes.pull(node, registry.host, name, found, namespace), at_once
        )

    found, held = asyncio.run(work())
    _print(found, held, (), output)


def _print(found: Image, held: Sequence[Holding], compared: Sequence[Holding], output: str) -> None:
    told = {one.node: one.why for one in compared}
    equal = {node for node, why in told.items() if not why}
    rows = [
        {
            **asdict(one),
            "why": one.why or told.get(one.node, ""),
            "state": _state(one, found),
            "compared": ("equal" if one.node in equal else "failed") if one.node in told else "",
        }
        for one in held
    ]
    if output == "table":
        sys.stdout.write(f"registry  {found.digest}  {found.size / 1e6:.1f} MB\n")
        for state in sorted({str(row["state"]) for row in rows}):
            names = fold(str(row["node"]) for row in rows if row["state"] == state)
            sys.stdout.write(f"{names}  {state}\n")
        if compared:
            sys.stdout.write(f"{len(equal)} of {len(compared)} sampled nodes have the registry's bytes\n")
    else:
        render.answer("nodes", rows, ("node", "state", "digest", "compared", "why"), output)
    sys.stdout.flush()
    failed = [one for one in (*compared, *held) if one.why]
    for why in sorted({one.why for one in failed}):
        names = fold({one.node for one in failed if one.why == why})
        sys.stderr.write(f"  {names}  {why}\n    next: docs/runbooks/image-pull.md\n")
    if failed:
        raise Ended(advice.EXIT_NODES_FAILED)


def _state(one: Holding, found: Image) -> str:
    if one.why:
        return "failed"
    if not one.digest:
        return "not there"
    return "same digest" if one.digest == found.digest else f"other digest {one.digest}"


def _image_node(access: Access, node: Node) -> ImageNode:
    target = access.ssh(node)
    sudo = ["sudo", "-n"] if access.site.ssh.become and access.site.ssh.user != "root" else []

    async def run(words: list[str], timeout_s: float) -> SshResult:
        return await ssh.run(target, [*sudo, *words], timeout_s=timeout_s)

    return ImageNode(node.name, run)


def _registry(access: Access) -> tuple[Registry, str, Secret | None]:
    endpoint = access.site.registry
    if endpoint is None:
        raise BadRequest("site.yaml", "the site names no registry", "add registry: {url: ...}")
    password = access.secret(endpoint.password) if endpoint.password else None
    return Registry(endpoint.url, endpoint.username, password), endpoint.username, password


def _name(text: str) -> Name:
    name = Name.parse(text)
    if name is None:
        raise BadRequest("--image", f"{text or 'nothing'} is no image name", "for example team/train:2026.11")
    return name


def _namespace(text: str) -> None:
    if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._-]*", text):
        raise BadRequest("--namespace", f"{text} is no namespace", "for example k8s.io or default")


def _number(option: str, text: str, *, least: int = 1) -> int:
    if not text.isdigit() or int(text) < least:
        raise BadRequest(option, f"{text} is no number of nodes", "for example 32")
    return int(text)
