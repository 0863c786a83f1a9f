"""The node's bus as sysfs shows it: read by the product's own readers, and changed by faults at once."""

from __future__ import annotations

from pathlib import Path

import pytest

from health.readers.infiniband import Port, read_sysfs
from health.readers.pci import PciDevice, read_pci
from lab.nodes.faults import NodeFault, NodeFaults
from lab.nodes.hardware import SICK_GPU, Hardware
from lab.nodes.kernel import lost_gpus


@pytest.fixture
def faults(tmp_path: Path) -> NodeFaults:
    return NodeFaults(tmp_path / "faults")


@pytest.fixture
def hardware(tmp_path: Path, faults: NodeFaults) -> Hardware:
    return Hardware(tmp_path, faults)


def files(share: Path) -> dict[str, str]:
    root = share / "pci"
    return {
        f"/sys/bus/pci/devices/{path.relative_to(root)}": path.read_text(errors="replace")
        for path in root.rglob("*")
        if path.is_file()
    }


def devices(share: Path) -> dict[str, PciDevice]:
    return {one.address: one for one in read_pci(files(share))}


def ports(share: Path) -> tuple[Port, ...]:
    return tuple(sorted(read_sysfs(files(share)), key=lambda one: one.device))


def test_a_whole_node_is_on_the_bus(hardware: Hardware, tmp_path: Path) -> None:
    found = devices(tmp_path)
    drivers = [one.driver for one in found.values()]
    counts = {name: drivers.count(name) for name in ("nvidia", "nvidia-nvswitch", "mlx5_core", "nvme")}
    assert counts == {"nvidia": 8, "nvidia-nvswitch": 4, "mlx5_core": 8, "nvme": 2}
    assert all((one.speed, one.width) == (one.speed_max, one.width_max) for one in found.values())
    assert [(one.device, one.up, one.rate) for one in ports(tmp_path)] == [
        (f"mlx5_{number}", True, 400.0) for number in range(8)
    ]


def test_a_gpu_that_does_not_answer_at_power_on_is_not_on_the_bus(hardware: Hardware, tmp_path: Path) -> None:
    hardware.count(lost_gpus(2))
    found = devices(tmp_path)
    assert sum(one.driver == "nvidia" for one in found.values()) == 6
    assert not {f"0000:{bus}:00.0" for bus in lost_gpus(2)} & set(found)


def test_a_narrow_link_and_a_lost_link_show_while_the_fault_is_in_force(
    hardware: Hardware, faults: NodeFaults, tmp_path: Path
) -> None:
    faults.set(NodeFault.GPU_PCIE_WIDTH)
    faults.set(NodeFault.IB_PORT_DOWN, 2)
    hardware.refresh()
    assert devices(tmp_path)[f"0000:{SICK_GPU}:00.0"].width == 8
    assert [one.up for one in ports(tmp_path)] == [False, False, *[True] * 6]
    assert ports(tmp_path)[0].physical == "Polling"
    faults.clear()
    hardware.refresh()
    assert devices(tmp_path)[f"0000:{SICK_GPU}:00.0"].width == 16
    assert all(one.up for one in ports(tmp_path))


def test_swap_is_listed_as_the_kernel_lists_it(
    hardware: Hardware, faults: NodeFaults, tmp_path: Path
) -> None:
    assert len((tmp_path / "swaps").read_text().splitlines()) == 1
    faults.set(NodeFault.SWAP_ON)
    hardware.refresh()
    head, row = (tmp_path / "swaps").read_text().splitlines()
    assert head.split() == ["Filename", "Type", "Size", "Used", "Priority"]
    assert row.split()[:2] == ["/dev/nvme1n1p2", "partition"]
