"""The event log: what MAAS writes down, in MAAS's words."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum
from itertools import islice

from lab.maas.model.machine import Machine
from lab.maas.model.region import Event, Region

LEVELS = {"AUDIT": 0, "DEBUG": 10, "INFO": 20, "WARNING": 30, "ERROR": 40, "CRITICAL": 50}
LEVEL_NAMES = {number: name for name, number in LEVELS.items()}
MOST = 1000


class Kind(Enum):
    """The kinds of events: MAAS's text and level."""

    NEW = ("New", 20)
    COMMISSIONING = ("Commissioning", 20)
    FAILED_COMMISSIONING = ("Failed commissioning", 20)
    TESTING = ("Testing", 20)
    FAILED_TESTING = ("Failed testing", 20)
    READY = ("Ready", 20)
    DEPLOYING = ("Deploying", 20)
    DEPLOYED = ("Deployed", 20)
    RELEASING = ("Releasing", 20)
    RELEASED = ("Released", 20)
    DISKS_ERASED = ("Disks erased", 20)
    ENTERING_RESCUE_MODE = ("Entering rescue mode", 20)
    RESCUE_MODE = ("Rescue mode", 20)
    EXITED_RESCUE_MODE = ("Exited rescue mode", 20)
    PERFORMING_PXE_BOOT = ("Performing PXE boot", 20)
    LOADING_EPHEMERAL = ("Loading ephemeral", 20)
    GATHERING_INFO = ("Gathering information", 20)
    RUNNING_TEST = ("Running test", 20)
    SCRIPT = ("Script", 20)
    CONFIGURING_STORAGE = ("Configuring storage", 20)
    INSTALLING_OS = ("Installing OS", 20)
    CONFIGURING_OS = ("Configuring OS", 20)
    REBOOTING = ("Rebooting", 20)
    ABORTED_COMMISSIONING = ("Aborted commissioning", 20)
    ABORTED_DEPLOYMENT = ("Aborted deployment", 20)
    ABORTED_DISK_ERASING = ("Aborted disk erasing", 20)
    ABORTED_TESTING = ("Aborted testing", 20)
    POWERING_ON = ("Powering on", 10)
    POWERED_ON = ("Node powered on", 10)
    POWERED_OFF = ("Node powered off", 10)
    POWER_ON_FAILED = ("Failed to power on node", 40)
    POWER_OFF_FAILED = ("Failed to power off node", 40)
    POWER_CYCLE_FAILED = ("Failed to power cycle node", 40)
    POWER_QUERY_FAILED = ("Failed to query node's BMC", 30)
    MARK_FAILED = ("Marking node failed", 40)
    INSTALL_FAILED = ("Node installation failure", 40)
    POST_INSTALL_FAILED = ("Node post-installation failure", 40)
    COMMISSIONING_FAILED = ("Node commissioning failure", 40)
    INSTALL = ("Node installation", 10)
    INSTALLATION_FINISHED = ("Installation complete", 10)
    COMMISSIONING_EVENT = ("Node commissioning", 10)
    HTTP_REQUEST = ("HTTP Request", 10)
    PXE_REQUEST = ("PXE Request", 10)
    STATUS_CHANGED = ("Node changed status", 10)
    SCRIPT_RESULT = ("Script result", 10)
    USER_COMMISSION = ("User starting node commissioning", 10)
    USER_ABORT_COMMISSION = ("User aborting node commissioning", 10)
    USER_TEST = ("User starting node testing", 10)
    USER_ABORT_TEST = ("User aborting node testing", 10)
    USER_OVERRIDE = ("User overrode 'Failed testing' status", 10)
    USER_ACQUIRE = ("User acquiring node", 10)
    USER_DEPLOY = ("User starting deployment", 10)
    USER_ABORT_DEPLOY = ("User aborting deployment", 10)
    USER_ERASE = ("User erasing disk", 10)
    USER_ABORT_ERASE = ("User aborting disk erase", 10)
    USER_RELEASE = ("User releasing node", 10)
    USER_BROKEN = ("User marking node broken", 10)
    USER_FIXED = ("User marking node fixed", 10)
    USER_LOCK = ("User locking node", 10)
    USER_UNLOCK = ("User unlocking node", 10)
    USER_START = ("User powering up node", 10)
    USER_STOP = ("User powering down node", 10)
    USER_RESCUE = ("User starting rescue mode", 10)
    USER_EXIT_RESCUE = ("User stopping rescue mode", 10)

    @property
    def text(self) -> str:
        """The words in the log."""
        return self.value[0]

    @property
    def level(self) -> int:
        """The logging level."""
        return self.value[1]


def record(
    region: Region, now: float, machine: Machine, kind: Kind, description: str = "", *, action: str = ""
) -> Event:
    """Write an event that MAAS itself caused; INFO and above become the machine's status message."""
    if kind.level >= LEVELS["INFO"]:
        machine.status_message = f"{kind.text} - {description}" if description else kind.text
        machine.status_action = action
    return _append(region, now, machine, kind, ("unknown", description))


def record_request(region: Region, now: float, machine: Machine, kind: Kind, asked: tuple[str, str]) -> Event:
    """Write that a user asked for something; `asked` is the user's name and comment."""
    user, comment = asked
    text = f"({user}) - {comment}" if comment else f"({user})"
    return _append(region, now, machine, kind, (user, text))


def _append(region: Region, now: float, machine: Machine, kind: Kind, said: tuple[str, str]) -> Event:
    event = Event(
        id=region.number("event"),
        system_id=machine.system_id,
        hostname=machine.hostname,
        username=said[0],
        level=kind.level,
        type=kind.text,
        description=said[1],
        created=now,
    )
    region.events.append(event)
    region.machine_events[machine.system_id].append(event)
    return event


@dataclass(frozen=True, slots=True)
class EventQuery:
    """Which events to find; empty sets match every machine."""

    level: int = LEVELS["INFO"]
    limit: int = 100
    after: int | None = None
    before: int | None = None
    system_ids: frozenset[str] | None = None


def find(region: Region, query: EventQuery) -> list[Event]:
    """Return matching events, newest first."""
    if query.system_ids is not None and len(query.system_ids) == 1:
        source = region.machine_events.get(next(iter(query.system_ids)), ())
    else:
        source = region.events
    if query.after is not None:
        forward = (one for one in source if one.id > query.after and _matches(one, query))
        return list(reversed(list(islice(forward, query.limit))))
    return list(islice(_backward(source, query), query.limit))


def _backward(source: object, query: EventQuery) -> Iterator[Event]:
    for one in reversed(source):  # type: ignore[call-overload]
        if (query.before is None or one.id < query.before) and _matches(one, query):
            yield one


def _matches(event: Event, query: EventQuery) -> bool:
    if event.level < query.level:
        return False
    return query.system_ids is None or event.system_id in query.system_ids
