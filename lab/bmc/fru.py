"""FRU inventory areas (IPMI Platform Management FRU Information Storage Definition 1.0)."""

from __future__ import annotations

import struct

from lab.bmc.faults import Fault, Faults
from lab.bmc.ipmi.message import checksum
from lab.bmc.spec import BmcSpec

RACK_MOUNT = 0x17
ENGLISH = 0x00
MADE_AT_MIN = 15_772_320  # minutes from 1996-01-01 to 2025-12-27
FRU_SIZE = 512
SUPPLY_SIZE = 256
_END = b"\xc1"


class FruStore:
    """The contents of each FRU device, as they are read now."""

    def __init__(self, spec: BmcSpec, faults: Faults) -> None:
        self._spec = spec
        self._faults = faults
        self._cached: dict[int, bytes] = {}

    def read(self, fru_id: int) -> bytes | None:
        """Return the bytes of a device; None where there is none. Device 0 may have a bad checksum."""
        if fru_id not in self._cached:
            made = _make(self._spec, fru_id)
            if made is None:
                return None
            self._cached[fru_id] = made
        data = self._cached[fru_id]
        if fru_id == 0 and self._faults.active(Fault.FRU_BAD_CHECKSUM):
            return _spoil_board_area(data)
        return data


def _make(spec: BmcSpec, fru_id: int) -> bytes | None:
    hardware, serial = spec.hardware, spec.chassis.serial
    if fru_id == 0:
        chassis = bytes((RACK_MOUNT,)) + _fields(hardware.part, serial)
        board_fields = _fields(
            hardware.manufacturer, hardware.product, f"BRD-{serial}", hardware.part, "LAB1"
        )
        board = bytes((ENGLISH,)) + struct.pack("<I", MADE_AT_MIN)[:3] + board_fields
        product = bytes((ENGLISH,)) + _fields(
            hardware.manufacturer, hardware.product, hardware.part, "01", serial, spec.chassis.name, "LAB1"
        )
        return _assemble(chassis, board, product).ljust(FRU_SIZE, b"\0")
    if fru_id in (1, 2):
        product = bytes((ENGLISH,)) + _fields(
            hardware.manufacturer, "PWR SPLY,2800W,RDNT", "0LABPSU", "A00", f"{serial}-PSU{fru_id}", "", ""
        )
        return _assemble(None, None, product).ljust(SUPPLY_SIZE, b"\0")
    return None


def _fields(*texts: str) -> bytes:
    """Return type/length fields in 8-bit ASCII, closed by the end mark."""
    parts = (text.encode("latin-1")[:63] for text in texts)
    # One character would read as the end mark (type 3, length 1), so it is padded.
    padded = (part + b" " if len(part) == 1 else part for part in parts)
    return b"".join(bytes((0xC0 | len(part),)) + part for part in padded) + _END


def _area(body: bytes) -> bytes:
    size = (len(body) + 3 + 7) // 8 * 8
    data = (bytes((1, size // 8)) + body).ljust(size - 1, b"\0")
    return data + bytes((checksum(data),))


def _assemble(chassis: bytes | None, board: bytes | None, product: bytes | None) -> bytes:
    areas, offsets, position = b"", [], 1
    for body in (chassis, board, product):
        if body is None:
            offsets.append(0)
            continue
        area = _area(body)
        offsets.append(position)
        position += len(area) // 8
        areas += area
    header = bytes((1, 0, *offsets, 0, 0))
    return header + bytes((checksum(header),)) + areas


def _spoil_board_area(data: bytes) -> bytes:
    start = data[3] * 8
    last = start + data[start + 1] * 8 - 1
    return data[:last] + bytes((data[last] ^ 0x5A,)) + data[last + 1 :]
