"""A QEMU node boots, is commissioned, installed and reached, as MAAS and its BMC say."""

from __future__ import annotations

import re
import shutil
from typing import Any

import pytest

from tests.contract.lab_bmc.conftest import terminal
from tests.contract.lab_qemu.conftest import BMC_HOST, MAC, PASSWORD, SERIAL, SSH_HOST, Bench, run, until

pytestmark = [
    pytest.mark.qemu,
    pytest.mark.timeout(400),
    pytest.mark.skipif(shutil.which("ipmipower") is None, reason="FreeIPMI is not installed"),
]

BOOT_S = 300.0  # an install and a boot take a minute on a quiet machine; tests run on loaded ones
# What the console shows from power on to the login prompt, in this order.
INSTALL_STORY = (
    rb"iPXE 1",
    rb"MAAS says install",
    rb"Linux version",
    rb"installation: started for lab-real-n01",
    rb"installation: wrote \d+ bytes",
    rb"installation: finished",
    rb"rebooting",
    rb"iPXE 1",
    rb"Booting from disk",
    rb"Loading Linux",
    rb"Linux version",
    rb"systemd\[1\]:",
    rb"lab-real-n01 login:",
)


async def enlist(bench: Bench) -> str:
    return await bench.wire.create(
        "lab-real-n01",
        MAC,
        power_parameters_power_address=f"{BMC_HOST}:{bench.bmc_port}",
        power_parameters_power_user="admin",
        power_parameters_power_pass=PASSWORD,
    )


async def commission(bench: Bench) -> dict[str, Any]:
    """Enlist the node, let it be commissioned, and return what MAAS knows then."""
    machine = await enlist(bench)
    await bench.wire.op(f"machines/{machine}/", "commission", {"testing_scripts": "none"})
    found = await bench.wire.reaches(machine, "Ready", "Failed commissioning", seconds=BOOT_S)
    assert found["status_name"] == "Ready"
    await until(lambda: not bench.node.powered, "the node is off after commissioning", 60)
    return found


async def test_commissioning_finds_what_the_node_is(bench: Bench) -> None:
    found = await commission(bench)
    assert found["hardware_info"]["system_serial"] == SERIAL
    assert (found["cpu_count"], found["memory"]) == (1, pytest.approx(512, rel=0.1))
    assert [disk["size"] for disk in found["blockdevice_set"]] == [4 << 30]


async def test_is_installed_and_reached(bench: Bench) -> None:
    machine = (await commission(bench))["system_id"]
    before = len(bench.console)
    async with terminal(bench.ipmitool("sol", "activate"), bench.folder) as sol:
        await sol.expect(b"SOL Session operational")
        await bench.wire.op(f"machines/{machine}/", "deploy", {"distro_series": "custom/debian-12"})
        found = await bench.wire.reaches(machine, "Deployed", "Failed deployment", seconds=BOOT_S)
        assert found["status_name"] == "Deployed"
        assert found["interface_set"][0]["links"][0]["ip_address"] == SSH_HOST
        await sol.expect(b"login:", within_s=60)
    assert in_order(INSTALL_STORY, bench.console[before:]) == []
    assert in_order(INSTALL_STORY, bytes(sol.seen)) == []

    await bench.greeted(within_s=60)
    # What Ansible needs: a login, root without a password, Python.
    asked = (
        "hostname; sudo cat /sys/class/dmi/id/product_serial; python3 -c 'import json; print(json.dumps(1))'"
    )
    assert (await bench.ssh(asked)).splitlines() == ["lab-real-n01", SERIAL, "1"]
    await loses_no_serial_byte(bench)

    await run(*bench.ipmitool("chassis", "power", "soft"))
    await until(lambda: not bench.node.powered, "the system has shut itself down", 120)
    assert bench.console.rstrip().endswith(b"reboot: Power down")


async def loses_no_serial_byte(bench: Bench) -> None:
    """As fast as the node can write, while the test machine is busy with it."""
    await bench.ssh("sudo sh -c 'seq -w 1 5000 | sed s/^/n/ >/dev/ttyS0'")
    await until(lambda: b"n5000" in bench.console, "the last line is on the console", 60)
    seen = re.findall(rb"n(\d{4})\r\n", bench.console)
    assert [int(number) for number in seen] == list(range(1, 5001))


async def test_without_a_lease_ipxe_says_so_on_the_console(bench: Bench) -> None:
    bench.node.set_fault("no-lease")
    await run(*bench.ipmitool("chassis", "bootdev", "pxe"))
    await run(*bench.ipmitool("chassis", "power", "on"))
    # SeaBIOS breaks lines at column 80 of the screen that it shows on the serial port.
    await until(
        lambda: b"No configuration methods succeeded" in b" ".join(bench.console.split()),
        "iPXE gives up on DHCP",
        BOOT_S,
    )


async def test_a_kernel_that_panics_stops_there(bench: Bench) -> None:
    machine = await enlist(bench)
    bench.node.set_fault("kernel-panic")
    await bench.wire.op(f"machines/{machine}/", "commission", {"testing_scripts": "none"})
    await until(lambda: b"Kernel panic - not syncing" in bench.console, "the kernel panics", BOOT_S)
    await until(lambda: b"end Kernel panic" in bench.console, "the kernel has said why", 60)
    assert bench.node.powered
    await run(*bench.ipmitool("chassis", "power", "off"))
    await until(lambda: not bench.node.powered, "the power is off", 60)


async def test_an_install_without_an_image_fails_with_its_log(bench: Bench) -> None:
    bench.node.set_fault("deploy-fails")
    machine = (await commission(bench))["system_id"]
    await bench.wire.op(f"machines/{machine}/", "deploy", {"distro_series": "custom/debian-12"})
    found = await bench.wire.reaches(machine, "Deployed", "Failed deployment", seconds=BOOT_S)
    assert found["status_name"] == "Failed deployment"
    await until(lambda: b"the transfer broke" in bench.console, "the console names the reason", 10)


def in_order(story: tuple[bytes, ...], console: bytes) -> list[bytes]:
    """Return what is missing of the story, from its first gap on."""
    at = 0
    for number, pattern in enumerate(story):
        found = re.compile(pattern).search(console, at)
        if found is None:
            return list(story[number:])
        at = found.end()
    return []
