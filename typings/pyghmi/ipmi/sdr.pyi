from types import ModuleType

TYPE_UNKNOWN: int
TYPE_SENSOR: int
TYPE_FRU: int

class SensorReading:
    name: str
    type: str
    value: float | None
    units: str
    health: int
    states: list[str]
    unavailable: int

class SDREntry:
    sdrtype: int
    rectype: int
    readable: bool
    name: str
    sensor_name: str
    sensor_type: str
    sensor_owner: int
    sensor_lun: int
    sensor_number: int
    reading_type: int
    numeric_format: int
    linearization: int | None
    has_thresholds: bool
    unit_suffix: str
    fru_name: str
    fru_number: int
    fru_logical: bool
    def __init__(
        self,
        entrybytes: bytearray,
        event_consts: ModuleType,
        reportunsupported: bool = ...,
        mfg_id: int = ...,
        prod_id: int = ...,
    ) -> None: ...
    def decode_sensor_reading(self, ipmicmd: object, reading: bytearray) -> SensorReading: ...
    def decode_value(self, ipmicmd: object, value: float) -> float: ...
