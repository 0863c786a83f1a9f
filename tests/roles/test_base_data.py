"""The data file system of the role `base`. A lab node has no disks of its own, so mdadm, blkid, mkfs
and mount are fakes that remember: this proves the role's decisions, not the tools."""

from __future__ import annotations

import shlex
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.roles.conftest import Fresh

pytestmark = [pytest.mark.lab, pytest.mark.timeout(600)]

SITE = Path(__file__).resolve().parents[2] / "playbooks" / "site.yml"
DISKS = ["/opt/disks/a", "/opt/disks/b"]
DATA = {"kind": "md", "name": "scratch", "devices": DISKS, "level": "0", "mount": "/data"}

# Each fake keeps what it was called with, and a device "holds" what its file says.
FAKES = r"""
set -eu
install -d /opt/disks /dev/md
: > /opt/disks/a; : > /opt/disks/b; rm -f /dev/md/scratch /opt/called
fake() {
  { echo '#!/bin/sh'; echo "echo \"$1 \$*\" >> /opt/called"; echo "$2"; } > "/usr/local/sbin/$1"
  chmod 755 "/usr/local/sbin/$1"
}
fake mdadm 'echo linux_raid_member | tee /opt/disks/a > /opt/disks/b; : > /dev/md/scratch'
fake blkid 'for last in "$@"; do :; done; [ -s "$last" ] || exit 2; echo "TYPE=$(cat "$last")"'
fake mkfs.ext4 'echo ext4 > "$1"'
[ -e /usr/bin/mount.real ] || mv /usr/bin/mount /usr/bin/mount.real
fake mount 'case "$*" in *md/scratch*) exec mount.real -t tmpfs data /data;; esac; exec mount.real "$@"'
mv /usr/local/sbin/mount /usr/bin/mount
"""


@pytest.fixture
def node(fresh: Callable[[int], Fresh]) -> Fresh:
    made = fresh(2)
    made.read(f"sudo sh -c {shlex.quote(FAKES)}")
    return made


def called(node: Fresh) -> list[str]:
    """Return the fake tools that were called, by name, in order; other mounts are not of interest."""
    return [line.split()[0] for line in node.read("cat /opt/called 2>/dev/null || true").splitlines()]


def test_with_fake_tools_an_array_is_made_once_and_nothing_that_holds_something_is_touched(node):
    node.read("echo xfs | sudo tee /opt/disks/b > /dev/null")
    refused, _ = node.play(SITE, base_data=DATA)
    assert (refused.failed_role, refused.failed_task) == (
        "base",
        "Refuse devices that are missing or hold something else",
    )
    assert "/opt/disks/b holds xfs; erase it first" in refused.message
    assert {"mdadm", "mkfs.ext4"}.isdisjoint(called(node))

    gone, _ = node.play(SITE, base_data=DATA | {"devices": [*DISKS, "/opt/disks/c"]})
    assert not gone.ok
    assert {"mdadm", "mkfs.ext4"}.isdisjoint(called(node))

    node.read("sudo truncate --size 0 /opt/disks/b")
    checked, _ = node.play(SITE, base_data=DATA, check=True)
    assert checked.ok, checked
    assert {"mdadm", "mkfs.ext4"}.isdisjoint(called(node))

    made, _ = node.play(SITE, base_data=DATA)
    assert made.ok, made
    assert node.read("systemctl is-active data.mount") == "active"
    assert node.read("systemctl is-enabled data.mount") == "enabled"
    assert [called(node).count(tool) for tool in ("mdadm", "mkfs.ext4")] == [1, 1]

    again, _ = node.play(SITE, base_data=DATA)
    assert (again.ok, again.changed) == (True, 0)
    assert [called(node).count(tool) for tool in ("mdadm", "mkfs.ext4")] == [1, 1]
