"""A small site on four lab nodes: one serves, one has (fake) GPUs, one runs Kraken, all pull images."""

from __future__ import annotations

import hashlib
import urllib.request
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lab.nodes.sources import machine_archive
from provision.ansible import PlayEvent, PlayResult, Transport
from provision.ansible_bundle import CONTENTS, pack
from tests.roles import stubs
from tests.roles.conftest import NET, PLAYBOOKS, Fresh, Lab

SNAPSHOT = "2026-11-30"
INFRA_GROUPS = tuple(
    f"role_{name}" for name in ("apt_mirror", "file_mirror", "image_registry", "monitoring_server")
)
STAND_IN = Path(__file__).with_name("kraken_stand_in.py")
STAND_IN_SHA256 = hashlib.sha256(STAND_IN.read_bytes()).hexdigest()
ENGINE = {
    "container_runtime_engines": ["containerd"],
    "container_runtime_snapshotter": "native",  # a lab node may not mount overlay on overlay
    "container_runtime_nvidia": False,
}


@dataclass(frozen=True)
class LabSite:
    """The nodes, what each is configured with, and how the first run went."""

    infra: Fresh
    gpu: Fresh
    kraken: Fresh
    puller: Fresh
    repository: stubs.Repository
    variables: dict[str, dict[str, Any]]
    first: dict[str, PlayResult]
    seen: dict[str, list[PlayEvent]]

    @property
    def nodes(self) -> tuple[Fresh, ...]:
        return self.infra, self.gpu, self.kraken, self.puller

    def again(self, node: Fresh, *, check: bool = False) -> PlayResult:
        """Run what the node was configured with once more."""
        return _configure(self, node, check=check)[0]

    def on_gpu_itself(self, *, check: bool = False) -> PlayResult:
        """Have the node with GPUs run what it was configured with itself."""
        folder = STAND_IN.parent  # a path is looked for on the node
        self.gpu.read(f"sudo mkdir -p {folder}")
        self.gpu.put(STAND_IN.read_bytes(), str(STAND_IN))
        variables = self.variables[self.gpu.spec.name]
        playbook = PLAYBOOKS / "site.yml"
        return self.gpu.play(playbook, check=check, transport=Transport.WORKER, **variables)[0]


def _configure(site: LabSite, node: Fresh, *, check: bool = False) -> tuple[PlayResult, list[PlayEvent]]:
    variables = site.variables[node.spec.name]
    if node is site.infra:
        return node.play(PLAYBOOKS / "infra.yml", check=check, groups=INFRA_GROUPS, **variables)
    if node is site.gpu:
        return node.play(PLAYBOOKS / "site.yml", check=check, **variables)
    names = ["container_runtime", "registry_client"] + (["kraken_server"] if node is site.kraken else [])
    return node.roles(*names, check=check, **variables), []


@contextmanager
def brought_up(lab: Lab, folder: Path) -> Iterator[LabSite]:
    """Deploy the four nodes and configure them: the one that serves first, then the others."""
    infra, gpu, kraken, puller = lab.deploy(1, 2, 3, 4)
    vendor = folder / "vendor"
    vendor.mkdir()
    repository = stubs.Repository(vendor)
    repository.add(*stubs.STUBS)
    bundle = folder / "mirror.tar"
    digest = pack(CONTENTS["mirror"], bundle)
    with stubs.served(vendor, NET.gateway) as url:
        variables = {
            infra.spec.name: _infra_variables(infra, url) | ENGINE | _client(infra)
            | {"file_mirror_bundle": str(bundle), "file_mirror_sha256": digest},
            kraken.spec.name: _kraken_variables(kraken) | ENGINE | _client(infra),
            puller.spec.name: ENGINE | _client(infra),
        }  # fmt: skip
        site = LabSite(infra, gpu, kraken, puller, repository, variables, {}, {})
        gpu.read(f"sudo sh -c '{_quoted(stubs.FAKE_TOOLS)}'")
        with ThreadPoolExecutor(2) as threads:
            for node, (result, seen) in zip(
                (infra, kraken, puller),
                threads.map(lambda one: _configure(site, one), (infra, kraken, puller)),
                strict=True,
            ):
                site.first[node.spec.name], site.seen[node.spec.name] = result, seen
                assert result.ok, result
        variables[gpu.spec.name] = _gpu_variables(infra, kraken) | ENGINE
        # The role that serves containers comes after it on the node that serves, too.
        client = infra.roles("container_runtime", "registry_client", **variables[infra.spec.name])
        assert client.ok, client
        site.first[gpu.spec.name], site.seen[gpu.spec.name] = _configure(site, gpu)
        assert site.first[gpu.spec.name].ok, site.first[gpu.spec.name]
        yield site


def _quoted(script: str) -> str:
    return script.replace("'", "'\"'\"'")


def _client(infra: Fresh) -> dict[str, Any]:
    return {"registry_client_mirrors": [{"url": f"http://{infra.spec.address}:5000"}]}


def _infra_variables(infra: Fresh, vendor: str) -> dict[str, Any]:
    source = {"name": "vendor", "url": vendor, "suite": "./", "components": [], "architectures": ["amd64"]}
    return {
        "base_time_servers": [NET.gateway],
        "apt_mirror_snapshot": SNAPSHOT,
        "apt_mirror_sources": [source],
        "image_registry_writers": [infra.spec.address, "127.0.0.1"],
        "file_mirror_reserve": 1_000_000,
        "monitoring_server_logs": True,
        "monitoring_server_muster": "127.0.0.1:9199",
    }


def _kraken_variables(node: Fresh) -> dict[str, Any]:
    here = node.spec.address
    components = ("origin", "build-index", "tracker", "proxy")
    return {
        "kraken_server_programs": {
            name: {"source": str(STAND_IN), "sha256": STAND_IN_SHA256} for name in components
        },
        "kraken_server_origins": [f"{here}:15002"],
        "kraken_server_trackers": [f"{here}:15003"],
        "kraken_server_build_indexes": [f"{here}:15004"],
        "kraken_server_backend": {"kind": "file", "address": f"{here}:14000"},
    }


def _gpu_variables(infra: Fresh, kraken: Fresh) -> dict[str, Any]:
    return {
        "base_time_servers": [NET.gateway],
        "base_apt_direct": [infra.spec.address],
        "base_apt_sources": _sources(infra.spec.address),
        "muster_hardware": ["connectx", "gpu", "nvswitch"],
        "muster_services": ["container_runtime", "registry_client", "kraken_agent", "node_monitoring"],
        "nvidia_driver_version": stubs.DRIVER,
        "nvidia_driver_branch": stubs.BRANCH,
        "nvidia_driver_gpus_min": 2,
        "dcgm_version": stubs.DCGM,
        "nvidia_container_toolkit_version": stubs.TOOLKIT,
        "doca_ofed_version": stubs.DOCA,
        "doca_ofed_release": "OFED-stub-25.01",
        "node_monitoring_dcgm_packages": [f"dcgm-exporter={stubs.EXPORTER}"],
        "node_monitoring_logs_url": f"http://{infra.spec.address}:19532",
        "registry_client_mirrors": [{"url": f"http://{infra.spec.address}:5000"}],
        "kraken_agent_binary": str(STAND_IN),
        "kraken_agent_sha256": STAND_IN_SHA256,
        "kraken_agent_trackers": [f"{kraken.spec.address}:15003"],
        "kraken_agent_build_indexes": [f"{kraken.spec.address}:15004"],
    }


def _sources(infra: str) -> str:
    """Return the node's sources: the machine's own Debian, and the stubs from the site's mirror only."""
    with urllib.request.urlopen(f"http://{infra}:8080/muster.asc", timeout=10) as answer:
        key = answer.read().decode()
    indented = "\n".join(f" {line or '.'}" for line in key.strip().splitlines())
    stanzas = []
    for source in machine_archive().sources:
        uri = source.uri.replace("https:", "http:")  # nodes ask the lab's proxy in clear text
        text = f"Types: deb\nURIs: {uri}\nSuites: {source.suite}\nComponents: {' '.join(source.components)}\n"
        stanzas.append(f"{text}Signed-By: {source.signed_by}\n" if source.signed_by else text)
    vendor = f"Types: deb\nURIs: http://{infra}:8080/vendor\nSuites: stable\nComponents: main\n"
    return "\n".join([*stanzas, f"{vendor}Signed-By:\n{indented}\n"])
