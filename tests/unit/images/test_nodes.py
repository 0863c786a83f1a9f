"""What nodes hold of a container image, through a containerd that answers as ctr does."""

from __future__ import annotations

import hashlib

import pytest

from provision.images.errors import PullFailed
from provision.images.nodes import Holding, ImageNode, compare, each, holding, pull
from provision.images.registry import Image, Name
from provision.ssh import SshResult

NAME = Name("team/train", "1")
BLOBS = {f"sha256:{hashlib.sha256(data).hexdigest()}": data for data in (b"manifest", b"config", b"layer")}
MANIFEST, CONFIG, LAYER = BLOBS
IMAGE = Image(MANIFEST, (CONFIG, LAYER), 11)


class Containerd:
    """A node's containerd: what it holds, what its disk has made of it."""

    def __init__(
        self, digest: str = MANIFEST, stored: dict[str, bytes] | None = None, unreadable: str = ""
    ) -> None:
        self.digest = digest
        self.stored = BLOBS if stored is None else stored
        self.unreadable = unreadable
        self.configuration = ""
        self.asked: list[str] = []

    async def run(self, words: list[str], _timeout_s: float) -> SshResult:
        line = " ".join(words)
        self.asked.append(line)
        if " images list " in line:
            head = "REF TYPE DIGEST SIZE PLATFORMS LABELS\n"
            row = f"registry:5000/team/train:1 application/x {self.digest} 11.0 B linux/amd64 -\n"
            return SshResult(0, (head + (row if self.digest else "")).encode(), b"")
        if line == "containerd config dump":
            return SshResult(0, self.configuration.encode(), b"")
        if " content list " in line:
            return SshResult(0, "\n".join(self.stored).encode(), b"")
        if " content get " in line:
            blob = next(blob for blob in self.stored if blob in line)
            if blob == self.unreadable:  # the pipe ends as sha256sum does, which was given nothing
                return SshResult(0, f"{hashlib.sha256(b'').hexdigest()}  -\n".encode(), b"ctr: gone\n")
            return SshResult(0, f"{hashlib.sha256(self.stored[blob]).hexdigest()}  -\n".encode(), b"")
        return SshResult(0, b"", b"") if self.digest else SshResult(1, b"", b"ctr: connection refused\n")


async def compared(containerd: Containerd) -> Holding:
    node = ImageNode("n1", containerd.run)

    async def work(one: ImageNode) -> Holding:
        return await compare(one, "registry:5000", NAME, IMAGE, "k8s.io")

    (found,) = await each([node], work, 4)
    return found


async def test_a_node_with_the_registrys_bytes_is_equal() -> None:
    assert await compared(Containerd()) == Holding("n1", MANIFEST)


@pytest.mark.parametrize(
    ("containerd", "said"),
    [
        (Containerd(stored={**BLOBS, LAYER: b"rotten"}), "has other bytes"),
        (Containerd(unreadable=LAYER), "was not read: ctr: gone"),
        (Containerd(digest="sha256:" + "0" * 64), "the registry has"),
        (Containerd(digest=""), "connection refused"),
        (Containerd(stored={}), "no manifest in the node's store"),
    ],
)
async def test_whatever_differs_is_said(containerd: Containerd, said: str) -> None:
    assert said in (await compared(containerd)).why


async def test_a_pull_that_got_another_image_than_the_registry_names_has_failed() -> None:
    containerd = Containerd(digest="sha256:" + "0" * 64)
    with pytest.raises(PullFailed, match=r"team/train:1 is sha256:0{64}"):
        await pull(ImageNode("n1", containerd.run), "registry:5000", NAME, IMAGE, "k8s.io")


async def test_pulls_go_through_the_sites_own_registry_only() -> None:
    containerd = Containerd()
    await compared(containerd)
    (pull,) = [line for line in containerd.asked if " pull " in line]
    assert "--hosts-dir /etc/containerd/certs.d registry:5000/team/train:1" in pull


_CRI_1 = '[plugins."io.containerd.grpc.v1.cri".containerd]\nsnapshotter = "native"'
_CRI_2 = "[plugins.'io.containerd.cri.v1.images']\nsnapshotter = 'native'"


@pytest.mark.parametrize(
    ("configuration", "namespace", "option"),
    [
        (_CRI_1, "k8s.io", " --snapshotter native "),
        (_CRI_2, "k8s.io", " --local --snapshotter native "),
        ('disabled_plugins = ["cri"]', "k8s.io", " "),
        (_CRI_1, "default", " "),
    ],
    ids=["containerd-1", "containerd-2", "without-pods", "other-namespace"],
)
async def test_pods_images_are_unpacked_where_containerd_looks_for_pods(
    configuration: str, namespace: str, option: str
) -> None:
    containerd = Containerd()
    containerd.configuration = configuration
    await pull(ImageNode("n1", containerd.run), "registry:5000", NAME, IMAGE, namespace)
    (line,) = [line for line in containerd.asked if " pull " in line]
    assert line.endswith(f"/etc/containerd/certs.d{option}registry:5000/team/train:1")


async def test_a_configuration_that_cannot_be_read_is_said() -> None:
    containerd = Containerd()
    containerd.configuration = "containerd: no"
    assert (await compared(containerd)).why.startswith("containerd's configuration was not read: ")


async def test_a_node_without_the_image_holds_nothing() -> None:
    assert await holding(
        ImageNode("n1", Containerd(digest="").run), "registry:5000", NAME, "k8s.io"
    ) == Holding("n1")


@pytest.mark.parametrize("text", ["", "UPPER/case", "a b", "host/a:tag:tag", "a@sha256:12", "-a", "a;b"])
def test_what_is_no_name_is_no_name(text: str) -> None:
    assert Name.parse(text) is None


def test_a_name_without_a_tag_means_latest() -> None:
    assert Name.parse("team/train") == Name("team/train", "latest")
    assert str(Name.parse(f"team/train@{MANIFEST}")) == f"team/train@{MANIFEST}"
