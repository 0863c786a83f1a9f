"""The role `base` on a node with a real Debian, a real systemd and real packages."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from provision.ansible import PlayEventKind
from tests.roles.conftest import NET, Fresh

pytestmark = [pytest.mark.lab, pytest.mark.timeout(600)]

SITE = Path(__file__).resolve().parents[2] / "playbooks" / "site.yml"


def variables(node: Fresh) -> dict[str, object]:
    """What a site would say, and more than the defaults do."""
    public = node.key.with_suffix(".pub").read_text(encoding="utf-8").strip()
    return {
        "base_admins": [
            {"name": "ada", "keys": [public]},
            {"name": "grace", "keys": [public], "sudo": False},
        ],
        "base_time_servers": [NET.gateway],
        "base_packages": ["chrony", "ethtool", "procps", "sudo", "tree"],
        "base_modules": ["no_such_module"],
        "base_hugepages": 3,
    }


@pytest.fixture(scope="module")
def node(fresh: Callable[[int], Fresh]) -> Fresh:
    """A node that the role has run on once."""
    made = fresh(1)
    result, _ = made.play(SITE, **variables(made))
    assert result.ok, result
    assert result.changed > 0
    return made


def test_a_second_run_and_a_check_change_nothing(node):
    again, _ = node.play(SITE, **variables(node))
    assert (again.ok, again.changed) == (True, 0)
    checked, _ = node.play(SITE, check=True, **variables(node))
    assert (checked.ok, checked.changed) == (True, 0)


def test_a_check_on_a_new_node_says_what_would_change_and_changes_nothing(fresh):
    new = fresh(2)
    before = new.read("sudo find /etc -type f -exec sha256sum {} + | sort")
    checked, seen = new.play(SITE, check=True, **variables(new))
    assert checked.ok, checked
    assert checked.changed > 0
    assert new.read("sudo find /etc -type f -exec sha256sum {} + | sort") == before
    assert "Write the configuration" in {one.task for one in seen if one.kind is PlayEventKind.CHANGED}


def test_administrators_log_in_with_their_key_and_the_right_one_is_root(node):
    assert node.run("sudo -n id -u", user="ada").stdout.strip() == "0"
    assert node.run("id -un", user="grace").stdout.strip() == "grace"
    assert node.run("sudo -n true", user="grace").returncode != 0
    told = node.read("sudo sshd -T")
    assert "passwordauthentication no" in told
    assert "kbdinteractiveauthentication no" in told


def test_an_administrator_who_left_is_gone_at_the_next_run(node):
    left = variables(node)
    left["base_admins"] = [left["base_admins"][0]]  # type: ignore[index]
    result, _ = node.play(SITE, **left, base_absent_users=["grace"])
    assert result.ok, result
    assert node.run("id", user="grace").returncode == 255
    assert node.run("id -un", user="ada").stdout.strip() == "ada"
    result, _ = node.play(SITE, **variables(node))
    assert result.ok, result


def test_packages_settings_and_limits_are_there(node):
    assert node.read("tree --version").startswith("tree v")
    assert node.read("sudo sysctl -n vm.nr_hugepages kernel.panic vm.max_map_count").split() == [
        "3",
        "10",
        "1048576",
    ]
    limits = "nofile" in node.read("cat /etc/muster-release")  # a lab without CAP_SYS_RESOURCE says so
    assert limits or node.run("ulimit -n", user="ada").stdout.strip() == "1048576"
    assert node.read("systemctl show --property DefaultLimitNOFILE --value") == "1048576"
    assert node.read("apt-config dump APT::Periodic::Enable --format '%v'") == "0"
    assert node.read("readlink /etc/localtime") == "/usr/share/zoneinfo/Etc/UTC"


def test_what_the_kernel_refuses_is_said_and_kept_on_the_node(node):
    release = dict(
        line.split("=", 1) for line in node.read("cat /etc/muster-release").splitlines() if "=" in line
    )
    assert release["MUSTER_NODE"] == f'"{node.spec.name}"'
    assert release["MUSTER_DEPLOY"] == '"d-1"'
    assert "no_such_module" in release["MUSTER_LEFT_OUT"]


def test_time_is_kept_although_the_clock_cannot_be_set(node):
    assert node.read("systemctl is-active chrony") == "active"
    assert NET.gateway in node.read("chronyc -n -c sources")
    assert "-x" in node.read("ps -o args= -C chronyd").split()


def test_services_come_back_after_being_killed(node):
    node.kill_and_wait("chrony")


def test_everything_is_still_there_after_a_reboot(node):
    node.reboot()
    assert node.read("systemctl is-active chrony ssh systemd-journald").split() == ["active"] * 3
    again, _ = node.play(SITE, **variables(node))
    assert (again.ok, again.changed) == (True, 0)


def test_a_run_that_was_cut_off_before_the_restart_is_healed_by_the_next(node):
    node.read("sudo touch /etc/chrony/chrony.conf")  # as if written, and nobody came to restart
    before = node.read("systemctl show chrony --property ActiveEnterTimestampMonotonic --value")
    result, _ = node.play(SITE, **variables(node))
    assert result.changed == 1
    assert node.read("systemctl show chrony --property ActiveEnterTimestampMonotonic --value") != before


def test_a_broken_file_changes_nothing_and_names_itself(node, tmp_path):
    copy = tmp_path / "playbooks"
    shutil.copytree(SITE.parent, copy)
    (copy / "roles/base/templates/sudoers.j2").write_text("%{{ _base_group }} ALL=(ALL:ALL NOPASSWD ALL\n")
    (copy / "roles/base/templates/limits.conf.j2").write_text("# changed\n")
    result, _ = node.play(copy / "site.yml", **variables(node))
    assert (result.failed_role, result.failed_task) == ("base", "Write the configuration")
    assert "/etc/sudoers.d/60-muster would be wrong" in result.message
    assert "changed" not in node.read("cat /etc/security/limits.d/60-muster.conf")


def test_a_package_that_is_not_there_is_named(node):
    result, _ = node.play(SITE, **variables(node) | {"base_packages": ["no-such-package"]})
    assert (result.failed_role, result.failed_task) == ("base", "Install packages")
    assert "no-such-package" in result.message
