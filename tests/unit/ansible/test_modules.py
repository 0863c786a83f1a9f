"""The decisions of our Ansible modules, which stand alone and run on nodes."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from types import ModuleType

import pytest

LIBRARY = Path(__file__).resolve().parents[3] / "playbooks" / "library"


def load(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(name, LIBRARY / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


probe, units, accounts, drop_ins, packages, drivers, snapshots = map(
    load,
    (
        "node_probe",
        "current_units",
        "accounts",
        "drop_ins",
        "held_packages",
        "driver_probe",
        "apt_snapshots",
    ),
)


def test_settings_are_compared_as_the_kernel_writes_them(tmp_path):
    (tmp_path / "net/ipv4").mkdir(parents=True)
    (tmp_path / "net/ipv4/tcp_rmem").write_text("4096\t131072\t6291456\n")
    (tmp_path / "net/ipv4/tcp_mtu_probing").write_text("0\n")
    wanted = {"net.ipv4.tcp_rmem": "4096 131072 6291456", "net.ipv4.tcp_mtu_probing": 1, "kernel.gone": 1}
    assert probe.look_at_sysctl(tmp_path, wanted) == ({"net.ipv4.tcp_mtu_probing": 1}, ["kernel.gone"])


def test_an_interface_with_a_dot_in_its_name_has_settings_too():
    path = probe.sysctl_path(Path("/proc/sys"), "net.ipv4.conf.eth0/100.rp_filter")
    assert path == Path("/proc/sys/net/ipv4/conf/eth0.100/rp_filter")


def test_modules_that_are_built_in_are_not_missing():
    loaded = "nvme_core 200704 4 nvme, Live 0x0\nip_tables 36864 0 - Live 0x0\n"
    builtin = "kernel/net/ipv4/tcp-cubic.ko\n"
    assert probe.missing_modules(["nvme-core", "tcp_cubic", "br_netfilter"], loaded, builtin) == [
        "br_netfilter"
    ]


def test_packages_in_another_version_are_missing():
    have = packages.parse_installed("ii  chrony 4.3-2\nrc  ntp 4.2\nhi  linux-image-amd64 6.1.1\n")
    wanted = ["chrony", "ntp", "linux-image-amd64=6.1.1", "chrony=4.4", "tree", "chrony=4.3-*"]
    assert packages.missing_packages(wanted, have) == ["ntp", "chrony=4.4", "tree"]
    assert packages.to_hold(["chrony", "linux-image-amd64=6.1.1"], have, "all") == ["chrony"]
    assert packages.to_hold(["chrony", "linux-image-amd64"], have, "pinned") == []


def test_what_apt_would_do_is_read_from_what_it_says():
    told = (
        "The following packages will be REMOVED:\n  mlnx-ofed-kernel rdma-core\n"
        "The following NEW packages will be installed:\n  doca-ofed\n"
        "Need to get 1,024 kB/3,456 kB of archives.\n"
        "After this operation, 12.5 MB of additional disk space will be used.\n"
    )
    assert packages.removals(told) == ["mlnx-ofed-kernel", "rdma-core"]
    assert packages.needed_bytes(told) == (3_456_000, 12_500_000)
    assert packages.needed_bytes("After this operation, 3,072 B disk space will be freed.\n") == (0, 0)
    broken = "Reading package lists...\nE: Version '9' for 'dcgm' was not found\n"
    assert packages.complaint(broken) == "E: Version '9' for 'dcgm' was not found"


@pytest.mark.parametrize(
    ("hard", "refused"),
    [
        ({"nofile": 20000, "memlock": 65536}, ["memlock", "nofile"]),
        ({"nofile": 1048576, "memlock": -1}, []),
    ],
)
def test_limits_above_the_hard_ones_are_refused(hard, refused):
    assert probe.refused_limits({"nofile": 1048576, "memlock": "unlimited"}, hard) == refused


def test_capabilities_and_containers():
    status = "Name:\tx\nCapEff:\t0000000002000000\n"  # only CAP_SYS_TIME
    assert probe.capable(status, probe.CAP_SYS_TIME)
    assert not probe.capable(status, probe.CAP_SYS_MODULE)
    assert probe.container("TERM=linux\0container=lxc\0", "none") == "lxc"
    assert probe.container("TERM=linux\0", "") == ""
    assert probe.container("", "docker") == "docker"
    assert probe.os_release('ID=debian\nPRETTY_NAME="Debian 12"\n# x=y\n')["pretty_name"] == "Debian 12"


CLOCKS = (1000.0, 100.0)  # the machine started at 900


@pytest.mark.parametrize(
    ("newest", "entered", "entered_real", "stale"),
    [
        (0.0, 50.0, 950.0, False),  # no configuration
        (940.0, 50.0, 950.0, False),
        (960.0, 50.0, 950.0, True),
        (960.0, 50.0, 350.0, True),  # the clock was set forward by 600 s since the start
        (1500.0, 50.0, 1550.0, False),  # the clock was set back by 600 s since: written before the start
        (1560.0, 50.0, 1550.0, True),
    ],
)
def test_a_unit_is_stale_when_its_configuration_is_newer_whatever_the_clock_did(
    newest, entered, entered_real, stale
):
    assert units.is_stale(newest, entered, entered_real, CLOCKS) is stale


@pytest.mark.parametrize(
    ("wanted", "now", "stale", "verbs"),
    [
        ({}, {"ActiveState": "active", "UnitFileState": "enabled"}, False, []),
        ({}, {"ActiveState": "active", "UnitFileState": "enabled"}, True, ["restart"]),
        ({}, {"ActiveState": "inactive", "UnitFileState": "enabled"}, True, ["start"]),
        ({}, {"ActiveState": "failed", "UnitFileState": "disabled"}, False, ["enable", "start"]),
        ({"enabled": None}, {"ActiveState": "active", "UnitFileState": "disabled"}, False, []),
        ({"enabled": None}, {"ActiveState": "active", "UnitFileState": "static"}, False, []),
        (
            {"state": "stopped", "enabled": False},
            {"ActiveState": "active", "UnitFileState": "enabled"},
            True,
            ["disable", "stop"],
        ),
        ({"state": "stopped", "enabled": False}, {"ActiveState": "inactive"}, True, []),
    ],
)
def test_what_is_asked_of_systemd(wanted, now, stale, verbs):
    assert units.plan({"state": "started", "enabled": True} | wanted, now, stale=stale) == verbs


def test_units_are_read_in_the_order_asked():
    told = "Id=a.service\nActiveState=active\n\nId=b.service\nActiveState=failed\n"
    assert [unit["Id"] for unit in units.parse_show(told)] == ["a.service", "b.service"]


def test_an_account_is_made_changed_or_left_alone():
    class Entry:
        pw_shell = "/bin/bash"

    ada = {"name": "ada", "shell": "/bin/bash", "sudo": True}
    assert [command[0] for command in accounts.commands(ada, "admins", None, [])] == ["useradd", "usermod"]
    assert accounts.commands(ada, "admins", Entry, ["ada"]) == []
    assert accounts.commands(ada | {"sudo": False}, "admins", Entry, ["ada"]) == [
        ["gpasswd", "--delete", "ada", "admins"]
    ]
    assert accounts.commands(ada | {"shell": "/bin/sh"}, "admins", Entry, ["ada"])[0][:2] == [
        "usermod",
        "--shell",
    ]


@pytest.mark.parametrize(("written", "mode"), [("0440", 0o440), (600, 0o600), ("644", 0o644)])
def test_modes_are_octal_however_they_are_written(written, mode):
    assert drop_ins.wanted_mode(written) == mode


@pytest.mark.parametrize(
    ("images", "newest"),
    [
        (["vmlinuz-6.1.0-9-amd64", "vmlinuz-6.1.0-28-amd64"], "6.1.0-28-amd64"),
        (["vmlinuz-6.8.0-rc7", "vmlinuz-6.8.0"], "6.8.0"),
        (["vmlinuz-6.8.0-57-generic", "vmlinuz-6.11.0-21-generic"], "6.11.0-21-generic"),
        (["vmlinuz-6.8.0-57-generic", "vmlinuz-6.9.0-1-generic.old"], "6.8.0-57-generic"),
        ([], ""),
    ],
)
def test_the_newest_kernel_is_the_one_that_the_next_boot_takes(images, newest):
    assert drivers.newest_kernel(images) == newest


def test_devices_are_told_apart_by_class_and_maker():
    told = (
        "0000:03:00.0 VGA compatible controller [0300]: ASPEED Technology [1a03:2000]\n"
        "0000:18:00.0 3D controller [0302]: NVIDIA Corporation GH100 [10de:2330] (rev a1)\n"
        "0000:07:00.0 Bridge [0680]: NVIDIA Corporation Device [10de:22a3]\n"
        "0000:3a:00.0 Infiniband controller [0207]: Mellanox MT2910 [15b3:1021]\n"
        "0000:3b:00.1 Ethernet controller [0200]: Mellanox MT2892 [15b3:101d]\n"
        "0000:3c:00.0 Ethernet controller [0200]: Intel Corporation X710 [8086:1572]\n"
    )
    assert drivers.devices(told) == {
        "gpus": ["0000:18:00.0"],
        "switches": ["0000:07:00.0"],
        "nics": ["0000:3a:00.0", "0000:3b:00.1"],
    }


def test_all_that_speaks_against_a_driver_is_said_at_once():
    node = {"kernel": "6.1.0-9", "newest": "6.1.0-28", "headers": False, "secure_boot": True, "gpus": ["a"]}
    against = drivers.unbuildable(node, signed=False) + drivers.too_few(node, {"gpus": 8})
    assert [text.split()[0] for text in against] == ["Secure", "kernel", "no", "1"]
    good = node | {"newest": "6.1.0-9", "headers": True}
    assert drivers.unbuildable(good, signed=True) == []
    assert drivers.secure_boot("EFI variables are not supported on this system\n") is None
    assert drivers.secure_boot("SecureBoot enabled\n") is True


SOURCE = {"name": "cuda", "url": "http://x/cuda", "suite": "./", "components": [], "architectures": ["amd64"],
          "filter": "", "keyring": ""}  # fmt: skip


def test_a_flat_source_is_mirrored_whole_and_published_under_a_suite():
    assert snapshots.mirror_command(SOURCE)[-3:] == ["cuda", "http://x/cuda", "./"]
    assert snapshots.distribution(SOURCE) == "stable"
    suite = SOURCE | {"suite": "bookworm", "components": ["main"], "filter": "chrony", "keyring": "/k.gpg"}
    assert snapshots.mirror_command(suite)[2:] == [
        "-architectures=amd64", "-filter=chrony", "-filter-with-deps", "-keyring=/k.gpg", "cuda", "http://x/cuda",
        "bookworm", "main",
    ]  # fmt: skip


def test_what_is_published_is_read_by_place():
    told = (
        '[{"Prefix": "cuda", "Distribution": "stable", "Sources": [{"Component": "main", "Name": "cuda-1"}]}]'
    )
    assert snapshots.published(told) == {("cuda", "stable"): ["cuda-1"]}
