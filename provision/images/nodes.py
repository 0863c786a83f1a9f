"""Container images on nodes, through containerd's own client: what is there, pulling, comparing."""

from __future__ import annotations

import asyncio
import tomllib
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass

from provision.errors import SshFailed
from provision.images.errors import PullFailed
from provision.images.registry import Image, Name
from provision.ssh import SshResult

_PULL_S = 3600.0
_LOOK_S = 60.0
_READ_S = 1800.0
_HOSTS = "/etc/containerd/certs.d"  # where the registry_client role says which registry answers for what
_PODS = "k8s.io"  # the namespace of containerd's own part for Kubernetes
Run = Callable[[list[str], float], Awaitable[SshResult]]


@dataclass(frozen=True, slots=True)
class ImageNode:
    """One node: `run` executes a command there, with a timeout in seconds. Raises SshFailed."""

    name: str
    run: Run


@dataclass(frozen=True, slots=True)
class Holding:
    """What a node has of an image: its digest, empty for none; `why` where it could not be asked."""

    node: str
    digest: str = ""
    why: str = ""


async def each(
    nodes: Sequence[ImageNode], work: Callable[[ImageNode], Awaitable[Holding]], at_once: int
) -> Sequence[Holding]:
    """Do `work` on all nodes, at most `at_once` at a time; what fails becomes a Holding that says why."""
    turn = asyncio.Semaphore(at_once)

    async def one(node: ImageNode) -> Holding:
        async with turn:
            try:
                return await work(node)
            except PullFailed as error:
                return Holding(node.name, why=f"{str(error).partition(': ')[2]}: {error.detail}")
            except SshFailed as error:
                return Holding(node.name, why=error.reason)

    return await asyncio.gather(*(one(node) for node in nodes))


async def holding(node: ImageNode, host: str, name: Name, namespace: str) -> Holding:
    """Ask which digest of an image a node has."""
    words = ["ctr", "--namespace", namespace, "images", "list", f"name=={host}/{name}"]
    result = await node.run(words, _LOOK_S)
    if result.status != 0:
        raise PullFailed(node.name, "containerd was not asked", _last(result.stderr))
    return Holding(node.name, _listed(result.stdout.decode("utf-8", "replace")).get(f"{host}/{name}", ""))


async def pull(node: ImageNode, host: str, name: Name, image: Image, namespace: str) -> Holding:
    """Have a node pull an image from inside the site. Raises PullFailed, also for another digest."""
    words = ["ctr", "--namespace", namespace, "images", "pull", "--hosts-dir", _HOSTS]
    result = await node.run([*words, *await _unpacking(node, namespace), f"{host}/{name}"], _PULL_S)
    if result.status != 0:
        raise PullFailed(node.name, f"{name} was not pulled", _last(result.stderr or result.stdout))
    held = await holding(node, host, name, namespace)
    if held.digest != image.digest:  # a mirror on the way may keep an old tag for minutes
        raise PullFailed(
            node.name, f"{name} is {held.digest or 'not there'}", f"the registry has {image.digest}"
        )
    return held


async def compare(node: ImageNode, host: str, name: Name, image: Image, namespace: str) -> Holding:
    """Pull an image and read back every byte of it that the node stores. Raises PullFailed.

    Of an index, a node stores only its own platform.
    """
    held = await pull(node, host, name, image, namespace)
    listed = await node.run(["ctr", "--namespace", namespace, "content", "list", "--quiet"], _LOOK_S)
    stored = set(listed.stdout.decode("utf-8", "replace").split())
    mine = [blob for blob in (image.digest, *image.blobs) if blob in stored]
    if image.digest not in mine:
        raise PullFailed(node.name, f"{name} has no manifest in the node's store", _last(listed.stderr))
    for blob in mine:
        line = f"ctr --namespace {namespace} content get {blob} | sha256sum"
        read = await node.run(["sh", "-c", line], _READ_S)
        got = read.stdout.decode("utf-8", "replace").partition(" ")[0]
        if b"ctr: " in read.stderr:  # of a pipe the shell tells how its last command ended, and no more
            raise PullFailed(node.name, f"{name}: blob {blob} was not read", _last(read.stderr))
        if read.status != 0 or f"sha256:{got}" != blob:
            raise PullFailed(node.name, f"{name}: blob {blob} has other bytes", f"sha256 {got}")
    return held


async def _unpacking(node: ImageNode, namespace: str) -> Sequence[str]:
    """Return ctr's options for the snapshotter that pods get: in ctr's own, they would not find the image."""
    if namespace != _PODS:
        return ()
    result = await node.run(["containerd", "config", "dump"], _LOOK_S)
    if result.status != 0:
        raise PullFailed(node.name, "containerd's configuration was not read", _last(result.stderr))
    try:
        plugins = tomllib.loads(result.stdout.decode("utf-8", "replace")).get("plugins", {})
    except tomllib.TOMLDecodeError as error:
        raise PullFailed(node.name, "containerd's configuration was not read", str(error)) from error
    if second := plugins.get("io.containerd.cri.v1.images", {}).get("snapshotter"):
        # Without --local, containerd 2 unpacks into its default one only (containerd/containerd#11606).
        return ("--local", "--snapshotter", str(second))
    first = plugins.get("io.containerd.grpc.v1.cri", {}).get("containerd", {}).get("snapshotter")
    return ("--snapshotter", str(first)) if first else ()


def _listed(text: str) -> Mapping[str, str]:
    """Read `ctr images list`: REF TYPE DIGEST SIZE ..., under a head."""
    rows = (line.split() for line in text.splitlines()[1:])
    return {row[0]: row[2] for row in rows if len(row) > 2 and row[2].startswith("sha256:")}


def _last(text: bytes) -> str:
    lines = text.decode("utf-8", "replace").strip().splitlines()
    return lines[-1].strip() if lines else "it gave no reason"
