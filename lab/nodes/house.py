"""What all namespace nodes of one lab share, and how it is built and torn down."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from lab.nodes.cgroup import Group, unified_hierarchy
from lab.nodes.firmware import Pace
from lab.nodes.image import build_layer, copy_sysctl
from lab.nodes.network import drop_bridge, raise_bridge, raise_inotify_limits
from lab.nodes.rootfs import ensure_rootfs
from lab.nodes.sources import Archive, machine_archive
from lab.spec import LabNet, LabPaths, cache_folder


@dataclass(frozen=True, slots=True)
class House:
    """Shared root file system layers, wire and control group."""

    net: LabNet
    layers: tuple[Path, ...]  # the lab's own over Debian, top first
    sysctl: Path
    cgroup: Path
    folder: Path  # one folder a node below it
    archive: Archive
    pace: Pace = field(default_factory=Pace)


def build_house(net: LabNet, paths: LabPaths) -> House:
    """Make what is missing; nodes that an earlier lab left running are killed first.

    Raises NoService when packages or the network's addresses cannot be had, Refused without cgroup v2.
    """
    cgroup = unified_hierarchy() / net.cgroup
    Group(cgroup).make()
    archive = machine_archive()
    rootfs = ensure_rootfs(archive, cache_folder(), paths.state)
    layer = build_layer(paths.state / "layer", rootfs, net, archive)
    sysctl = copy_sysctl(paths.state / "sysctl")
    raise_inotify_limits()
    raise_bridge(net)
    paths.nodes.mkdir(parents=True, exist_ok=True)
    return House(net, (layer, rootfs), sysctl, cgroup, paths.nodes, archive)


def tear_down(net: LabNet) -> bool:
    """Kill every node and remove wire and control group; False when a process would not die.

    Mounts and loop devices live in the nodes' own namespaces and go with them.
    """
    gone = Group(unified_hierarchy() / net.cgroup).remove()
    drop_bridge(net)
    return gone
