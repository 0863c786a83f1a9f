"""Pushing to and asking a real docker-registry."""

from __future__ import annotations

import asyncio
import hashlib
import io
import json
import shutil
import socket
import subprocess
import tarfile
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from provision.images.errors import PushFailed, RegistryUnreachable, UnknownImage
from provision.images.push import push
from provision.images.registry import Name, Registry

_UP_S = 60.0
pytestmark = pytest.mark.timeout(120)


@pytest.fixture
def url(tmp_path: Path) -> Iterator[str]:
    """A registry with an empty storage."""
    for tool in ("docker-registry", "skopeo"):
        if shutil.which(tool) is None:
            pytest.skip(f"{tool} is not installed")
    with socket.create_server(("127.0.0.1", 0)) as opened:
        port = opened.getsockname()[1]
    (tmp_path / "registry.yml").write_text(
        "version: 0.1\nlog: {level: error, accesslog: {disabled: true}}\n"
        f"storage: {{filesystem: {{rootdirectory: {tmp_path}/registry}}}}\n"
        f"http: {{addr: '127.0.0.1:{port}'}}\n"
    )
    process = subprocess.Popen(
        ["docker-registry", "serve", str(tmp_path / "registry.yml")],
        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
    )  # fmt: skip
    try:
        deadline = time.monotonic() + _UP_S
        while True:
            try:
                socket.create_connection(("127.0.0.1", port), 1).close()
                break
            except OSError:
                assert time.monotonic() < deadline, "the registry did not come up"
                time.sleep(0.05)
        yield f"http://127.0.0.1:{port}"
    finally:
        process.terminate()
        process.wait(20)


def an_image(folder: Path, content: bytes) -> str:
    """Write a one-layer OCI image and return what skopeo calls it."""
    blobs = folder / "blobs" / "sha256"
    blobs.mkdir(parents=True)

    def blob(data: bytes) -> dict[str, object]:
        digest = hashlib.sha256(data).hexdigest()
        (blobs / digest).write_bytes(data)
        return {"digest": f"sha256:{digest}", "size": len(data)}

    layer = io.BytesIO()
    with tarfile.open(fileobj=layer, mode="w") as archive:
        entry = tarfile.TarInfo("file")
        entry.size = len(content)
        archive.addfile(entry, io.BytesIO(content))
    diff = f"sha256:{hashlib.sha256(layer.getvalue()).hexdigest()}"
    config = {"architecture": "amd64", "os": "linux", "rootfs": {"type": "layers", "diff_ids": [diff]}}
    oci = "application/vnd.oci.image"
    manifest = {
        "schemaVersion": 2,
        "mediaType": f"{oci}.manifest.v1+json",
        "config": {"mediaType": f"{oci}.config.v1+json", **blob(json.dumps(config).encode())},
        "layers": [{"mediaType": f"{oci}.layer.v1.tar", **blob(layer.getvalue())}],
    }
    described = {"mediaType": f"{oci}.manifest.v1+json", **blob(json.dumps(manifest).encode())}
    described["annotations"] = {"org.opencontainers.image.ref.name": "one"}
    (folder / "index.json").write_text(json.dumps({"schemaVersion": 2, "manifests": [described]}))
    (folder / "oci-layout").write_text('{"imageLayoutVersion": "1.0.0"}')
    return f"oci:{folder}:one"


async def test_what_is_pushed_is_there_byte_for_byte(url: str, tmp_path: Path) -> None:
    source = an_image(tmp_path / "oci", b"weights" * 1000)
    name = Name("team/train", "1")
    digest = await push(Registry(url), source, name)
    async with Registry(url) as registry:
        by_tag, by_digest = await asyncio.gather(
            registry.image(name), registry.image(Name("team/train", digest))
        )
    assert by_tag == by_digest
    assert by_tag.digest == digest
    ours = {f"sha256:{path.name}" for path in (tmp_path / "oci" / "blobs" / "sha256").iterdir()}
    assert {digest, *by_tag.blobs} == ours


async def test_what_is_not_there_is_said(url: str, tmp_path: Path) -> None:
    async with Registry(url) as registry:
        with pytest.raises(UnknownImage):
            await registry.image(Name("team/none", "1"))
    with pytest.raises(PushFailed) as failed:
        await push(Registry(url), f"docker-archive:{tmp_path}/none.tar", Name("a", "1"))
    assert "no such file" in failed.value.detail


async def test_a_dead_registry_is_unreachable() -> None:
    async with Registry("http://127.0.0.1:9") as registry:
        with pytest.raises(RegistryUnreachable):
            await registry.image(Name("a", "1"))
