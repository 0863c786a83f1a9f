"""Fetches records over a session: sensor repository, event log, inventory. Decodes nothing."""

from __future__ import annotations

import asyncio
import struct

from bmc.errors import BadAnswer, CommandRefused
from bmc.ipmi import commands
from bmc.ipmi.session import Command, Session

LAST = 0xFFFF  # the record id after the last
_WHOLE = 0xFF
_TOO_MUCH = {0xC7, 0xC8, 0xC9, 0xCA, 0xFF}  # what BMCs say to a read that is too large
_RESERVATION_LOST = 0xC5
_NOT_FOUND = 0xCB
_DEVICE_BUSY = 0x81  # or: the event log is being erased
_SMALLEST = 8
_TRIES = 8


async def _patient(session: Session, command: Command, data: bytes = b"") -> bytes:
    """Send a command again while the log is being erased or the device is busy: up to a second."""
    for pause in (0.05, 0.1, 0.2, 0.4, 0.8):
        try:
            return await session.command(command, data)
        except CommandRefused as exc:
            if exc.code != _DEVICE_BUSY:
                raise
        await asyncio.sleep(pause)
    return await session.command(command, data)


async def sel_entries(session: Session) -> tuple[bytes, ...]:
    """Return the event log's records of 16 bytes, oldest first."""
    info = await _patient(session, commands.SEL_INFO)
    entries: dict[int, bytes] = {}
    wanted = 0 if int.from_bytes(info[1:3], "little") else LAST
    while wanted != LAST:
        try:
            answer = await _patient(session, commands.SEL_ENTRY, struct.pack("<HHBB", 0, wanted, 0, _WHOLE))
        except CommandRefused as exc:
            if exc.code == _NOT_FOUND:  # emptied, or shortened, while we read
                break
            raise
        record = answer[2:18]
        if len(record) != 16:
            raise BadAnswer(session.node, session.host, f"event {wanted:#06x} has {len(record)} bytes")
        following = int.from_bytes(answer[:2], "little")
        own = int.from_bytes(record[:2], "little")
        if own in entries or following == wanted:
            raise BadAnswer(session.node, session.host, f"event {own:#06x} comes twice")
        entries[own] = record
        wanted = following
    return tuple(entries.values())


async def clear_sel(session: Session) -> None:
    """Erase the event log and wait until the BMC says that it is done."""
    reservation = await _patient(session, commands.RESERVE_SEL)
    await session.command(commands.CLEAR_SEL, reservation[:2] + b"CLR\xaa")
    for _ in range(50):
        try:
            progress = await session.command(commands.CLEAR_SEL, reservation[:2] + b"CLR\x00")
        except CommandRefused as exc:  # erasing may cost the reservation: then ask without
            if exc.code != _RESERVATION_LOST:
                raise
            reservation = await _patient(session, commands.RESERVE_SEL)
            continue
        if progress[0] & 0x0F:
            return
        await asyncio.sleep(0.1)
    raise BadAnswer(session.node, session.host, "the event log is still being erased after 5 s")


class SensorRecords:
    """Reads the sensor data records, whole where the BMC lets us, else in shrinking pieces."""

    def __init__(self, session: Session, device_id: bytes) -> None:
        self._session = session
        self._device_id = device_id
        self._chunk = _WHOLE
        self._reservation = b"\x00\x00"
        own = device_id[1] & 0x80 and not device_id[5] & 0x02  # no repository, only its own sensors
        self._info, self._reserve, self._get = (
            (commands.DEVICE_SDR_INFO, commands.RESERVE_DEVICE_SDR, commands.GET_DEVICE_SDR)
            if own
            else (commands.SDR_INFO, commands.RESERVE_SDR, commands.GET_SDR)
        )

    async def cached(self, cache: dict[bytes, tuple[bytes, ...]]) -> tuple[bytes, ...]:
        """Return the records, from `cache` where a BMC of the same kind has given them before.

        The same kind: manufacturer, product, firmware, and the repository's size and times.
        """
        info = await self._session.command(self._info)
        key = self._device_id + info[:3] + info[5:13]
        if len(info) < 13 or info[5:13] in (bytes(8), b"\xff" * 8):  # no times: only this BMC's own
            key += f"{self._session.host}:{self._session.target.port}".encode()
        if key not in cache:
            cache[key] = await self.all()
        return cache[key]

    async def all(self) -> tuple[bytes, ...]:
        records: dict[int, bytes] = {}
        wanted = 0
        while wanted != LAST:
            following, record = await self._record(wanted)
            if wanted in records or following == wanted:
                raise BadAnswer(self._session.node, self._session.host, "sensor records go in a circle")
            records[wanted] = record
            wanted = following
        return tuple(records.values())

    async def _record(self, record_id: int) -> tuple[int, bytes]:
        for _ in range(_TRIES):
            try:
                if self._chunk == _WHOLE:
                    return self._split(await self._read(record_id, 0, _WHOLE))
                return await self._in_pieces(record_id)
            except CommandRefused as exc:
                if exc.code in _TOO_MUCH and self._chunk > _SMALLEST:
                    self._chunk = 64 if self._chunk == _WHOLE else self._chunk // 2
                elif exc.code != _RESERVATION_LOST:
                    raise
                self._reservation = (await self._session.command(self._reserve))[:2]
        raise BadAnswer(self._session.node, self._session.host, f"sensor record {record_id} keeps changing")

    async def _in_pieces(self, record_id: int) -> tuple[int, bytes]:
        following, record = self._split(await self._read(record_id, 0, 5))
        size = record[4] + 5 if len(record) == 5 else 0
        while len(record) < size:
            offset = len(record)
            _, piece = self._split(await self._read(record_id, offset, min(self._chunk, size - offset)))
            if not piece:
                break
            record += piece
        return following, record

    async def _read(self, record_id: int, offset: int, size: int) -> bytes:
        request = self._reservation + struct.pack("<HBB", record_id, offset, size)
        return await self._session.command(self._get, request)

    @staticmethod
    def _split(answer: bytes) -> tuple[int, bytes]:
        return int.from_bytes(answer[:2], "little"), answer[2:]


class FruDevice:
    """Reads one inventory device, no further than its areas reach."""

    def __init__(self, session: Session, number: int) -> None:
        self._session = session
        self._number = number
        self._chunk = 128
        self._data = b""

    async def read(self) -> bytes:
        """Return header and areas; empty where the device is absent."""
        info = await _patient(self._session, commands.FRU_INFO, bytes((self._number,)))
        size = int.from_bytes(info[:2], "little")
        unit = 2 if info[2] & 1 else 1  # some devices count in words
        await self._read_to(min(8, size), unit)
        offsets = [8 * byte for byte in self._data[1:5]]
        start = max(offsets, default=0)
        if start:
            await self._read_to(min(start + 2, size), unit)
            length = 8 * self._data[start + 1] if len(self._data) > start + 1 else 0
            await self._read_to(min(start + length, size), unit)
        return self._data

    async def _read_to(self, end: int, unit: int) -> None:
        while len(self._data) < end:
            count = -(-min(self._chunk, end - len(self._data)) // unit)
            request = struct.pack("<BHB", self._number, len(self._data) // unit, count)
            try:
                answer = await _patient(self._session, commands.READ_FRU, request)
            except CommandRefused as exc:
                if exc.code not in _TOO_MUCH or self._chunk <= _SMALLEST:
                    raise
                self._chunk //= 2
                continue
            if not answer[0] or len(answer) == 1:
                return
            self._data += answer[1:]
