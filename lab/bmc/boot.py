"""System boot options: the override that a BMC keeps for its machine (IPMI 2.0 §28.12 to 28.14)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from lab.bmc.faults import Fault, Faults
from lab.bmc.ipmi.message import Completion, Refusal

NOT_SUPPORTED = 0x80
ALREADY_IN_PROGRESS = 0x81
SET_IN_PROGRESS, SERVICE_SELECTOR, SERVICE_SCAN, VALID_BIT_CLEARING, INFO_ACK, FLAGS, INITIATOR = range(7)
_SIZES = {0: 1, 1: 1, 2: 1, 3: 1, 4: 2, 5: 5, 6: 9}
_VALID, _PERSISTENT, _UEFI = 0x80, 0x40, 0x20
_KEEP_ON_TIMEOUT = 0x08  # bit 3 of the parameter "BMC boot flag valid bit clearing"
_DEVICES = {1: "pxe", 2: "disk", 3: "disk", 5: "cd", 6: "bios", 8: "cd", 11: "disk"}
_SELECTORS = {"pxe": 1, "disk": 2, "cd": 5, "bios": 6}


@dataclass(frozen=True, slots=True)
class BootOverride:
    """The override as the machine's firmware would read it; device None means no override."""

    device: str | None
    uefi: bool
    persistent: bool
    valid: bool


class BootOptions:
    """Parameters 0 to 6. A one-time override lapses after `timeout_s` without a power command."""

    def __init__(self, faults: Faults, timeout_s: float, now: Callable[[], float]) -> None:
        self._faults = faults
        self._timeout_s = timeout_s
        self._now = now
        self._values = {number: bytes(size) for number, size in _SIZES.items()}
        self._locked: set[int] = set()
        self._set_at = now()
        self._lapses = True

    def read(self, number: int) -> tuple[bool, bytes]:
        """Return whether the parameter is marked invalid, and its data."""
        if number not in _SIZES:
            raise Refusal(NOT_SUPPORTED)
        self._lapse()
        return number in self._locked, self._values[number]

    def write(self, number: int, data: bytes, *, invalid: bool) -> None:
        """Set a parameter; without data only its validity mark changes."""
        if number not in _SIZES:
            raise Refusal(NOT_SUPPORTED)
        if data:
            self._store(number, data)
        if invalid:
            self._locked.add(number)
        else:
            self._locked.discard(number)

    @property
    def override(self) -> BootOverride:
        self._lapse()
        flags = self._values[FLAGS]
        return BootOverride(
            device=_DEVICES.get(flags[1] >> 2 & 0x0F),
            uefi=bool(flags[0] & _UEFI),
            persistent=bool(flags[0] & _PERSISTENT),
            valid=bool(flags[0] & _VALID),
        )

    def override_with(self, device: str | None, *, uefi: bool, persistent: bool) -> None:
        """Set the override as Redfish does: it waits for the next boot, however long that takes."""
        first = _VALID | (_PERSISTENT if persistent else 0) | (_UEFI if uefi else 0)
        selector = _SELECTORS[device] << 2 if device else 0
        self._store(FLAGS, bytes((first, selector, 0, 0, 0)) if device else bytes(5))
        self._lapses = False

    def take(self) -> str | None:
        """Return the override for a boot that starts now, and use it up unless it is persistent."""
        override = self.override
        if not override.valid or FLAGS in self._locked:
            return None
        if self._faults.active(Fault.BOOT_FLAG_IGNORED):
            return None
        if not override.persistent:
            flags = self._values[FLAGS]
            self._values[FLAGS] = bytes((flags[0] & ~_VALID,)) + flags[1:]
            self._values[INFO_ACK] = b"\x00\x01"  # the firmware has handled the boot info
        return override.device

    def _store(self, number: int, data: bytes) -> None:
        if number == SET_IN_PROGRESS:
            if data[0] & 3 == 1 and self._values[SET_IN_PROGRESS][0] & 3 == 1:
                raise Refusal(ALREADY_IN_PROGRESS)
            self._values[number] = bytes((data[0] & 3,))
            return
        if number == INFO_ACK:
            self._acknowledge(data)
            return
        size = _SIZES[number]
        if len(data) < size:
            raise Refusal(Completion.LENGTH_INVALID)
        self._values[number] = data[:size]
        if number == FLAGS:
            self._set_at = self._now()
            self._lapses = True

    def _acknowledge(self, data: bytes) -> None:
        """Write the bits of the second byte that the mask in the first names."""
        if len(data) < 2:
            raise Refusal(Completion.LENGTH_INVALID)
        old = self._values[INFO_ACK][1]
        self._values[INFO_ACK] = bytes((0, old & ~data[0] | data[1] & data[0]))

    def _lapse(self) -> None:
        flags = self._values[FLAGS]
        kept = self._values[VALID_BIT_CLEARING][0] & _KEEP_ON_TIMEOUT or flags[0] & _PERSISTENT
        if flags[0] & _VALID and self._lapses and not kept and self._now() - self._set_at > self._timeout_s:
            self._values[FLAGS] = bytes((flags[0] & ~_VALID,)) + flags[1:]
