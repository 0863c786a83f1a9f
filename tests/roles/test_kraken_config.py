"""Kraken's configuration, byte for byte; refused is what Kraken would ignore, or lose images by."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import yaml

PLUGIN = Path(__file__).resolve().parents[2] / "playbooks" / "filter_plugins" / "kraken_config.py"
GOLDEN = Path(__file__).with_name("golden")
COMPONENTS = ("agent", "origin", "tracker", "build-index", "proxy")


def _load() -> ModuleType:
    spec = importlib.util.spec_from_file_location("kraken_config", PLUGIN)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


kraken = _load()


def settings(**changed: Any) -> dict[str, Any]:
    """What a site of three servers with S3 says."""
    hosts = [f"infra{number}.site.example" for number in (1, 2, 3)]
    return {
        "cache_root": "/var/cache/kraken",
        "log_root": "/var/log/kraken",
        "nic_gbit": 100.0,
        "nic_share": 0.5,
        "origins": [f"{host}:15002" for host in hosts],
        "trackers": [f"{host}:15003" for host in hosts],
        "build_indexes": [f"{host}:15004" for host in hosts],
        "allowed_cidrs": ["127.0.0.1", "172.17.0.1"],
        "backend": {"kind": "s3", "bucket": "images", "region": "site", "endpoint": "https://s3.site.example",
                    "username": "kraken", "force_path_style": True},
        **changed,
    }  # fmt: skip


def render(component: str, **changed: Any) -> dict[str, Any]:
    read = yaml.safe_load(kraken.render(settings(**changed), component))
    assert isinstance(read, dict)
    return read


@pytest.mark.parametrize("component", COMPONENTS)
def test_the_configuration_of_each_component_is_this(component):
    wanted = (GOLDEN / f"kraken-{component}.yaml").read_text(encoding="utf-8")
    assert kraken.render(settings(), component) == wanted


@pytest.mark.parametrize("component", COMPONENTS)
def test_with_tls_every_component_has_all_that_kraken_asks_for(component):
    names = [f"{side}_{part}" for side in ("server", "client") for part in ("cert", "key", "passphrase")]
    tls = {"ca": "/etc/kraken/tls/ca.pem"} | {name: f"/etc/kraken/tls/{name}" for name in names}
    read = render(component, tls=tls)["tls"]
    assert read["cas"] == [{"path": "/etc/kraken/tls/ca.pem"}]
    assert read["server"]["passphrase"] == {"path": "/etc/kraken/tls/server_passphrase"}
    assert "disabled" not in read["client"]


def test_a_key_that_kraken_does_not_know_is_refused_by_its_full_name():
    extra = {"agent": {"scheduler": {"conn": {"bandwidths": {"enable": True}}}}}
    with pytest.raises(ValueError, match=r"agent does not know scheduler\.conn\.bandwidths$"):
        kraken.render(settings(extra=extra), "agent")
    backends = [{"namespace": ".*", "backend": {"testfs": {}}, "must_be_ready": True}]
    with pytest.raises(ValueError, match=r"backends\[0\]\.must_be_ready"):
        kraken.render(settings(extra={"origin": {"backends": backends}}), "origin")


def test_a_key_that_kraken_knows_goes_over_ours():
    extra = {"agent": {"scheduler": {"connstate": {"max_open_conn": 3}}}}
    read = render("agent", extra=extra)["scheduler"]
    assert read["connstate"]["max_open_conn"] == 3
    assert read["dispatch"]["piece_request_policy"] == "rarest_first"


def test_a_registry_is_no_backend():
    backends = [{"namespace": ".*", "backend": {"registry_blob": {"address": "registry:5000"}}}]
    with pytest.raises(ValueError, match="registry_blob loses OCI images"):
        kraken.render(settings(extra={"origin": {"backends": backends}}), "origin")


@pytest.mark.parametrize(
    ("nic", "piece", "connections", "limit"),
    [(1, "512KB", 4, 500_000_000), (10, "1MB", 10, 5_000_000_000), (25, "4MB", 10, 12_500_000_000),
     (400, "8MB", 10, 200_000_000_000)],
)  # fmt: skip
def test_pieces_connections_and_bandwidth_follow_from_the_network_card(nic, piece, connections, limit):
    read = render("origin", nic_gbit=nic)
    assert read["metainfogen"]["piece_lengths"] == {0: piece}
    assert read["scheduler"]["connstate"]["max_open_conn"] == connections
    assert read["scheduler"]["conn"]["bandwidth"]["egress_bits_per_sec"] == limit


def test_trackers_remember_peers_themselves_or_share_a_redis():
    assert render("tracker")["peerstore"] == {"local": {"ttl": "5h"}}
    assert render("tracker", redis="redis:6379")["peerstore"]["redis"]["addr"] == "redis:6379"


def test_tags_are_written_through_and_rehearsals_use_a_testfs():
    read = render("build-index", backend={"kind": "file", "address": "infra1:14000"})
    assert read["tag_store"] == {"write_through": True}
    assert read["backends"][0]["backend"]["testfs"]["name_path"] == "docker_tag"


def test_an_agent_falls_back_to_a_registry_only_where_one_is_named():
    assert "registry_backup" not in render("agent")
    assert render("agent", registry_backup="registry:5000")["registry_backup"] == "registry:5000"


def test_ansible_renders_the_same_through_the_role_and_says_what_is_wrong():
    """The filter as Ansible calls it: with its own kinds of text, and with its own error."""
    from ansible.errors import AnsibleFilterError

    given = kraken.FilterModule().filters()["kraken_config"]
    assert given(settings(), "proxy") == (GOLDEN / "kraken-proxy.yaml").read_text(encoding="utf-8")
    with pytest.raises(AnsibleFilterError, match="setting 'trackers' is missing"):
        given({name: value for name, value in settings().items() if name != "trackers"}, "agent")
