"""A node's life as hardware shows it: power, network boot, disk, reboots, console."""

from __future__ import annotations

import base64
import subprocess
from pathlib import Path

import pytest

from tests.contract.lab_nodes.bench import LabUnderTest, until

# The first test that runs also makes the root file system where no cache has it.
pytestmark = [pytest.mark.lab, pytest.mark.timeout(180)]


def boot_id(lab: LabUnderTest, number: int) -> str:
    return lab.ssh(number, "cat /proc/sys/kernel/random/boot_id").stdout.strip()


def test_a_deployed_node_is_a_real_debian_with_systemd(lab: LabUnderTest) -> None:
    lab.fresh(1)
    until(lambda: lab.ssh(1, "systemctl is-system-running").stdout == "running\n", "systemd is done")
    assert lab.ssh(1, "hostname; sudo id -u; cat /proc/1/comm").stdout == "lab-n01\n0\nsystemd\n"
    assert lab.ssh(1, "nvidia-smi -L | wc -l").stdout.strip() == "8"
    assert lab.ssh(1, "dmesg | head -n 1").stdout.split("] ", 1)[1].startswith("Linux version")
    assert "Linux version" in lab.ssh(1, "sudo journalctl -k -b | head -n 1").stdout


def test_the_console_shows_firmware_netboot_kernel_and_login_in_that_order(lab: LabUnderTest) -> None:
    lab.fresh(1)
    until(lambda: "lab-n01 login:" in lab.console(1), "a login prompt")
    text = lab.console(1)
    places = [
        text.index(word)
        for word in (
            "Service tag LAB-N01",
            "iPXE initialising",
            "Linux version",
            "curtin: ",
            "lab-n01 login:",
        )
    ]
    assert places == sorted(places)


def test_typing_on_the_serial_line_reaches_the_login_prompt(lab: LabUnderTest) -> None:
    lab.fresh(1)
    until(lambda: lab.console(1).rstrip().endswith("login:"), "a login prompt")
    before = len(lab.console(1))
    place = ["-H", f"127.{lab.octet}.1.1", "-U", "admin", "-f", str(lab.secrets / "bmc-password")]
    with subprocess.Popen(
        ["ipmitool", "-I", "lanplus", *place, "sol", "activate"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
    ) as sol:
        assert sol.stdin is not None
        assert sol.stdout is not None
        assert b"SOL Session operational" in sol.stdout.readline() + sol.stdout.readline()
        sol.stdin.write(b"nobody\r")
        sol.stdin.flush()
        until(lambda: "Password:" in lab.console(1)[before:], "the password prompt")
        sol.kill()


def test_reboot_from_inside_is_a_new_boot_of_the_same_system(lab: LabUnderTest) -> None:
    lab.fresh(1)
    first = boot_id(lab, 1)
    lab.ssh(1, "touch ~/kept; sudo systemctl reboot")
    until(lambda: boot_id(lab, 1) not in ("", first), "another boot")
    assert lab.ssh(1, "ls ~/kept; cut -d. -f1 /proc/uptime").stdout.splitlines()[0].endswith("kept")
    assert float(lab.ssh(1, "cut -d' ' -f1 /proc/uptime").stdout) < 60


def test_poweroff_from_inside_is_seen_by_the_bmc_and_nothing_answers(lab: LabUnderTest) -> None:
    lab.fresh(1)
    lab.ssh(1, "sudo systemctl poweroff")
    until(lambda: lab.ipmi(1, "power", "status") == "Chassis Power is off", "off")
    assert not lab.answers(1)
    assert not list(Path("/sys/class/net").glob(f"lab{lab.octet}p1-1"))


def test_the_bmc_cuts_and_gives_power_at_any_moment(lab: LabUnderTest) -> None:
    lab.fresh(1)
    first = boot_id(lab, 1)
    lab.ipmi(1, "power", "off")
    until(lambda: not lab.answers(1), "silence")
    lab.ipmi(1, "power", "on")
    until(lambda: "POST complete" in lab.console(1), "firmware")
    lab.ipmi(1, "power", "reset")  # in the middle of firmware or boot
    lab.ipmi(1, "power", "reset")
    until(lambda: boot_id(lab, 1) not in ("", first), "another boot")


def test_soft_off_is_an_orderly_shutdown(lab: LabUnderTest) -> None:
    lab.fresh(1)
    until(lambda: lab.ssh(1, "systemctl is-system-running").stdout == "running\n", "systemd is done")
    before = len(lab.console(1))
    lab.ipmi(1, "power", "soft")
    until(lambda: lab.ipmi(1, "power", "status") == "Chassis Power is off", "off")
    assert "Powering off" in lab.console(1)[before:]


def test_deploying_again_leaves_nothing_of_the_old_system(lab: LabUnderTest) -> None:
    lab.fresh(2)
    lab.ssh(2, "touch ~/old")
    keys = lab.ssh(2, "cat /etc/ssh/ssh_host_ed25519_key.pub /etc/machine-id").stdout
    script = base64.b64encode(b"#!/bin/sh\necho ran > /var/lib/told\n").decode()
    lab.deploy(2, user_data=script)
    until(lambda: lab.answers(2), "sshd")
    until(lambda: lab.ssh(2, "cat /var/lib/told").stdout == "ran\n", "user data has run")
    assert lab.ssh(2, "ls ~/old").returncode != 0
    fresh = lab.ssh(2, "cat /etc/ssh/ssh_host_ed25519_key.pub /etc/machine-id").stdout
    assert not set(fresh.split()) & (set(keys.split()) - {"ssh-ed25519", "root@lab-n02"})


def test_commissioning_tells_maas_what_the_node_is(lab: LabUnderTest) -> None:
    lab.fresh(2)
    machine = lab.maas("GET", f"machines/{lab.machine(2)}/")
    assert machine["hardware_info"]["system_serial"] == "LAB-N02"
    assert machine["memory"] > 0
    results = lab.maas("GET", f"nodes/{lab.machine(2)}/results/?type=commissioning&include_output=true")
    outputs = {one["name"]: base64.b64decode(one["stdout"]) for one in results[0]["results"]}
    assert b"<list>" in outputs["maas-lshw"] or b"<node" in outputs["maas-lshw"]


def test_a_node_reaches_its_package_sources_and_nothing_else(lab: LabUnderTest) -> None:
    lab.fresh(2)
    assert lab.ssh(2, "ip route show default").stdout == ""
    probe = (
        "import socket\n"
        f"line = socket.create_connection(('10.{lab.octet}.0.1', 3142), 5)\n"
        "line.sendall(b'GET http://example.com/ HTTP/1.0\\r\\nHost: example.com\\r\\n\\r\\n')\n"
        "print(line.recv(64).split()[1].decode())\n"
    )
    assert lab.ssh(2, f'python3 -c "{probe}"').stdout.strip() == "403"
    policy = lab.ssh(2, "apt-config dump | grep Acquire::http::Proxy").stdout
    assert f"http://10.{lab.octet}.0.1:3142" in policy


def test_what_a_node_sets_in_the_kernel_stays_its_own(lab: LabUnderTest) -> None:
    lab.fresh(2)
    beneath = Path("/proc/sys/vm/swappiness").read_text()
    done = lab.ssh(
        2, "sudo sysctl -q -w vm.swappiness=7; cat /proc/sys/vm/swappiness; sudo date -s 2001-01-01"
    )
    assert done.stdout.splitlines()[0] == "7"
    assert "Operation not permitted" in done.stderr
    assert Path("/proc/sys/vm/swappiness").read_text() == beneath


def test_the_lab_leaves_no_mount_on_this_machine(lab: LabUnderTest) -> None:
    lab.fresh(1)
    assert str(lab.state) not in Path("/proc/self/mountinfo").read_text()
