"""What goes wrong while a role runs: the error is clear, nothing is half installed, the next run heals.

Drivers are stub packages and hardware is fake tools (stubs.py); dpkg, apt, the disk and the reboot are real.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from provision.ansible import PlayOutcome
from tests.roles import stubs
from tests.roles.conftest import NET, Fresh, Lab

pytestmark = [pytest.mark.lab, pytest.mark.slow, pytest.mark.timeout(900)]

DRIVER = {
    "nvidia_driver_version": stubs.DRIVER,
    "nvidia_driver_branch": stubs.BRANCH,
    "nvidia_driver_gpus_min": 2,
}
INSTALLED = (
    "dpkg-query --show --showformat '${Package}=${db:Status-Abbrev}\\n' 'nvidia-*' 2> /dev/null || true"
)


@dataclass(frozen=True)
class Broken:
    """A node, and the source of packages that tests break."""

    node: Fresh
    repository: stubs.Repository
    line: str  # the source, as apt has it

    def install(self, **changed: Any):
        """Run the driver's role."""
        return self.node.roles("nvidia_driver", **DRIVER | changed)

    def installed(self) -> list[str]:
        """Return what dpkg knows of the driver, each with its state: ii or hi is whole."""
        known = self.node.read(INSTALLED).split()
        return sorted(one for one in known if not one.endswith(("=un", "=pn")))

    def remove(self) -> None:
        """Leave the node as if no driver had ever been installed, whatever an earlier test broke."""
        self.node.put(self.line.encode(), "/etc/apt/sources.list.d/stubs.list")
        self.node.read(
            "sudo dpkg --configure -a > /dev/null 2>&1; sudo apt-mark unhold 'nvidia-*' > /dev/null 2>&1;"
            " sudo dpkg --purge --force-all nvidia-kernel-open-dkms nvidia-driver-cuda > /dev/null 2>&1;"
            " sudo rm -rf /etc/apt/preferences.d/60-muster-nvidia /run/muster-package-lists"
            " /run/muster-reboot /var/full /opt/slow /opt/in-postinst /opt/secure-boot /boot/vmlinuz-99*"
        )


@pytest.fixture(scope="module")
def source(lab: Lab, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Broken]:
    folder = tmp_path_factory.mktemp("vendor")
    repository = stubs.Repository(folder)
    slow = "#!/bin/sh\n[ -e /opt/slow ] || exit 0\ntouch /opt/in-postinst\nsleep 60\n"
    kernel, cuda, *_ = stubs.driver()
    repository.add(kernel, replace(cuda, postinst=slow))
    (node,) = lab.deploy(5)
    with stubs.served(folder, NET.gateway) as url:
        node.put(f'Acquire::http::Proxy::{NET.gateway} "DIRECT";\n'.encode(), "/etc/apt/apt.conf.d/99stubs")
        node.put(stubs.FAKE_TOOLS.encode(), "/opt/fake-tools")
        node.read("sudo sh /opt/fake-tools")
        yield Broken(node, repository, f"deb [trusted=yes] {url} ./\n")


@pytest.fixture
def broken(source: Broken) -> Broken:
    source.remove()
    return source


def heals(broken: Broken) -> None:
    """The next run succeeds, and the one after it changes nothing."""
    healed = broken.install()
    assert healed.ok, healed
    assert healed.changed > 0
    assert broken.installed() == ["nvidia-driver-cuda=hi", "nvidia-kernel-open-dkms=hi"]
    again = broken.install()
    assert (again.ok, again.changed) == (True, 0)


def test_an_unknown_driver_version_is_named_and_nothing_is_installed(broken):
    failed = broken.install(nvidia_driver_version="571.1.1", nvidia_driver_branch="571")
    assert (failed.failed_role, failed.failed_task) == ("nvidia_driver", "Install the driver")
    assert "Version '571.1.1-*' for 'nvidia-kernel-open-dkms' was not found" in failed.message
    assert broken.installed() == []
    heals(broken)


def test_what_cannot_end_well_is_refused_all_at_once_before_anything_is_touched(broken):
    broken.node.read(
        "sudo touch /boot/vmlinuz-99.1.0-site; echo SecureBoot enabled | sudo tee /opt/secure-boot"
    )
    failed = broken.install(nvidia_driver_gpus_min=8, nvidia_driver_branch="580")
    assert failed.failed_task == "Refuse what cannot end well"
    for part in (
        "driver 570.86.15 is not of branch 580",
        "2 GPUs on the bus, 8 expected",
        "Secure Boot is on",
        "99.1.0-site is installed",
        "reboot first",
    ):
        assert part in failed.message
    assert broken.installed() == []
    assert broken.node.run("test -e /etc/apt/preferences.d/60-muster-nvidia").returncode == 1
    broken.node.read("sudo rm /boot/vmlinuz-99.1.0-site /opt/secure-boot")
    heals(broken)


def test_a_package_with_a_wrong_checksum_is_named_and_none_is_installed(broken):
    file = broken.repository.break_package("nvidia-driver-cuda")
    try:
        failed = broken.install()
    finally:
        broken.repository.break_package("nvidia-driver-cuda")  # the same bit again: whole
    assert failed.failed_task == "Install the driver"
    assert file.name in failed.message
    assert "Hash Sum mismatch" in failed.message
    assert broken.installed() == []
    heals(broken)


def test_a_dead_mirror_is_named_and_nothing_is_installed(broken):
    broken.node.read("sudo sed -i 's|http://[^ ]*|http://127.0.0.1:9|' /etc/apt/sources.list.d/stubs.list")
    broken.node.put(b'Acquire::http::Proxy::127.0.0.1 "DIRECT";\n', "/etc/apt/apt.conf.d/99dead")
    failed = broken.install()
    assert failed.failed_task == "Install the driver"
    assert "the package sources cannot be read" in failed.message
    assert "127.0.0.1" in failed.message
    assert broken.installed() == []
    broken.node.put(broken.line.encode(), "/etc/apt/sources.list.d/stubs.list")
    heals(broken)


def test_a_full_disk_is_named_with_figures_and_nothing_is_installed(broken):
    broken.node.read("sudo fallocate -l $(($(df --output=avail -B1 / | tail -1) - 20000000)) /var/full")
    failed = broken.install()
    broken.node.read("sudo rm /var/full")
    assert failed.failed_task == "Install the driver"
    assert "/ has " in failed.message
    assert "MB are needed; nothing was done" in failed.message
    assert broken.installed() == []
    heals(broken)


def test_a_node_that_reboots_while_dpkg_works_is_healed_by_the_next_run(broken):
    broken.node.read("sudo touch /opt/slow")
    boot = broken.node.read("cat /proc/sys/kernel/random/boot_id")
    with ThreadPoolExecutor(1) as thread:
        running = thread.submit(broken.install)
        broken.node.read(
            "for _ in $(seq 200); do test -e /opt/in-postinst && exit 0; sleep 0.25; done; exit 1"
        )
        broken.node.read("sudo rm /opt/slow; sync")
        broken.node.run("sudo systemctl reboot --force --force")
        cut_off = running.result()
    assert cut_off.outcome in {PlayOutcome.UNREACHABLE, PlayOutcome.FAILED}
    deadline = time.monotonic() + 120
    while broken.node.run("cat /proc/sys/kernel/random/boot_id").stdout.strip() in {"", boot}:
        assert time.monotonic() < deadline, "the node did not come back"
        time.sleep(0.5)
    assert "nvidia-driver-cuda=iF" in broken.installed()
    heals(broken)


def test_a_program_that_is_not_the_one_named_is_refused(broken):
    stand_in = Path(__file__).with_name("kraken_stand_in.py")
    failed = broken.node.roles(
        "kraken_agent",
        kraken_agent_binary=str(stand_in),
        kraken_agent_sha256="0" * 64,
        kraken_agent_trackers=["127.0.0.1:1"],
        kraken_agent_build_indexes=["127.0.0.1:1"],
        kraken_agent_nginx_packages=["procps"],
    )
    assert failed.failed_task == "Refuse a file that is not the one that was named"
    assert f"{'0' * 64}; nothing was installed" in failed.message
    assert broken.node.run("test -e /opt/kraken").returncode == 1


def test_fabric_manager_of_another_version_than_the_driver_is_refused(broken):
    heals(broken)
    failed = broken.node.roles(
        "nvidia_fabric_manager", **DRIVER | {"nvidia_fabric_manager_version": "570.86.10"}
    )
    assert "driver 570.86.15 and Fabric Manager 570.86.10 are not equal to the last digit" in failed.message
    assert "nothing was installed" in failed.message
