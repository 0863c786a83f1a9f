"""QEMU's arguments."""

from __future__ import annotations

import dataclasses
from pathlib import Path

from lab.qemu.command import Launch, Lines, command_line

LAUNCH = Launch(
    name="lab-real-n01",
    serial="LAB-R01",
    mac="52:54:00:77:02:01",
    disk=Path("/state/a,b/disk.raw"),
    boot_server="http://10.0.2.2:8080",
    netboot_first=True,
    ssh_forward=("127.77.3.1", 22),
)


def arguments(launch: Launch) -> list[str]:
    return command_line("qemu", launch, Lines(serial_fd=5, monitor_fd=6))


def test_never_picks_kvm() -> None:
    words = arguments(LAUNCH)
    assert words[words.index("-accel") + 1].startswith("tcg,thread=multi")
    assert not [word for word in words if "kvm" in word]


def test_names_the_node_in_the_firmware() -> None:
    words = arguments(LAUNCH)
    assert [word for word in words if "serial=LAB-R01," in word and word.startswith("type=1,")]
    assert "type=11,value=boot-server=http://10.0.2.2:8080" in words


def test_keeps_its_identity_over_starts_and_not_over_nodes() -> None:
    other = dataclasses.replace(LAUNCH, serial="LAB-R02")
    uuids = [
        next(word for word in arguments(launch) if "uuid=" in word) for launch in (LAUNCH, LAUNCH, other)
    ]
    assert uuids[0] == uuids[1]
    assert uuids[0].partition("uuid=")[2] != uuids[2].partition("uuid=")[2]


def test_a_comma_in_a_path_is_part_of_the_path() -> None:
    assert [word for word in arguments(LAUNCH) if word.startswith("file=/state/a,,b/disk.raw,")]


def test_boots_over_http_and_forwards_ssh() -> None:
    words = arguments(LAUNCH)
    network = words[words.index("-netdev") + 1]
    assert "bootfile=http://10.0.2.2:8080/ipxe/52:54:00:77:02:01" in network
    assert "hostfwd=tcp:127.77.3.1:22-:22" in network
