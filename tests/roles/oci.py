"""A container image made by hand, so that a test needs no image from outside."""

from __future__ import annotations

import gzip
import hashlib
import io
import json
import os
import tarfile
from dataclasses import dataclass
from pathlib import Path

from tests.roles.conftest import Fresh

# On a lab node: its file system may not be laid over another.
PULL = "sudo ctr images pull --hosts-dir /etc/containerd/certs.d --snapshotter native"


def image() -> tuple[bytes, str]:
    """Return an image as a tar in OCI's layout, made by hand, and the digest of its manifest."""
    plain = io.BytesIO()
    with tarfile.open(fileobj=plain, mode="w") as tar:
        for name, data in (("etc/site", b"the site's own\n"), ("data", os.urandom(3_000_000))):
            about = tarfile.TarInfo(name)
            about.size = len(data)
            tar.addfile(about, io.BytesIO(data))
    layer = gzip.compress(plain.getvalue(), 1, mtime=0)
    config = json.dumps({
        "architecture": "amd64", "os": "linux", "config": {},
        "rootfs": {"type": "layers", "diff_ids": [f"sha256:{hashlib.sha256(plain.getvalue()).hexdigest()}"]},
    }).encode()  # fmt: skip
    manifest = json.dumps({
        "schemaVersion": 2, "mediaType": "application/vnd.oci.image.manifest.v1+json",
        "config": _about("application/vnd.oci.image.config.v1+json", config),
        "layers": [_about("application/vnd.oci.image.layer.v1.tar+gzip", layer)],
    }).encode()  # fmt: skip
    entry = _about("application/vnd.oci.image.manifest.v1+json", manifest)
    index = json.dumps(
        {
            "schemaVersion": 2,
            "manifests": [entry | {"annotations": {"org.opencontainers.image.ref.name": "1"}}],
        }
    ).encode()
    files = {f"blobs/sha256/{hashlib.sha256(data).hexdigest()}": data for data in (layer, config, manifest)}
    files |= {"index.json": index, "oci-layout": b'{"imageLayoutVersion": "1.0.0"}'}
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w") as tar:
        for name, data in files.items():
            about = tarfile.TarInfo(name)
            about.size = len(data)
            tar.addfile(about, io.BytesIO(data))
    return packed.getvalue(), str(entry["digest"])


@dataclass(frozen=True)
class Archive:
    """An image in a file, and digests: its manifest's, its only layer's, and that layer's when unpacked."""

    path: Path
    digest: str
    layer: str
    diff: str


def archive(path: Path) -> Archive:
    """Make an image and write it to a file, as `oci-archive` names it."""
    packed, digest = image()
    path.write_bytes(packed)
    with tarfile.open(path) as tar:
        files = {file.name: tar.extractfile(file) for file in tar}
        manifest = json.load(files[_place(digest)])
        config = json.load(files[_place(manifest["config"]["digest"])])
    return Archive(path, digest, manifest["layers"][0]["digest"], config["rootfs"]["diff_ids"][0])


def _place(digest: str) -> str:
    return f"blobs/{digest.replace(':', '/')}"


def _about(kind: str, data: bytes) -> dict[str, object]:
    return {"mediaType": kind, "digest": f"sha256:{hashlib.sha256(data).hexdigest()}", "size": len(data)}


def push(node: Fresh, registry: str, name: str) -> str:
    """Make an image and push it from this node with skopeo; return the digest of its manifest."""
    packed, digest = image()
    node.put(packed, "/tmp/image.tar")
    install = "sudo apt-get -qq -o DPkg::Lock::Timeout=200 install --no-install-recommends skopeo"
    node.read(f"command -v skopeo || {{ sudo apt-get -qq update; {install}; }}")
    node.read(
        "rm -rf /tmp/image && mkdir /tmp/image && tar -xf /tmp/image.tar -C /tmp/image && skopeo copy --quiet"
        f" --insecure-policy --dest-tls-verify=false oci:/tmp/image:1 docker://{registry}/{name}"
    )
    return digest


def pulled(node: Fresh, name: str) -> str:
    """Pull an image on this node; return the digest that it got."""
    return node.read(
        f"{PULL} {name} > /dev/null && sudo ctr images ls name=={name} | awk 'NR == 2 {{print $3}}'"
    )
