"""Everything that `capability.Bmc` promises, over one IPMI session."""

from __future__ import annotations

import contextlib
import uuid
from datetime import UTC, datetime

from bmc.capability import (
    BmcIdentity,
    BootSetting,
    BootTarget,
    PowerAction,
    PowerState,
    Reading,
    SelEntry,
)
from bmc.errors import BadAnswer, CommandRefused, Unreachable, Unsupported
from bmc.ipmi import commands, decode
from bmc.ipmi import lan as network
from bmc.ipmi.endpoint import Endpoint
from bmc.ipmi.records import FruDevice, SensorRecords, clear_sel, sel_entries
from bmc.ipmi.session import Session
from bmc.power import Switch

_CONTROL = {PowerAction.OFF: 0, PowerAction.ON: 1, PowerAction.RESET: 3, PowerAction.SOFT: 5}
_BOOT = {BootTarget.NONE: 0, BootTarget.PXE: 1, BootTarget.DISK: 2, BootTarget.CD: 5, BootTarget.BIOS: 6}
_BOOT_FLAGS, _BOOT_TIMEOUT = 0x05, 0x03
_VALID, _PERSISTENT, _UEFI = 0x80, 0x40, 0x20
_KEEP_FLAGS = 0x08  # else the BMC forgets the boot device when no power command comes within 60 s
_RESET_WAIT_S = 2.0
_MAKERS = {
    343: "Intel",
    674: "Dell",
    5703: "NVIDIA",
    7244: "Quanta",
    10368: "Fujitsu",
    10876: "Supermicro",
    11: "HPE",
    15370: "GIGABYTE",
    19046: "Lenovo",
    2623: "ASUS",
    47196: "HPE",
    49622: "Wiwynn",
}


class Ipmi:
    """A BMC spoken to over IPMI; `session` must be open and stays the caller's to close."""

    def __init__(self, session: Session, endpoint: Endpoint) -> None:
        self.session = session
        self.node, self.host = session.node, session.host
        self._sdrs = endpoint.sdrs
        self._device_id: bytes | None = None
        self._table: decode.SensorTable | None = None
        self._switch = Switch(self.node, self.host, self.power_state, self._control)

    # --- identity

    async def device_id(self) -> bytes:
        if self._device_id is None:
            self._device_id = await self.session.command(commands.DEVICE_ID)
        return self._device_id

    async def identity(self) -> BmcIdentity:
        device = await self.device_id()
        fru = await self._fru_device(0)
        maker = int.from_bytes(device[6:9], "little") & 0xFFFFF
        named = fru.get("product manufacturer") or fru.get("board manufacturer")
        return BmcIdentity(
            protocol="ipmi",
            manufacturer=named or _MAKERS.get(maker, f"IANA {maker}"),
            product=fru.get("product name") or fru.get("board product") or f"product {device[9:11].hex()}",
            firmware=f"{device[2] & 0x7F}.{device[3]:02x}",
            guid=str(uuid.UUID(bytes=self.session.guid[::-1])),
            serial=fru.get("chassis serial") or fru.get("product serial"),
        )

    # --- power

    async def power_state(self) -> PowerState:
        status = await self.session.command(commands.CHASSIS_STATUS)
        return PowerState.ON if status[0] & 1 else PowerState.OFF

    async def set_power(self, action: PowerAction, *, wait_s: float = 60.0) -> PowerState:
        return await self._switch.set(action, wait_s)

    async def _control(self, action: PowerAction) -> None:
        await self.session.command(commands.CHASSIS_CONTROL, bytes((_CONTROL[action],)))

    # --- boot device

    async def boot_setting(self) -> BootSetting:
        answer = await self.session.command(commands.GET_BOOT_OPTION, bytes((_BOOT_FLAGS, 0, 0)))
        flags, device = answer[2], answer[3] >> 2 & 0x0F
        valid = bool(flags & _VALID) and not answer[1] & 0x80
        target = next((known for known, code in _BOOT.items() if code == device), None)
        if target is None:
            if valid:
                raise BadAnswer(self.node, self.host, f"unknown boot device {device:#x}")
            target = BootTarget.NONE
        return BootSetting(target, bool(flags & _UEFI), bool(flags & _PERSISTENT), valid)

    async def set_boot(
        self, target: BootTarget, *, uefi: bool = True, persistent: bool = False
    ) -> BootSetting:
        with contextlib.suppress(CommandRefused, Unsupported):  # then the flag lives for 60 s
            await self.session.command(commands.SET_BOOT_OPTION, bytes((_BOOT_TIMEOUT, _KEEP_FLAGS)))
        flags = _VALID | (_PERSISTENT if persistent else 0) | (_UEFI if uefi else 0)
        data = bytes((_BOOT_FLAGS, flags, _BOOT[target] << 2, 0, 0, 0))
        await self.session.command(commands.SET_BOOT_OPTION, data)
        return await self.boot_setting()

    # --- event log

    async def sel(self) -> tuple[SelEntry, ...]:
        """Return the event log, oldest first, with sensor names where the repository has them."""
        entries = await sel_entries(self.session)
        try:
            table = await self._sensor_table() if entries else decode.SensorTable()
        except Unsupported:
            table = decode.SensorTable()
        decoder = decode.EventDecoder(table)
        return tuple(decoder.decode(entry) for entry in entries)

    async def clear_sel(self) -> None:
        await clear_sel(self.session)

    async def clock(self) -> datetime | None:
        """Return the event log's clock; None where it was never set."""
        answer = await self.session.command(commands.SEL_TIME)
        return decode.event_time(int.from_bytes(answer[:4], "little"))

    async def set_clock(self, now: datetime | None = None) -> None:
        """Set the event log's clock, by default to this machine's time."""
        seconds = int((now or datetime.now(UTC)).timestamp())
        await self.session.command(commands.SET_SEL_TIME, seconds.to_bytes(4, "little"))

    # --- sensors and inventory

    async def _sensor_table(self) -> decode.SensorTable:
        if self._table is None:
            device = await self.device_id()
            records = await SensorRecords(self.session, device).cached(self._sdrs)
            maker = int.from_bytes(device[6:9], "little") & 0xFFFFF
            self._table = decode.sensor_table(records, maker, int.from_bytes(device[9:11], "little"))
        return self._table

    async def sensors(self) -> tuple[Reading, ...]:
        """Read every sensor of the repository; one that the BMC refuses has health unknown."""
        readings = []
        for sensor in (await self._sensor_table()).readable:
            command = commands.SENSOR_READING
            try:
                answer = await self.session.command(command, bytes((sensor.number,)))
            except (CommandRefused, Unsupported, BadAnswer):
                answer = b""
            readings.append(decode.reading(sensor, answer))
        return tuple(readings)

    async def fru(self) -> dict[str, dict[str, str]]:
        """Return device name -> field -> value for device 0 and every device of the repository."""
        names = {0: "builtin"}
        try:
            table = await self._sensor_table()
            names |= {number: entry.name for number, entry in table.fru.items() if entry.fru_logical}
        except Unsupported:
            pass
        found: dict[str, dict[str, str]] = {}
        for number, name in sorted(names.items()):
            fields = await self._fru_device(number)
            if fields:
                found[name if name not in found else f"{name} #{number}"] = fields
        return found

    async def _fru_device(self, number: int) -> dict[str, str]:
        try:
            data = await FruDevice(self.session, number).read()
        except (CommandRefused, Unsupported):
            return {}  # absent or unreadable: the same to a reader
        return decode.fru_fields(data)

    # --- the controller

    async def identify(self, *, on: bool, seconds: int = 60) -> None:
        """Blink the locator for `seconds` (at most 255; 0: until told otherwise), or stop."""
        data = bytes((0, 1)) if on and seconds == 0 else bytes((min(max(seconds, 0), 255) if on else 0,))
        await self.session.command(commands.CHASSIS_IDENTIFY, data)

    async def reset_bmc(self) -> None:
        with contextlib.suppress(Unreachable):  # many reset before they answer
            await self.session.command(commands.COLD_RESET, deadline_s=_RESET_WAIT_S)

    async def lan(self) -> network.LanSettings:
        return await network.lan_settings(self.session)

    async def users(self) -> tuple[network.User, ...]:
        return await network.users(self.session)

    async def watchdog(self) -> network.Watchdog:
        return await network.watchdog(self.session)

    async def stop_watchdog(self) -> None:
        """Stop the timer: one left running by an operating system cuts a node that is being imaged."""
        await network.stop_watchdog(self.session)
