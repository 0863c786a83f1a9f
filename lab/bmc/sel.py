"""The System Event Log (IPMI 2.0 §31, record formats §32)."""

from __future__ import annotations

import struct
from bisect import bisect_left
from collections.abc import Callable

from lab.bmc.clock import Clock
from lab.bmc.ipmi.message import Completion, Refusal

RECORD_SIZE = 16
SYSTEM_EVENT = 0x02
FIRST_TIMESTAMPED_OEM, FIRST_BARE_OEM = 0xC0, 0xE0
ERASE_IN_PROGRESS = 0x81
BMC_GENERATOR = 0x0020
LAST_ID = 0xFFFE
_FIRST, _LAST = 0x0000, 0xFFFF


class EventLog:
    """Records by id, oldest first. Erasing takes `erase_s`; until then the log answers "erasing"."""

    def __init__(self, clock: Clock, capacity: int, erase_s: float, now: Callable[[], float]) -> None:
        self.capacity = capacity
        self.added_at = 0
        self.erased_at = 0
        self.overflow = False
        self._clock = clock
        self._erase_s = erase_s
        self._now = now
        self._ids: list[int] = []
        self._records: list[bytes] = []
        self._next_id = 1
        self._reservation = 0
        self._erasing_until = 0.0
        self._watchers: list[Callable[[bytes], None]] = []

    def watch(self, watcher: Callable[[bytes], None]) -> None:
        """Have `watcher` called with each record that is logged."""
        self._watchers.append(watcher)

    def __len__(self) -> int:
        return len(self._records)

    @property
    def free_bytes(self) -> int:
        return (self.capacity - len(self._records)) * RECORD_SIZE

    @property
    def erasing(self) -> bool:
        return self._now() < self._erasing_until

    @property
    def records(self) -> tuple[bytes, ...]:
        return tuple(self._records)

    def add(
        self,
        sensor_type: int,
        number: int,
        data: bytes,
        *,
        event_type: int = 0x6F,
        asserted: bool = True,
        at: int | None = None,
    ) -> int:
        """Log a system event of the BMC's own; `data` is event data 1 to 3."""
        direction = event_type | (0 if asserted else 0x80)
        body = struct.pack(
            "<IHBBBB3s", at or self._clock.now(), BMC_GENERATOR, 4, sensor_type, number, direction, data
        )
        return self._append(bytes((SYSTEM_EVENT,)) + body)

    def add_record(self, record: bytes) -> int:
        """Log a whole record as Add SEL Entry gives it; id and time stamp become the BMC's."""
        kind = record[2]
        body = record[2:RECORD_SIZE]
        if kind < FIRST_BARE_OEM:
            body = bytes((kind,)) + struct.pack("<I", self._clock.now()) + record[7:RECORD_SIZE]
        return self._append(body)

    def reserve(self) -> int:
        self._reservation = self._reservation % 0xFFFF + 1
        return self._reservation

    def check_reservation(self, reservation: int) -> None:
        if reservation != self._reservation or not reservation:
            raise Refusal(Completion.RESERVATION_LOST)

    def get(self, record_id: int) -> tuple[int, bytes]:
        """Return the id of the record after this one, and this one."""
        index = self._index(record_id)
        following = self._ids[index + 1] if index + 1 < len(self._ids) else _LAST
        return following, self._records[index]

    def delete(self, record_id: int) -> int:
        index = self._index(record_id)
        self._reservation = 0
        self.erased_at = self._clock.now()
        del self._records[index]
        return self._ids.pop(index)

    def clear(self) -> None:
        """Begin to erase; afterwards the log says that it was cleared, as BMCs do."""
        self._ids.clear()
        self._records.clear()
        self._next_id = 1
        self._reservation = 0
        self.overflow = False
        self.erased_at = self._clock.now()
        self._erasing_until = self._now() + self._erase_s

    def require_idle(self) -> None:
        if self.erasing:
            raise Refusal(ERASE_IN_PROGRESS)

    def _append(self, body: bytes) -> int:
        if len(self._records) >= self.capacity or self._next_id > LAST_ID:
            self.overflow = True
            raise Refusal(Completion.OUT_OF_SPACE)
        record_id = self._next_id
        self._next_id += 1
        self._ids.append(record_id)
        self._records.append(struct.pack("<H", record_id) + body)
        self.added_at = self._clock.now()
        for watcher in self._watchers:
            watcher(self._records[-1])
        return record_id

    def _index(self, record_id: int) -> int:
        if not self._ids:
            raise Refusal(Completion.NOT_PRESENT)
        if record_id == _FIRST:
            return 0
        if record_id == _LAST:
            return len(self._ids) - 1
        index = bisect_left(self._ids, record_id)
        if index == len(self._ids) or self._ids[index] != record_id:
            raise Refusal(Completion.NOT_PRESENT)
        return index
