"""Reads ipmitool, FreeIPMI and OpenBMC: event logs, sensors, chassis, FRU, LAN, refusals."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from health.errors import Unreadable

_SEL = re.compile(
    r"^\s*(?P<id>[0-9a-f]{1,5})\s*\|\s*(?P<date>[^|]*)\|\s*(?P<time>[^|]*)\|\s*(?P<sensor>[^|]*)\|\s*(?P<event>[^|]*)"
    r"(?:\|\s*(?P<state>[^|]*))?(?:\|\s*(?P<detail>.*))?$"
)
_OPENBMC = re.compile(
    r"SEL Entry: FRU: \d+,.*?Sensor: (?P<sensor>[^(]+) \(0x\w+\), Event Data: \(\w+\) (?P<event>.*?)"
    r"(?P<state> (?:DE)?ASSERT(?:ION)?)?$",
    re.IGNORECASE,
)
_STATUSES = frozenset({"ok", "ns", "nc", "cr", "nr", "na", "lnc", "lcr", "lnr", "unc", "ucr", "unr"})


@dataclass(frozen=True, slots=True)
class Event:
    """One row of an event log. `asserted` None where the row does not tell."""

    id: str
    sensor: str
    event: str
    asserted: bool | None
    state: str = ""  # FreeIPMI's own judgement
    date: str = "unknown"

    @property
    def dated(self) -> bool:
        """Say whether it came when the BMC knew the time."""
        return not self.date.lower().startswith(("pre-init", "postinit"))


@dataclass(frozen=True, slots=True)
class Sensor:
    """One row of sensors: its reading as it stands, and its state in ipmitool's letters."""

    name: str
    number: str
    reading: str
    state: str


@dataclass(frozen=True, slots=True)
class FruDevice:
    """One device of an inventory, or why it could not be read."""

    name: str
    fields: dict[str, str] = field(default_factory=dict)
    error: str = ""


def read_sel(text: str) -> tuple[Event, ...]:
    """Read `ipmitool sel list|elist`, FreeIPMI's ipmi-sel, or OpenBMC's log-util. Raises Unreadable."""
    events = []
    freeipmi = bool(re.search(r"^ID\s*\|", text, re.MULTILINE))
    for line in text.splitlines():
        if found := _OPENBMC.search(line):
            lowered = (found["state"] or "").strip().lower()
            event = found["event"].strip()
            events.append(Event("", found["sensor"].strip(), event, not lowered.startswith("de")))
        elif freeipmi and line.count("|") == 6:
            cells = [cell.strip() for cell in line.split("|")]
            if cells[0] != "ID":
                events.append(Event(cells[0], f"{cells[4]} {cells[3]}", cells[6], None, cells[5]))
        elif row := _SEL.match(line):
            state = (row["state"] or "").strip().lower()
            asserted = None if state not in ("asserted", "deasserted") else state == "asserted"
            event = row["event"].strip()
            if row["sensor"].startswith("OEM record"):
                event = f"OEM record {event} {state}".strip()
            date = row["date"].strip()
            events.append(Event(row["id"], row["sensor"].strip(), event, asserted, date=date))
    if not events and "no entries" not in text.lower():
        raise Unreadable("event log", f"it begins {text.strip()[:60]!r}")
    return tuple(events)


def read_sensors(text: str) -> tuple[Sensor, ...]:
    """Read `ipmitool sdr`, `sdr elist`, `sensor`, their CSV, or `sdr -v`. Raises Unreadable."""
    if "Sensor ID" in text:
        return _blocks(text)
    sensors = []
    for line in text.splitlines():
        cells = [cell.strip() for cell in (line.split("|") if "|" in line else line.split(","))]
        if len(cells) < 3:
            continue
        at = next((n for n, cell in enumerate(cells[1:4], 1) if cell.lower() in _STATUSES), None)
        if re.fullmatch(r"[0-9A-Fa-f]{2}h", cells[1]) and (at != 2 or len(cells) != 5):
            raise Unreadable("sensors", f"the line of {cells[0]} is not whole")
        if at is None:
            continue
        number = next((cell for cell in cells[1:3] if re.fullmatch(r"[0-9A-Fa-f]{1,2}h", cell)), "")
        beside = cells[1] if at > 1 else ""
        reading = cells[-1] if number else beside
        sensors.append(Sensor(cells[0], number, reading, cells[at].lower()))
    if not sensors:
        raise Unreadable("sensors", f"it begins {text.strip()[:60]!r}")
    return tuple(sensors)


def _blocks(text: str) -> tuple[Sensor, ...]:
    sensors = []
    for block in re.split(r"^Sensor ID", text, flags=re.MULTILINE)[1:]:
        name = re.match(r"\s*: (?P<name>.*?) \((?P<number>0x\w+)\)", block)
        status = re.search(r"^\s*Status\s*: (\S+)", block, re.MULTILINE)
        reading = re.search(r"^\s*Sensor Reading\s*: (.*)", block, re.MULTILINE)
        states = re.search(r"^\s*States Asserted\s*:(.*(?:\n\s+\[.*)*)", block, re.MULTILINE)
        if not name:
            raise Unreadable("sensors", "a block has no name")
        said = (reading[1] if reading else "") + (states[1] if states else "")
        sensors.append(Sensor(name["name"], name["number"], said.strip(), status[1] if status else ""))
    return tuple(sensors)


def read_monitoring(text: str) -> tuple[Sensor, ...]:
    """Read FreeIPMI's ipmi-sensors or ipmimonitoring. Raises Unreadable."""
    words = {"nominal": "ok", "warning": "nc", "critical": "cr"}
    sensors = []
    for line in text.splitlines():
        cells = [cell.strip() for cell in line.split("|")]
        if len(cells) >= 6 and cells[0] != "ID":
            state = words.get(cells[3].lower(), "ns")
            sensors.append(Sensor(cells[1], cells[0], f"{cells[4]} {cells[-1]}", state))
    if not sensors:
        raise Unreadable("ipmimonitoring", f"it begins {text.strip()[:60]!r}")
    return tuple(sensors)


def read_fields(text: str) -> dict[str, str]:
    """Read "label : value" lines; a label that touches its colon counts. Continued lines are joined."""
    fields: dict[str, str] = {}
    label = ""
    for line in text.splitlines():
        left, sign, value = line.partition(":")
        if not sign:
            continue
        if left.strip():
            label = left.strip().lower()
            fields[label] = value.strip()
        elif label:
            fields[label] += f"\n{value.strip()}"
    return fields


def read_fru(text: str) -> tuple[FruDevice, ...]:
    """Read `ipmitool fru print` or FreeIPMI's ipmi-fru. Raises Unreadable."""
    devices: list[FruDevice] = []
    for line in text.splitlines():
        label, sign, value = line.partition(":")
        label, value = label.strip(), value.strip().strip(".")
        if not sign:
            continue
        if label in ("FRU Device Description", "FRU Inventory Device"):
            devices.append(FruDevice(value))
        elif label == "FRU Error" and devices:
            devices[-1] = FruDevice(devices[-1].name, devices[-1].fields, value)
        elif devices:
            devices[-1].fields[label] = value
    if not devices:
        raise Unreadable("FRU inventory", f"it begins {text.strip()[:60]!r}")
    return tuple(devices)
