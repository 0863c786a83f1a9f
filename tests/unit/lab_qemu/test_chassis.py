"""Power, serial line and faults of a QEMU node, with a program in QEMU's place."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from pathlib import Path

import pytest

from lab.chassis import Interruptible
from lab.errors import BadRequest
from lab.qemu import Fault, QemuChassis
from lab.qemu.errors import MachineFailed
from tests.unit.lab_qemu.conftest import FAKE_QEMU, Console, program, until


def gone(pid: int) -> bool:
    """Say whether a process has ended; one that nobody has waited for yet has."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    except FileNotFoundError:
        return True


def boot_index(argv: list[str], device: str) -> str:
    return next(word for word in argv if word.startswith(device)).rpartition("bootindex=")[2]


async def test_hears_the_first_byte_and_types_back(chassis: QemuChassis, console: Console) -> None:
    await chassis.power_on(boot_device=None)
    await console.shows(b"power on")
    assert console.seen.startswith(b"power on ")
    chassis.write_serial(b"hello\n")
    await console.shows(b"hello\n")
    assert (chassis.state_dir / "serial.log").read_bytes() == bytes(console.seen)


async def test_power_off_leaves_no_process(chassis: QemuChassis, console: Console) -> None:
    await chassis.power_on(boot_device=None)
    pid = chassis.pid
    assert pid is not None
    assert chassis.powered
    await chassis.power_off()
    assert not chassis.powered
    assert gone(pid)
    chassis.write_serial(b"typed to nobody")


async def test_hears_what_was_written_just_before_the_power_went(
    chassis: QemuChassis, console: Console
) -> None:
    await chassis.power_on(boot_device=None)
    chassis.write_serial(b"poweroff\n")
    await until(lambda: not chassis.powered)
    await chassis.power_off()  # returns when the machine is gone, and its last bytes are here
    assert console.seen.endswith(b"last words 999\r\n")


async def test_power_on_when_on_changes_nothing(chassis: QemuChassis) -> None:
    await chassis.power_on(boot_device=None)
    pid = chassis.pid
    await chassis.power_on(boot_device="disk")
    assert chassis.pid == pid


@pytest.mark.parametrize(("device", "net", "disk"), [("pxe", "0", "1"), ("disk", "1", "0"), (None, "0", "1")])
async def test_boots_from_where_the_override_says(
    chassis: QemuChassis, console: Console, device: str | None, net: str, disk: str
) -> None:
    await chassis.power_on(boot_device=device)
    await console.shows(b"\r\n")
    (argv,) = console.starts()
    assert boot_index(argv, "virtio-net-pci") == net
    assert boot_index(argv, "virtio-blk-pci") == disk


async def test_reset_keeps_the_process_where_the_boot_order_stays(
    chassis: QemuChassis, console: Console
) -> None:
    await chassis.power_on(boot_device="pxe")
    pid = chassis.pid
    await chassis.reset(boot_device=None)
    await console.shows(b"cont ")
    assert b"\nreset\r\n" in console.seen
    assert chassis.pid == pid


async def test_reset_takes_a_new_process_where_the_boot_order_changes(
    chassis: QemuChassis, console: Console
) -> None:
    await chassis.power_on(boot_device="pxe")
    pid = chassis.pid
    assert pid is not None
    await chassis.reset(boot_device="disk")
    await console.shows(b"power on", times=2)
    assert gone(pid)
    assert boot_index(console.starts()[1], "virtio-blk-pci") == "0"


async def test_reset_without_power_is_an_error(chassis: QemuChassis) -> None:
    with pytest.raises(RuntimeError, match="lab-real-n01"):
        await chassis.reset(boot_device=None)


async def test_a_reboot_from_inside_obeys_the_override_of_the_bmc(
    chassis: QemuChassis, console: Console
) -> None:
    overrides = ["disk"]
    chassis.take_boot_override(lambda: overrides.pop() if overrides else None)
    await chassis.power_on(boot_device="pxe")
    await console.shows(b"power on")
    chassis.write_serial(b"reboot\n")
    await console.shows(b"power on", times=2)
    assert boot_index(console.starts()[1], "virtio-blk-pci") == "0"
    chassis.write_serial(b"reboot\n")
    await console.shows(b"power on", times=3)
    assert boot_index(console.starts()[2], "virtio-net-pci") == "0"


async def test_a_system_that_shuts_down_takes_the_power(chassis: QemuChassis, console: Console) -> None:
    await chassis.power_on(boot_device=None)
    chassis.write_serial(b"poweroff\n")
    await until(lambda: not chassis.powered)
    await chassis.power_on(boot_device=None)
    await chassis.soft_off()
    await until(lambda: not chassis.powered)


async def test_notices_that_qemu_ended(
    chassis: QemuChassis, console: Console, caplog: pytest.LogCaptureFixture
) -> None:
    await chassis.power_on(boot_device=None)
    chassis.write_serial(b"die\n")
    await until(lambda: not chassis.powered)
    chassis.write_serial(b"to nobody\n")
    await until(lambda: "QEMU ended by itself" in caplog.text)
    await chassis.power_on(boot_device=None)
    await console.shows(b"power on", times=2)


async def test_says_why_qemu_did_not_start(chassis: QemuChassis, tmp_path: Path) -> None:
    chassis.program = program(tmp_path, "import sys; sys.exit('Could not set up host forwarding rule')")
    with pytest.raises(MachineFailed, match="did not start: Could not set up host forwarding rule"):
        await chassis.power_on(boot_device=None)
    assert not chassis.powered


async def test_qemu_dies_with_the_process_that_started_it(tmp_path: Path) -> None:
    body = f"""
import asyncio, sys
from pathlib import Path
sys.path[:] = {sys.path!r}
from lab.qemu import Assets, QemuChassis, start_boot_server
async def main():
    folder = Path({str(tmp_path)!r})
    assets = Assets(folder)
    assets.image.write_bytes(b"")
    server = await start_boot_server(assets, "http://127.0.0.1:9")
    node = QemuChassis("n", "LAB-R01", "52:54:00:77:02:01", "127.77.3.1", 22, folder, server, assets,
                       program={program(tmp_path, FAKE_QEMU.read_text())!r})
    await node.power_on(boot_device=None)
    print(node.pid, flush=True)
    await asyncio.Event().wait()
asyncio.run(main())
"""
    daemon = await asyncio.create_subprocess_exec(
        sys.executable, "-c", body, stdout=asyncio.subprocess.PIPE, cwd=Path.cwd()
    )
    assert daemon.stdout is not None
    pid = int(await daemon.stdout.readline())
    assert not gone(pid)
    os.kill(daemon.pid, signal.SIGKILL)
    await daemon.communicate()
    await until(lambda: gone(pid))


async def test_passes_break_and_nmi_on(chassis: QemuChassis, console: Console) -> None:
    assert isinstance(chassis, Interruptible)
    chassis.send_nmi()  # without power: nothing
    await chassis.power_on(boot_device=None)
    chassis.send_nmi()
    chassis.send_break()
    await console.shows(b"inject-nmi {}")
    await console.shows(b'chardev-send-break {"id": "serial0"}')


async def test_no_lease_puts_the_cable_into_a_net_without_dhcp(
    chassis: QemuChassis, console: Console
) -> None:
    chassis.set_fault("no-lease")
    await chassis.power_on(boot_device=None)
    await console.shows(b"\r\n")
    chassis.set_fault("no-lease", on=False)
    await chassis.reset(boot_device=None)
    await console.shows(b"power on", times=2)
    broken, whole = (argv[argv.index("-netdev") + 1] for argv in console.starts())
    assert broken.startswith("hubport,")
    assert whole.startswith("user,")


async def test_no_ssh_lets_nothing_reach_the_node(chassis: QemuChassis, console: Console) -> None:
    await chassis.power_on(boot_device=None)
    chassis.set_fault("no-ssh")
    await chassis.reset(boot_device=None)
    await console.shows(b"power on", times=2)
    open_, closed = (argv[argv.index("-netdev") + 1] for argv in console.starts())
    assert "hostfwd=tcp:127.77.3.1:22-:22" in open_
    assert "hostfwd" not in closed


async def test_kernel_panic_strikes_now_and_at_each_handover(chassis: QemuChassis, console: Console) -> None:
    await chassis.power_on(boot_device=None)
    chassis.set_fault("kernel-panic")
    await console.shows(b"inject-nmi")
    chassis.write_serial(b"Run")  # a text may come in any number of pieces
    await console.shows(b"Run")
    chassis.write_serial(b" /init as init process\n")
    await console.shows(b"inject-nmi", times=2)
    chassis.set_fault("kernel-panic", on=False)
    assert chassis.faults == frozenset()


async def test_refuses_a_fault_that_it_does_not_have(chassis: QemuChassis) -> None:
    with pytest.raises(BadRequest, match="no fault 'gravity'") as caught:
        chassis.set_fault("gravity")
    assert Fault.NO_LEASE in caught.value.follow
