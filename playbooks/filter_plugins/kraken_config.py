"""Renders the configuration of each Kraken component from typed settings, and refuses unknown keys."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import yaml
from ansible.errors import AnsibleFilterError

Tree = dict[str, Any]

DOCUMENTATION = r"""
name: kraken_config
short_description: Renders the configuration of a Kraken component
version_added: "2026.11.0"
description:
  - Kraken ignores a key that it does not know. So a misspelt one is refused here, in what we write and in
    what a site adds, before it reaches a node.
options:
  _input:
    description: The settings of the role, see its argument_specs.
    type: dict
    required: true
  component:
    description: agent, origin, tracker, build-index or proxy.
    type: str
    required: true
author: Muster
"""

# A set of keys that end in a value, or a mapping where they go on. ANY: whatever stands below is not
# Kraken's own (the logger's, the registry library's, names that a site chooses).
ANY = "any"
_CLEANUP = dict.fromkeys(
    ("disabled", "interval", "tti", "ttl", "aggressive_threshold", "aggressive_ttL",
     "aggressive_lower_threshold"), None,
)  # fmt: skip
_BANDWIDTH = dict.fromkeys(("enable", "egress_bits_per_sec", "ingress_bits_per_sec", "token_size"))
_HOSTS = dict.fromkeys(("dns", "static", "ttl"))
_FILTER = dict.fromkeys(("fails", "passes", "timeout"))
_PASSIVE = {"hosts": _HOSTS, "healthcheck": dict.fromkeys(("fails", "fail_timeout"))}
_ACTIVE = {
    "hosts": _HOSTS,
    "healthcheck": {"filter": _FILTER, "monitor": {"interval": None}, "disabled": None},
}
_RING = dict.fromkeys(
    ("max_replica", "refresh_interval", "membership_wait_timeout", "membership_wait_interval")
)
_LOG = dict.fromkeys(("level", "disable", "service_name", "path", "encoding", "timeEncoder"))
_LISTENER = {"listener": dict.fromkeys(("net", "addr"))}
_PATH = {"path": None}
_PAIR = {"disabled": None, "cert": _PATH, "key": _PATH, "passphrase": _PATH}
_RETRY = dict.fromkeys(
    ("incoming_buffer", "retry_buffer", "num_incoming_workers", "num_retry_workers", "max_task_throughput",
     "retry_interval", "poll_retries_interval", "workqueue_metrics_emit_interval"),
) | {
    "sync_retry_backoff": dict.fromkeys(
        ("enabled", "initial_interval", "randomization_factor", "multiplier", "max_interval", "max_retries")
    )
}  # fmt: skip
_SCHEDULER = dict.fromkeys(
    ("seeder_tti", "leecher_tti", "conn_tti", "conn_ttl", "preemption_interval", "emit_stats_interval",
     "disable_preemption", "probe_timeout"),
) | {
    "connstate": dict.fromkeys(
        ("max_open_conn", "max_mutual_conn", "disable_blacklist", "blacklist_duration")
    ),
    "conn": dict.fromkeys(("handshake_timeout", "sender_buffer_size", "receiver_buffer_size"))
    | {"bandwidth": _BANDWIDTH},
    "dispatch": dict.fromkeys(
        ("piece_request_min_timeout", "piece_request_timeout_per_mb", "piece_request_policy",
         "pipeline_limit", "origin_pipeline_limit", "endgame_threshold", "disable_endgame")
    ),
    "torrentlog": _LOG,
    "log": _LOG,
}  # fmt: skip
_STORE = dict.fromkeys(("cache_dir", "read_part_size", "write_part_size")) | {"cache_cleanup": _CLEANUP}
_UPLOADS = _STORE | {"upload_dir": None, "upload_cleanup": _CLEANUP}
_CASTORE = _UPLOADS | {
    "volumes": ANY, "capacity": None, "skip_hash_verification": None,
    "memory_cache": dict.fromkeys(
        ("enabled", "max_size", "drain_workers", "drain_max_retries", "ttl", "ttl_interval")
    ),
}  # fmt: skip
_BACKENDS = {"namespace": None, "backend": ANY, "bandwidth": _BANDWIDTH, "must_ready": None}
_COMMON: Tree = {
    "zap": ANY,
    "metrics": {
        "backend": None,
        "statsd": dict.fromkeys(("host_port", "prefix")),
        "m3": dict.fromkeys(("host_port", "service", "env")),
    },
    "nginx": dict.fromkeys(
        ("binary", "root", "name", "template_path", "cache_dir", "log_dir", "stdout_log_path",
         "access_log_path", "error_log_path", "proxy_timeout", "listen_backlog")
    ),
    "tls": {"name": None, "server": _PAIR, "client": _PAIR, "cas": [_PATH]},
}  # fmt: skip
_EVENTS = {"network_event": dict.fromkeys(("log_path", "enabled"))}
_STORED: Tree = {
    "backend_manager": {"log": _LOG}, "backends": [_BACKENDS], "auth": ANY, "writeback": _RETRY,
    "localdb": {"source": None},
}  # fmt: skip

KNOWN: dict[str, Tree] = {
    "agent": _COMMON | _EVENTS | {
        "store": _STORE | {"download_dir": None, "download_cleanup": _CLEANUP},
        "registry": {"docker": ANY},
        "scheduler": _SCHEDULER,
        "peer_id_factory": None,
        "tracker": _PASSIVE | {"hashring": _RING},
        "build_index": _PASSIVE,
        "agentserver": {"readiness_cache_ttl": None},
        "registry_backup": None,
        "allowed_cidrs": None,
        "container_runtime": {
            "docker": dict.fromkeys(("docker_host", "docker_scheme", "docker_version")),
            "containerd": {"address": None},
        },
    },
    "origin": _COMMON | _EVENTS | _STORED | {
        "cluster": _HOSTS,
        "hashring": _RING,
        "healthcheck": _FILTER,
        "blobserver": _LISTENER | {"duplicate_write_back_stagger": None},
        "castore": _CASTORE,
        "scheduler": _SCHEDULER,
        "peer_id_factory": None,
        "metainfogen": {"piece_lengths": ANY},
        "blobrefresh": {"size_limit": None},
    },
    "tracker": _COMMON | {
        "peerstore": {
            "local": {"ttl": None},
            "redis": dict.fromkeys(
                ("enabled", "addr", "dial_timeout", "read_timeout", "write_timeout", "peer_set_window_size",
                 "max_peer_set_windows", "max_idle_conns", "max_active_conns", "idle_conn_timeout")
            ),
        },
        "originstore": dict.fromkeys(
            ("locations_ttl", "locations_error_ttl", "origin_context_ttl", "origin_unavailable_ttl")
        ),
        "trackerserver": _LISTENER
        | dict.fromkeys(("get_metainfo_limit", "announce_limit", "announce_interval")),
        "peerhandoutpolicy": {"priority": None},
        "origin": _ACTIVE,
    },
    "build-index": _COMMON | _STORED | {
        "tagserver": _LISTENER | dict.fromkeys(("duplicate_replicate_stagger", "duplicate_put_stagger")),
        "remotes": ANY,
        "tag_replication": _RETRY,
        "tag_types": [dict.fromkeys(("namespace", "type"))],
        "origin": _ACTIVE,
        "cluster": _ACTIVE,
        "tag_store": {"write_through": None},
        "store": _UPLOADS,
    },
    "proxy": _COMMON | {
        "castore": _CASTORE,
        "registry": {"docker": ANY},
        "build_index": _ACTIVE,
        "origin": _ACTIVE,
        "registryoverride": _LISTENER,
        "server": _LISTENER | dict.fromkeys(("prefetch_min_blob_size", "prefetch_max_blob_size")),
    },
}  # fmt: skip

# Kraken reads manifests of a registry without saying which kinds it takes, and a registry answers
# OCI manifests with 404; what is pushed into such a namespace is lost later, without a word.
_REFUSED_BACKENDS = ("registry_blob", "registry_tag")


def unknown_keys(config: Mapping[str, Any], known: Any, above: str = "") -> list[str]:
    """Return the dotted names of all keys that Kraken does not document."""
    found = []
    for key, value in config.items():
        name = f"{above}.{key}" if above else str(key)
        if key not in known:
            found.append(name)
            continue
        below = known[key]
        if isinstance(below, list):
            for number, entry in enumerate(value):
                found += unknown_keys(entry, below[0], f"{name}[{number}]")
        elif isinstance(below, Mapping) and isinstance(value, Mapping):
            found += unknown_keys(value, below, name)
    return found


def swarm(nic_gbit: float, share: float) -> Tree:
    """Return how pieces travel for a network card: limits in bits a second, and how much is in flight.

    Where the seed is slow, few and small pieces in flight send fewer copies of the same piece.
    """
    limit = int(nic_gbit * share * 10**9)
    slow = nic_gbit < 10
    return {
        "conn": {"bandwidth": {"enable": True, "egress_bits_per_sec": limit, "ingress_bits_per_sec": limit}},
        "connstate": {"max_open_conn": 4 if slow else 10},
        "dispatch": {"piece_request_policy": "rarest_first", "origin_pipeline_limit": 2 if slow else 5},
    }


def piece_length(nic_gbit: float) -> str:
    """Return the size of a piece for a network card."""
    sizes = ((1, "512KB"), (10, "1MB"), (25, "4MB"))
    return next((size for limit, size in sizes if nic_gbit <= limit), "8MB")


def render(settings: Mapping[str, Any], component: str) -> str:
    """Return the YAML of a component. Raises ValueError for unknown keys and refused backends."""
    if component not in KNOWN:
        raise ValueError(f"Kraken has no component {component!r}, only {', '.join(KNOWN)}")
    config = _shared(settings, component)
    config = _merged(config, _COMPONENTS[component](settings))
    config = _merged(config, (settings.get("extra") or {}).get(component) or {})
    strange = unknown_keys(config, KNOWN[component])
    if strange:
        raise ValueError(f"Kraken's {component} does not know {', '.join(strange)}")
    for entry in config.get("backends", []):
        refused = [kind for kind in entry["backend"] if kind in _REFUSED_BACKENDS]
        if refused:
            raise ValueError(f"{refused[0]} loses OCI images and what is pushed; use s3 or testfs")
    return yaml.safe_dump(_plain(config), sort_keys=True, default_flow_style=False, width=100)


def _plain(value: Any) -> Any:
    """Return the same without Ansible's own kinds of text and lists, which YAML does not know."""
    if isinstance(value, Mapping):
        return {_plain(key): _plain(below) for key, below in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(entry) for entry in value]
    return next((kind(value) for kind in (bool, int, float, str) if isinstance(value, kind)), value)


def _merged(below: Mapping[str, Any], above: Mapping[str, Any]) -> Tree:
    merged = dict(below)
    for key, value in above.items():
        old = merged.get(key)
        both = isinstance(old, Mapping) and isinstance(value, Mapping)
        merged[key] = _merged(old, value) if both else value
    return merged


def _shared(settings: Mapping[str, Any], component: str) -> Tree:
    name = f"kraken-{component}"
    logs, cache = (f"{settings[root]}/{name}" for root in ("log_root", "cache_root"))
    told = {"messageKey": "message", "levelKey": "level", "timeKey": "ts", "callerKey": "caller",
            "levelEncoder": "capital", "timeEncoder": "iso8601", "durationEncoder": "seconds",
            "callerEncoder": "short"}  # fmt: skip
    statsd = settings.get("statsd")
    return {
        "zap": {
            "level": settings.get("log_level", "info"), "encoding": "console", "disableStacktrace": True,
            "outputPaths": ["stdout"], "errorOutputPaths": ["stdout"], "encoderConfig": told,
        },
        "metrics": {"backend": "statsd", "statsd": {"host_port": statsd, "prefix": name}}
        if statsd else {"backend": "disabled"},
        "nginx": {"name": name, "cache_dir": f"{cache}/nginx/", "log_dir": f"{logs}/"},
        "tls": _tls(settings.get("tls") or {}),
    }  # fmt: skip


def _tls(tls: Mapping[str, Any]) -> Tree:
    if not tls:
        return {"server": {"disabled": True}, "client": {"disabled": True}}
    # Kraken's nginx does not start without a file for each of them.
    pairs = {
        side: {part: {"path": tls[f"{side}_{part}"]} for part in ("cert", "key", "passphrase")}
        for side in ("server", "client")
    }
    return {"name": tls.get("name", "kraken"), "cas": [{"path": tls["ca"]}], **pairs}


def _socket(component: str, name: str) -> Tree:
    return {"net": "unix", "addr": f"/run/kraken-{component}/{name}.sock"}


def _registry(component: str) -> Tree:
    http = _socket(component, "registry")
    return {"docker": {"version": 0.1, "log": {"level": "error"}, "http": http}}


def _static(hosts: list[str]) -> Tree:
    return {"hosts": {"static": list(hosts)}}


def _place(settings: Mapping[str, Any], component: str, *names: str) -> Tree:
    root = f"{settings['cache_root']}/kraken-{component}"
    return {f"{name}_dir": f"{root}/{name}/" for name in names}


def _cleanup(settings: Mapping[str, Any]) -> Tree:
    return {
        "interval": "30m", "tti": settings.get("idle_time", "6h"), "ttl": settings.get("keep_time", "24h"),
        "aggressive_threshold": 80, "aggressive_lower_threshold": 60,
    }  # fmt: skip


def _stores(settings: Mapping[str, Any], what: str) -> Tree:
    """Return where blobs (at the origin) or tags (at the build-index) are kept."""
    backend = settings["backend"]
    must = {"namespace": ".*", "must_ready": True}
    blobs = what == "blobs"
    if backend["kind"] == "file":
        path = "identity" if blobs else "docker_tag"
        client = {"testfs": {"addr": backend["address"], "root": what, "name_path": path}}
        return {"backends": [must | {"backend": client}]}
    s3 = {
        name: backend[name]
        for name in ("region", "bucket", "endpoint", "disable_ssl", "force_path_style", "username")
        if name in backend
    }
    s3["root_directory"] = backend.get("root_directory", "/kraken")
    s3["name_path"] = "sharded_docker_blob" if blobs else "docker_tag"
    return {"backends": [must | {"backend": {"s3": s3}}]}


def _agent(settings: Mapping[str, Any]) -> Tree:
    torrents = {"service_name": "kraken-agent", "disable": True}
    return {
        "store": _place(settings, "agent", "download", "cache")
        | {"download_cleanup": _cleanup(settings), "cache_cleanup": _cleanup(settings)},
        "registry": _registry("agent"),
        "peer_id_factory": "addr_hash",
        "scheduler": swarm(settings["nic_gbit"], settings["nic_share"]) | {"torrentlog": torrents},
        "tracker": _static(settings["trackers"]),
        "build_index": _static(settings["build_indexes"]),
        "allowed_cidrs": list(settings["allowed_cidrs"]),
        **({"registry_backup": settings["registry_backup"]} if settings.get("registry_backup") else {}),
    }


def _origin(settings: Mapping[str, Any]) -> Tree:
    lengths = {0: settings.get("piece_length") or piece_length(settings["nic_gbit"])}
    return _stores(settings, "blobs") | {
        "cluster": {"static": list(settings["origins"])},
        "hashring": {"max_replica": min(3, len(settings["origins"]))},
        "blobserver": {"listener": _socket("origin", "blobs")},
        "castore": _place(settings, "origin", "upload", "cache")
        | {"upload_cleanup": _cleanup(settings), "cache_cleanup": _cleanup(settings)},
        "scheduler": swarm(settings["nic_gbit"], settings["nic_share"]) | {"torrentlog": {"disable": True}},
        "peer_id_factory": "addr_hash",
        "metainfogen": {"piece_lengths": lengths},
        "localdb": {"source": f"{settings['cache_root']}/kraken-origin/origin.db"},
        "writeback": {"retry_interval": "30s"},
    }


def _tracker(settings: Mapping[str, Any]) -> Tree:
    redis = settings.get("redis")
    peers = {"redis": {"enabled": True, "addr": redis}} if redis else {"local": {"ttl": "5h"}}
    return {
        "peerstore": peers,
        "peerhandoutpolicy": {"priority": "completeness"},
        "trackerserver": {"listener": _socket("tracker", "tracker"), "announce_interval": "3s"},
        "origin": _static(settings["origins"]),
    }


def _build_index(settings: Mapping[str, Any]) -> Tree:
    return _stores(settings, "tags") | {
        "cluster": _static(settings["build_indexes"]),
        "origin": _static(settings["origins"]),
        "store": _place(settings, "build-index", "upload", "cache"),
        # A push is only answered when the tag lies in the backend.
        "tag_store": {"write_through": True},
        "tag_types": [{"namespace": ".*", "type": "docker"}],
        "tagserver": {"listener": _socket("build-index", "tags")},
        "localdb": {"source": f"{settings['cache_root']}/kraken-build-index/index.db"},
        "remotes": {},
        "writeback": {"retry_interval": "30s"},
    }


def _proxy(settings: Mapping[str, Any]) -> Tree:
    return {
        "castore": _place(settings, "proxy", "upload", "cache") | {"capacity": 1024},
        "registry": _registry("proxy"),
        "registryoverride": {"listener": _socket("proxy", "override")},
        "server": {"listener": _socket("proxy", "server")},
        "origin": _static(settings["origins"]),
        "build_index": _static(settings["build_indexes"]),
    }


_COMPONENTS: dict[str, Callable[[Mapping[str, Any]], Tree]] = {
    "agent": _agent,
    "origin": _origin,
    "tracker": _tracker,
    "build-index": _build_index,
    "proxy": _proxy,
}


def kraken_config(settings: Mapping[str, Any], component: str) -> str:
    """Render as a filter of Ansible."""
    try:
        return render(settings, component)
    except (KeyError, ValueError) as error:
        what = f"setting {error} is missing" if isinstance(error, KeyError) else str(error)
        raise AnsibleFilterError(f"kraken_config: {what}") from error


class FilterModule:
    """What Ansible looks for in a file of filters."""

    def filters(self) -> dict[str, Callable[..., object]]:
        return {"kraken_config": kraken_config}
