"""A node's PCI devices and fabric ports as sysfs shows them, written where the node has them mounted.

The folder becomes /sys/bus/pci/devices inside; its files are in the forms of the kernel's own.
"""

from __future__ import annotations

import shutil
import struct
from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path

from lab.nodes.faults import NodeFault, NodeFaults
from lab.nodes.firmware import GPU_BUSES

SICK_GPU = "3a"  # the one that faults of a single GPU strike
HCA_BUSES = ("19", "2b", "3b", "5e", "9b", "ac", "bb", "dc")
SWITCH_BUSES = ("85", "86", "87", "88")
_DRIVE_BUSES = ("01", "02")
_NO_SWAP = "Filename\t\t\t\tType\t\tSize\t\tUsed\t\tPriority\n"
_SWAP = "/dev/nvme1n1p2                          partition\t8388604\t\t0\t\t-2\n"

_REVISION = 0xA1


@dataclass(frozen=True, slots=True)
class _Kind:
    """What all devices of one kind have in common. `speed` in GT/s, 0 for a device without a link."""

    pci_class: str
    pci_id: str
    subsystem: str
    driver: str
    speed: str = ""
    width: int = 0


_GPU = _Kind("30200", "10DE:2330", "10DE:16C1", "nvidia", "32.0", 16)
_SWITCH = _Kind("68000", "10DE:22A3", "10DE:1796", "nvidia-nvswitch", "32.0", 2)
_HCA = _Kind("20700", "15B3:1021", "15B3:0041", "mlx5_core", "32.0", 16)
_DRIVE = _Kind("10802", "144D:A80A", "144D:A813", "nvme", "16.0", 4)


def _identity(kind: _Kind) -> dict[str, str]:
    """Return the files by which lspci knows a device; it stops at the first that is missing."""
    vendor, device = kind.pci_id.lower().split(":")
    own, model = kind.subsystem.lower().split(":")
    return {
        "vendor": f"0x{vendor}\n",
        "device": f"0x{device}\n",
        "class": f"0x{kind.pci_class:0>6}\n",
        "revision": f"0x{_REVISION:02x}\n",
        "subsystem_vendor": f"0x{own}\n",
        "subsystem_device": f"0x{model}\n",
        "irq": "0\n",
        "resource": "0x0000000000000000 0x0000000000000000 0x0000000000000000\n" * 7,
    }


def _config_space(kind: _Kind) -> bytes:
    """Return the header that every device has in the first 64 bytes of its configuration space."""
    vendor, device = (int(part, 16) for part in kind.pci_id.split(":"))
    own, model = (int(part, 16) for part in kind.subsystem.split(":"))
    code = int(kind.pci_class, 16)
    command, status, header = 0x0406, 0, 0
    head = struct.pack("<HHHHB", vendor, device, command, status, _REVISION)
    head += code.to_bytes(3, "little") + struct.pack("<BBBB", 16, 0, header, 0)
    return head + bytes(24 + 4) + struct.pack("<HH", own, model) + bytes(16)


class Hardware:
    """The devices of one node. They are counted anew at each boot; links change at any moment."""

    def __init__(self, share: Path, faults: NodeFaults) -> None:
        self._folder = share / "pci"
        self._swaps = share / "swaps"
        self._faults = faults
        self._folder.mkdir(parents=True, exist_ok=True)
        self.count(())
        self.refresh()

    def count(self, lost: Collection[str]) -> None:
        """Enumerate the bus, as firmware does at power on; GPUs on `lost` buses do not answer."""
        for old in self._folder.iterdir():
            shutil.rmtree(old)
        for kind, buses in (
            (_GPU, [bus for bus in GPU_BUSES if bus not in lost]),
            (_SWITCH, SWITCH_BUSES),
            (_HCA, HCA_BUSES),
            (_DRIVE, _DRIVE_BUSES),
        ):
            for bus in buses:
                self._device(kind, f"0000:{bus}:00.0")
        for number, bus in enumerate(HCA_BUSES):
            self._adapter(f"0000:{bus}:00.0", bus, number)

    def refresh(self) -> None:
        """Bring links and swap to what the faults in force make of them."""
        lanes = int(self._faults.value(NodeFault.GPU_PCIE_WIDTH)) or _GPU.width
        gpu = self._folder / f"0000:{SICK_GPU}:00.0"
        if gpu.is_dir():
            (gpu / "current_link_width").write_text(f"{lanes}\n")
        down = int(self._faults.value(NodeFault.IB_PORT_DOWN))
        for number, bus in enumerate(HCA_BUSES):
            self._link(f"0000:{bus}:00.0", number, up=number >= down)
        self._swaps.write_text(_NO_SWAP + (_SWAP if self._faults.active(NodeFault.SWAP_ON) else ""))

    def _device(self, kind: _Kind, address: str) -> None:
        vendor, _, device = kind.pci_id.partition(":")
        own, _, model = kind.subsystem.partition(":")
        event = (
            f"DRIVER={kind.driver}\nPCI_CLASS={kind.pci_class}\nPCI_ID={kind.pci_id}\n"
            f"PCI_SUBSYS_ID={kind.subsystem}\nPCI_SLOT_NAME={address}\n"
            f"MODALIAS=pci:v0000{vendor}d0000{device}sv0000{own}sd0000{model}"
            f"bc{kind.pci_class[:-4]:0>2}sc{kind.pci_class[-4:-2]}i{kind.pci_class[-2:]}\n"
        )
        files = {"uevent": event, **_identity(kind)}
        for when in ("current", "max"):
            files[f"{when}_link_speed"] = f"{kind.speed} GT/s PCIe\n"
            files[f"{when}_link_width"] = f"{kind.width}\n"
        _write(self._folder / address, files)
        (self._folder / address / "config").write_bytes(_config_space(kind))

    def _adapter(self, address: str, bus: str, number: int) -> None:
        guid = f"a088:c203:00{bus}:4e{number:02x}"
        device = self._folder / address / "infiniband" / f"mlx5_{number}"
        shared = {
            "board_id": "LAB0000000838\n",
            "fw_ver": "28.41.1000\n",
            "hca_type": "MT4129\n",
            "hw_rev": "0x0\n",
            "node_guid": f"{guid}\n",
            "node_type": "1: CA\n",
            "sys_image_guid": f"{guid}\n",
        }
        _write(device, shared)
        _write(
            device / "ports" / "1",
            {
                "cap_mask": "0xa751e848\n",
                "lid_mask_count": "0\n",
                "link_layer": "InfiniBand\n",
                "sm_sl": "0\n",
            },
        )
        self._link(address, number, up=True)

    def _link(self, address: str, number: int, *, up: bool) -> None:
        port = self._folder / address / "infiniband" / f"mlx5_{number}" / "ports" / "1"
        _write(
            port,
            {
                "lid": f"{0x20 + number:#x}\n" if up else "0xffff\n",
                "phys_state": "5: LinkUp\n" if up else "2: Polling\n",
                "rate": "400 Gb/sec (4X NDR)\n" if up else "10 Gb/sec (4X SDR)\n",
                "sm_lid": "0x1\n" if up else "0x0\n",
                "state": "4: ACTIVE\n" if up else "1: DOWN\n",
            },
        )
        interface = self._folder / address / "net" / f"ibs{number}"
        _write(interface, {"operstate": "up\n" if up else "down\n", "speed": "400000\n" if up else "-1\n"})


def _write(folder: Path, files: dict[str, str]) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for name, content in files.items():
        (folder / name).write_text(content)
