"""Whatever a BMC sends: typed errors or values, never a traceback, never a hang.

`MUSTER_FUZZ_EXAMPLES` sets how many examples each test draws; a long run is the same tests.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from bmc.capability import BmcTarget, BootTarget, Credential, PowerAction
from bmc.console.boots import boots
from bmc.console.causes import Watch
from bmc.console.picture import png
from bmc.console.plain import Plain
from bmc.console.render import Decoder, clean_text, screen
from bmc.console.store import Chunk, entries, recordings
from bmc.drivers import VENDORS, vendor_of
from bmc.errors import BmcError
from bmc.ipmi import decode
from bmc.ipmi.driver import Ipmi
from bmc.ipmi.endpoint import Endpoint
from bmc.ipmi.packet import OPEN_ANSWER, RAKP2, RAKP4, RMCP_IPMI, SUITES, Seal, setup
from bmc.ipmi.records import FruDevice, SensorRecords, sel_entries
from bmc.ipmi.session import COMMAND_S, Command, Session
from bmc.ipmi.sol import Sol
from bmc.redfish import log, readings, tasks
from bmc.redfish.answer import Answer, refusal
from bmc.redfish.driver import Redfish
from bmc.redfish.resource import Resource, parse_time

EXAMPLES = int(os.environ.get("MUSTER_FUZZ_EXAMPLES", "20"))
LONG = EXAMPLES > 1000
fuzz = settings(
    max_examples=EXAMPLES,
    deadline=None if LONG else 2000,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture],
)
pytestmark = pytest.mark.timeout(3600 if LONG else 60)
TARGET = BmcTarget("n1", "127.0.0.1", Credential("admin", "secret"))
blob = st.binary(max_size=300)
json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=12),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
    max_leaves=12,
)


class QuickLoop(asyncio.SelectorEventLoop):
    """A loop whose clock jumps to the next timer, so that deadlines cost nothing."""

    def __init__(self) -> None:
        super().__init__()
        self._jumped = 0.0
        real = self._selector.select  # type: ignore[attr-defined]

        def select(timeout: float | None) -> Any:
            self._jumped += timeout or 0.0
            return real(0)

        self._selector.select = select  # type: ignore[attr-defined]

    def time(self) -> float:
        return super().time() + self._jumped


def run(work: Callable[[], Any]) -> None:
    """Run a coroutine to its end; only BmcError may come out."""
    with asyncio.Runner(loop_factory=QuickLoop) as runner, contextlib.suppress(BmcError):
        runner.run(work())


# --- packets


@fuzz
@given(blob | blob.map(lambda tail: RMCP_IPMI + b"\x06\x00\x00\x00\x00\x01" + tail), st.booleans())
def test_any_datagram_is_taken_or_dropped(data: bytes, ours: bool) -> None:
    endpoint = Endpoint()
    session = Session(endpoint, TARGET)
    endpoint._sessions[b"\x00\x00\x00\x01"] = session
    endpoint.received(data, session.address if ours else ("10.0.0.1", 623))


@fuzz
@given(blob, st.sampled_from(sorted(SUITES)), st.integers(0, 400), st.integers(0, 255))
def test_a_sealed_packet_opens_whole_or_not_at_all(data: bytes, suite: int, at: int, byte: int) -> None:
    ours, theirs = (Seal(SUITES[suite], b"k" * 20, b"\x01\x02\x03\x04") for _ in range(2))
    packet = bytearray(ours.seal(1, data))
    assert theirs.open(bytes(packet)) == data
    packet[at % len(packet)] ^= byte
    changed = theirs.open(bytes(packet))
    assert changed is None or at % len(packet) < 4 or byte == 0
    theirs.open(data)


@fuzz
@given(st.lists(st.tuples(st.integers(0, 40), blob), max_size=30))
def test_any_serial_payload_is_taken_or_dropped(packets: list[tuple[int, bytes]]) -> None:
    session = Session(Endpoint(), TARGET)
    sol = Sol(session, lambda _data: None)
    for sequence, payload in packets:
        sol._received(sequence, payload)
        sol.keep_tail()


class Echo(Endpoint):
    """Answers each packet with one that is addressed right and holds what the test drew."""

    def __init__(self, bodies: Iterator[bytes]) -> None:
        super().__init__()
        self._bodies = bodies

    async def resolve(self, host: str, port: int) -> tuple[str, int]:
        return host, port

    def send(self, datagram: bytes, address: Any) -> None:
        body = next(self._bodies, None)
        if body is None:
            return
        loop = asyncio.get_running_loop()
        if datagram[4] == 0:  # outside a session
            message = bytes((0x81, 0x1C, 0, 0x20, datagram[18], datagram[19])) + body[:60]
            answer = RMCP_IPMI + bytes(9) + bytes((len(message),)) + message
        else:
            kinds = {0x10: OPEN_ANSWER, 0x12: RAKP2, 0x14: RAKP4}
            own = next(iter(self._sessions), bytes(4))
            answer = setup(
                kinds.get(datagram[5], RAKP4), datagram[16:17] + body[:3].ljust(3, b"\x00") + own + body
            )
        loop.call_soon(self.received, answer, address)


zeros = st.just(b"\x00\x00\x00")
suite17 = bytes(8) + b"\x03" + bytes(7) + b"\x04" + bytes(7) + b"\x01" + bytes(3)


@fuzz
@given(st.lists(blob | st.tuples(zeros, blob).map(b"".join) | st.just(suite17), max_size=12))
def test_any_handshake_ends_in_a_typed_error(bodies: list[bytes]) -> None:
    async def work() -> None:
        await Session(Echo(iter(bodies)), TARGET).open()

    run(work)


# --- records and commands


class Babble:
    """A session that answers every command with what the test drew, at least as long as demanded."""

    node, host, target = "n1", "bmc", TARGET
    guid = bytes(16)

    def __init__(self, answers: list[bytes]) -> None:
        self._answers = iter(answers)

    async def command(self, command: Command, data: bytes = b"", deadline_s: float = COMMAND_S) -> bytes:
        answer = next(self._answers, None)
        if answer is None:
            raise BmcError(self.node, self.host)
        return answer.ljust(command.at_least, b"\x00")


answers = st.lists(st.binary(max_size=40) | st.binary(min_size=16, max_size=70), max_size=40)


@fuzz
@given(answers, st.binary(min_size=11, max_size=16))
def test_any_records_are_read_or_refused(drawn: list[bytes], device_id: bytes) -> None:
    session: Any = Babble(drawn)
    run(lambda: sel_entries(session))
    session = Babble(drawn)
    run(lambda: SensorRecords(session, device_id).cached({}))
    session = Babble(drawn)
    run(lambda: FruDevice(session, 0).read())


IPMI_QUESTIONS: dict[str, Callable[[Ipmi], Any]] = {
    "identity": lambda bmc: bmc.identity(),
    "power": lambda bmc: bmc.set_power(PowerAction.ON, wait_s=0.1),
    "boot": lambda bmc: bmc.set_boot(BootTarget.PXE),
    "sel": lambda bmc: bmc.sel(),
    "clear": lambda bmc: bmc.clear_sel(),
    "sensors": lambda bmc: bmc.sensors(),
    "fru": lambda bmc: bmc.fru(),
    "clock": lambda bmc: bmc.clock(),
    "lan": lambda bmc: bmc.lan(),
    "users": lambda bmc: bmc.users(),
    "watchdog": lambda bmc: bmc.stop_watchdog(),
}


@pytest.mark.parametrize("question", IPMI_QUESTIONS)
@fuzz
@given(drawn=answers)
def test_any_answer_over_ipmi_is_a_value_or_a_typed_error(question: str, drawn: list[bytes]) -> None:
    session: Any = Babble(drawn)
    run(lambda: IPMI_QUESTIONS[question](Ipmi(session, Endpoint())))


record_heads = st.tuples(
    st.binary(min_size=2, max_size=2),
    st.just(b"\x51"),
    st.sampled_from([b"\x01", b"\x02", b"\x03", b"\x11", b"\xc0"]),
).map(b"".join)
sensor_records = st.tuples(record_heads, st.binary(max_size=64)).map(b"".join)


@fuzz
@given(st.lists(sensor_records | blob, max_size=6), st.binary(max_size=6), st.binary(max_size=20))
def test_any_record_decodes_or_is_counted(records: list[bytes], answer: bytes, event: bytes) -> None:
    table = decode.sensor_table(tuple(records))
    assert len(table.sensors) + len(table.fru) + table.unread <= len(records)
    for sensor in table.readable:
        decode.reading(sensor, answer)
    decode.EventDecoder(table).decode(event)


areas = st.tuples(st.binary(min_size=1, max_size=60), st.booleans())


@fuzz
@given(areas, areas, areas, blob)
def test_any_inventory_decodes_or_names_its_problem(
    chassis: tuple[bytes, bool], board: tuple[bytes, bool], product: tuple[bytes, bool], noise: bytes
) -> None:
    body, places = b"", []
    for content, sound in (chassis, board, product):
        size = -(-(len(content) + 3) // 8)
        area = (bytes((1, size)) + content).ljust(8 * size - 1, b"\x00")
        places.append(1 + len(body) // 8)
        body += area + bytes(((-sum(area) if sound else 0) & 0xFF,))
    head = bytes((1, 0, *places, 0, 0))
    for data in (head + bytes((-sum(head) & 0xFF,)) + body, noise, noise + body):
        fields = decode.fru_fields(data)
        assert all(isinstance(value, str) for value in fields.values())


# --- Redfish


@fuzz
@given(st.dictionaries(st.text(max_size=10), json_values, max_size=6), st.text(max_size=30))
def test_any_json_reads_as_a_resource(data: dict[str, Any], text: str) -> None:
    found = Resource("/x", data)
    for key in [*data, "Status"]:
        for read in (found.text, found.number, found.flag, found.links, found.rows, found.texts):
            read(key)
    found.health()
    log.entry(found, 1)
    readings.sensor(found)
    assert all(reading.name for reading in (*readings.thermal(found), *readings.power(found)))
    vendor_of(found)
    parse_time(text)


@fuzz
@given(st.integers(100, 599), blob | json_values.map(lambda value: json.dumps(value).encode()))
def test_any_refusal_is_a_typed_error(status: int, body: bytes) -> None:
    assert isinstance(refusal(TARGET, "GET /", Answer(status, {"Retry-After": "x"}, body)), BmcError)


KEYS = [
    *("Members", "Links", "Chassis", "ManagedBy", "PowerState", "Actions", "target", "Boot", "Status"),
    *("BootSourceOverrideTarget", "Health", "LogServices", "Entries", "Sensors", "Thermal", "Power"),
    *("Temperatures", "Fans", "Attributes", "@odata.id", "#ComputerSystem.Reset", "#LogService.ClearLog"),
    *("Members@odata.nextLink", "Thresholds", "Reading", "UUID", "Bios", "@Redfish.Settings"),
    *("SettingsObject", "ServerScreenShotFile", "AdditionalDataURI", "TaskState", "Messages"),
]
trees = st.recursive(
    st.none() | st.sampled_from(["On", "/redfish/v1/a", "Pxe", "OK", ""]) | st.integers(0, 9),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(KEYS), inner, max_size=4),
    max_leaves=8,
)
bodies = st.dictionaries(st.sampled_from(KEYS), trees, max_size=6)


class Liar:
    """A client that answers every path with what the test drew."""

    node, host, target = "n1", "bmc", TARGET

    def __init__(self, drawn: list[dict[str, Any]]) -> None:
        self._drawn = drawn
        self._at = 0
        self.root = Resource("/redfish/v1", drawn[0])

    async def get(self, path: str) -> Resource:
        self._at += 1
        if self._at > 60:
            raise BmcError(self.node, self.host)
        return Resource(path, self._drawn[self._at % len(self._drawn)])

    async def members(self, path: str) -> tuple[Resource, ...]:
        return (await self.get(path)).rows("Members")

    async def ask(self, _method: str, path: str, *_rest: object) -> Answer:
        return Answer(200, {}, json.dumps((await self.get(path)).data).encode())

    async def post(self, path: str, *_rest: object) -> Answer:
        return await self.ask("POST", path)

    async def patch(self, path: str, *_rest: object) -> Answer:
        return await self.ask("PATCH", path)


REDFISH_QUESTIONS: dict[str, Callable[[Redfish], Any]] = {
    "identity": lambda bmc: bmc.identity(),
    "power": lambda bmc: bmc.set_power(PowerAction.ON, wait_s=0.1),
    "boot": lambda bmc: bmc.set_boot(BootTarget.PXE),
    "sel": lambda bmc: bmc.sel(),
    "clear": lambda bmc: bmc.clear_sel(),
    "sensors": lambda bmc: bmc.sensors(),
    "fru": lambda bmc: bmc.fru(),
    "firmware": lambda bmc: bmc.firmware(),
    "bios": lambda bmc: bmc.plan_bios({"Boot": "x"}),
    "metrics": lambda bmc: bmc.metrics(),
    "certificate": lambda bmc: bmc.certificate(),
    "screenshot": lambda bmc: bmc.screenshot(),
    "dump": lambda bmc: bmc.support_dump(deadline_s=1),
    "mains": lambda bmc: bmc.ac_cycle(),
    "identify": lambda bmc: bmc.identify(on=True),
    "ready": lambda bmc: bmc.ready(),
}


@pytest.mark.parametrize("question", REDFISH_QUESTIONS)
@fuzz
@given(drawn=st.lists(bodies, min_size=1, max_size=3), vendor=st.sampled_from(VENDORS))
def test_any_answer_over_redfish_is_a_value_or_a_typed_error(
    question: str, drawn: list[dict[str, Any]], vendor: Any
) -> None:
    client: Any = Liar(drawn)
    run(lambda: REDFISH_QUESTIONS[question](Redfish(client, vendor)))


@fuzz
@given(st.lists(bodies, min_size=1, max_size=4), st.sampled_from([200, 202, 204]))
def test_any_task_ends(drawn: list[dict[str, Any]], status: int) -> None:
    client: Any = Liar(drawn)
    run(lambda: tasks.finished(client, Answer(status, {"Location": "/redfish/v1/a"}, b""), 5.0))


# --- consoles

console_bytes = st.lists(
    st.binary(max_size=60)
    | st.sampled_from(
        [b"\x1b[", b"\x1b[2J", b"\x1b[99;99H", b"\x1b]0;", b"\r\n", b"\xc9\xcd", b"Linux version 6"]
    ),
    max_size=30,
).map(b"".join)


@fuzz
@given(console_bytes, st.integers(1, 50))
def test_any_console_is_shown(data: bytes, size: int) -> None:
    chunks = [Chunk(float(at), data[at : at + size]) for at in range(0, len(data), size)]
    plain, watch, decoder = Plain(), Watch(), Decoder()
    for chunk in chunks:
        watch.feed(chunk.time, plain.feed(chunk.data))
        decoder.decode(chunk.data)
    watch.cause()
    assert "\x1b" not in clean_text(chunks).replace("\x1b", "", data.count(b"\x1b"))
    assert png(screen(chunks)).startswith(b"\x89PNG")


@fuzz
@given(data=st.binary(max_size=200), cut=st.integers(0, 200))
def test_any_file_reads_as_a_recording(
    tmp_path_factory: pytest.TempPathFactory, data: bytes, cut: int
) -> None:
    folder = tmp_path_factory.mktemp("ring")
    (folder / "20260101T000000.000000Z.rec").write_bytes(data[:cut])
    list(entries(folder))
    boots(folder)
    assert len(recordings(folder)) == 1


def test_every_question_of_the_driver_is_fuzzed() -> None:
    methods = {name for name in vars(Ipmi) if not name.startswith("_")}
    asked = set(re.findall(r"bmc\.(\w+)\(", Path(__file__).read_text()))
    spared = {"identify", "reset_bmc", "set_clock", "power_state", "boot_setting", "device_id", "watchdog"}
    assert methods - asked <= spared
