"""What the sensors read now, and the events that they log."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

from lab.bmc.ipmi.message import Completion, Refusal
from lab.bmc.sdr import threshold_bytes, threshold_mask
from lab.bmc.sel import EventLog
from lab.bmc.sensor_model import SENSORS, SensorModel
from lab.errors import BadRequest

SWING_PERIOD_S = 600.0
_BY_NUMBER = {model.number: model for model in SENSORS}
_BY_NAME = {model.name: model for model in SENSORS}
_LOWER = 3  # thresholds 0 to 2 are lower ones: crossed going low
_READING_AND_LIMIT = 0x50  # event data 2 holds the reading, 3 the threshold


@dataclass(frozen=True, slots=True)
class Reading:
    """What one sensor says. `raw` and `states` are None where it has no reading."""

    model: SensorModel
    raw: int | None
    states: int | None
    crossed: int  # thresholds crossed, in the bits of threshold_mask

    @property
    def value(self) -> float | None:
        return None if self.raw is None else self.model.scale.value(self.raw)


class Sensors:
    """Readings follow the machine's power, wander slowly, and can be forced."""

    def __init__(
        self, name: str, sel: EventLog, powered: Callable[[], bool], wall: Callable[[], float]
    ) -> None:
        self._sel = sel
        self._powered = powered
        self._wall = wall
        # Each machine reads a little differently, and the same at every start.
        self._phase = sum(name.encode()) % 100 / 100
        self._forced: dict[int, float | None] = {}
        self._thresholds: dict[int, bytes] = {}
        self._hysteresis: dict[int, bytes] = {}

    def model(self, number: int) -> SensorModel:
        """Return a sensor's description. Raises Refusal where there is none."""
        model = _BY_NUMBER.get(number)
        if model is None:
            raise Refusal(Completion.NOT_PRESENT)
        return model

    def read(self, number: int) -> Reading:
        model = self.model(number)
        if not model.analog:
            return Reading(model, None, self._states(model), 0)
        value = self._value(model)
        raw = None if value is None else model.scale.raw(value)
        return Reading(model, raw, None, self._crossed(model, raw))

    def all(self) -> tuple[Reading, ...]:
        return tuple(self.read(model.number) for model in SENSORS)

    def force(self, name: str, value: float | None) -> None:
        """Fix a reading (for a discrete sensor its state bits; None is no reading) and log what it crosses.

        Raises BadRequest for an unknown sensor.
        """
        model = _BY_NAME.get(name)
        if model is None:
            raise BadRequest(
                "sensors", f"no sensor {name!r}", follow=f"choose from: {', '.join(sorted(_BY_NAME))}"
            )
        before = self.read(model.number)
        self._forced[model.number] = value
        after = self.read(model.number)
        if model.analog:
            self._log_thresholds(before, after)
        else:
            self._log_states(before, after)

    def release(self) -> None:
        """Let every forced sensor read by itself again."""
        self._forced.clear()

    def thresholds(self, model: SensorModel) -> bytes:
        return self._thresholds.get(model.number) or threshold_bytes(model)

    def set_thresholds(self, model: SensorModel, mask: int, values: bytes) -> None:
        if not model.analog or mask & ~threshold_mask(model.limits):
            raise Refusal(Completion.ILLEGAL_FOR_RECORD)
        old = self.thresholds(model)
        self._thresholds[model.number] = bytes(
            new if mask >> bit & 1 else kept for bit, (kept, new) in enumerate(zip(old, values, strict=True))
        )

    def hysteresis(self, model: SensorModel) -> bytes:
        return self._hysteresis.get(model.number, b"\x01\x01")

    def set_hysteresis(self, model: SensorModel, values: bytes) -> None:
        self._hysteresis[model.number] = values

    def _value(self, model: SensorModel) -> float | None:
        if model.number in self._forced:
            return self._forced[model.number]
        if not self._powered():
            return model.standby
        turn = self._wall() / SWING_PERIOD_S + self._phase + model.number / 16
        return model.nominal + model.swing * math.sin(2 * math.pi * turn)

    def _states(self, model: SensorModel) -> int | None:
        if model.number in self._forced:
            forced = self._forced[model.number]
            return None if forced is None else int(forced)
        return model.states if self._powered() else model.standby_states

    def _crossed(self, model: SensorModel, raw: int | None) -> int:
        if raw is None:
            return 0
        mask = threshold_mask(model.limits)
        crossed = 0
        for bit, limit in enumerate(self.thresholds(model)):
            beyond = raw <= limit if bit < _LOWER else raw >= limit
            if mask >> bit & 1 and beyond:
                crossed |= 1 << bit
        return crossed

    def _log_thresholds(self, before: Reading, after: Reading) -> None:
        model = after.model
        for bit, limit in enumerate(self.thresholds(model)):
            was, now = before.crossed >> bit & 1, after.crossed >> bit & 1
            if was != now:
                offset = 2 * bit if bit < _LOWER else 2 * bit + 1
                data = bytes((_READING_AND_LIMIT | offset, after.raw or 0, limit))
                self._sel.add(
                    model.kind, model.number, data, event_type=model.reading_type, asserted=bool(now)
                )

    def _log_states(self, before: Reading, after: Reading) -> None:
        changed = (before.states or 0) ^ (after.states or 0)
        for offset in range(15):
            if changed >> offset & 1:
                now = bool((after.states or 0) >> offset & 1)
                data = bytes((offset, 0xFF, 0xFF))
                model = after.model
                self._sel.add(model.kind, model.number, data, event_type=model.reading_type, asserted=now)
