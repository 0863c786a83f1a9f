"""BMCs to speak to: the lab's own, and Debian's ipmi_sim, which we did not write."""

from __future__ import annotations

import asyncio
import contextlib
import shutil
import socket
import struct
import subprocess
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Protocol

import pytest

from bmc.capability import BmcTarget, Credential
from bmc.drivers import connect
from bmc.errors import BmcError
from bmc.ipmi.endpoint import Endpoint
from lab.bmc import Bmc, BmcSpec, BmcUser, LightChassis, Privilege, start_rack

USER, PASSWORD = "admin", "twenty-bytes-exactly"
HOST = "127.162.0.1"
SERIAL = "LAB-K0001"


class Backend(Protocol):
    """One BMC, whoever made it."""

    target: BmcTarget
    sensors: int  # how many its repository lists

    async def say(self, data: bytes) -> None:
        """Write bytes on the node's serial port."""
        ...


@dataclass
class LabBackend:
    """The lab's BMC; its knobs are open to the fault tests."""

    bmc: Bmc
    chassis: LightChassis
    target: BmcTarget
    sensors: int = 0

    async def say(self, data: bytes) -> None:
        self.chassis.print(data)


@dataclass
class SimBackend:
    """ipmi_sim in a process of its own; the test holds the other end of its serial line."""

    target: BmcTarget
    sensors: int
    lines: list[asyncio.StreamWriter] = field(default_factory=list)
    connected: asyncio.Event = field(default_factory=asyncio.Event)

    async def say(self, data: bytes) -> None:
        await self.connected.wait()
        self.lines[-1].write(data)
        await self.lines[-1].drain()

    async def take_line(self, _reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.lines.append(writer)
        self.connected.set()


MakeLab = Callable[..., Awaitable[LabBackend]]


@asynccontextmanager
async def lab_maker() -> AsyncIterator[MakeLab]:
    """Start lab BMCs with any `BmcSpec` changed; they end with the block."""
    async with AsyncExitStack() as stack:

        async def make(**changes: object) -> LabBackend:
            chassis = LightChassis("node-k", SERIAL, powered=True)
            users = (BmcUser(USER, PASSWORD), BmcUser("viewer", "viewer-pw", Privilege.USER))
            values = {"chassis": chassis, "host": HOST, "users": users, "port": 0, "reset_s": 1.0} | changes
            rack = await start_rack([BmcSpec(**values)])  # type: ignore[arg-type]
            stack.push_async_callback(rack.close)
            bmc = rack.bmc("node-k")
            login = Credential(USER, PASSWORD)
            target = BmcTarget("node-k", str(values["host"]), login, port=bmc.port, protocol="ipmi")
            if values.get("redfish_port") is not None:
                web = rack.redfish("node-k")
                target = replace(target, redfish_port=web.port, fingerprint=web.fingerprint)
            return LabBackend(bmc, chassis, target)

        yield make


@pytest.fixture
async def make_lab() -> AsyncIterator[MakeLab]:
    async with lab_maker() as make:
        yield make


@pytest.fixture
async def lab(make_lab: MakeLab) -> LabBackend:
    return await make_lab()


@pytest.fixture
async def endpoint() -> AsyncIterator[Endpoint]:
    """An endpoint whose counts must come out even."""
    own = Endpoint()
    yield own
    await own.aclose()
    assert own.counts.open == 0


@asynccontextmanager
async def started(kind: str, folder: Path) -> AsyncIterator[Backend]:
    if kind == "ipmi_sim":
        async with ipmi_sim(folder) as sim:
            yield sim
        return
    async with lab_maker() as make:
        if kind == "lab":
            yield await make()
        else:
            lab = await make(redfish_port=0)
            yield replace(lab, target=replace(lab.target, protocol="redfish"))


@pytest.fixture(params=["lab", "lab-redfish", "ipmi_sim"])
async def backend(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Backend]:
    """Every BMC there is, whatever it speaks."""
    async with started(request.param, tmp_path) as one:
        yield one


@pytest.fixture(params=["lab", "ipmi_sim"])
async def ipmi_backend(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Backend]:
    """Every BMC that speaks IPMI."""
    async with started(request.param, tmp_path) as one:
        yield one


@pytest.fixture
async def web(make_lab: MakeLab) -> LabBackend:
    """A lab BMC to be spoken to over Redfish."""
    lab = await make_lab(redfish_port=0, job_s=0.2)
    return replace(lab, target=replace(lab.target, protocol="redfish"))


async def until(true: Callable[[], bool], within_s: float = 15.0) -> None:
    """Return when `true()` is."""
    async with asyncio.timeout(within_s):
        while not true():
            await asyncio.sleep(0.01)


async def refused(target: BmcTarget, endpoint: Endpoint, within_s: float = 5.0) -> BmcError:
    """Return the error with which logging in ends; fail where it takes longer than `within_s`."""
    async with asyncio.timeout(within_s):
        with pytest.raises(BmcError) as caught:
            async with connect(target, endpoint=endpoint):
                pass
    return caught.value


async def cancelled_at_work(target: BmcTarget, endpoint: Endpoint) -> None:
    """Log in, ask for the power state over and over, and be cancelled."""
    entered = asyncio.Event()

    async def work() -> None:
        async with connect(target, endpoint=endpoint) as bmc:
            await bmc.power_state()
            entered.set()
            while True:
                await bmc.power_state()

    task = asyncio.create_task(work())
    await entered.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


# --- ipmi_sim

CHASSIS_SCRIPT = """#!/bin/sh
# ipmi_sim calls: get NAME, or set NAME VALUE; the state is a file beside this script.
state="$(dirname "$0")/power"
case "$1 $2" in
  "get power") echo "power:$(cat "$state" 2>/dev/null || echo 1)" ;;
  "set power") echo "$3" >"$state" ;;
  "set reset") ;;
  *) exit 1 ;;
esac
"""
KINDS = (("Temp", 1, 1, 1, 0), ("Fan", 4, 18, 100, 0), ("Volt", 2, 4, 10, -2))


@asynccontextmanager
async def ipmi_sim(folder: Path) -> AsyncIterator[SimBackend]:
    """Run ipmi_sim with three sensors, three events, a FRU, and its serial line at the test."""
    for program in ("ipmi_sim", "sdrcomp"):
        if shutil.which(program) is None:
            pytest.skip(f"{program} is not installed")
    port = _free_port()
    target = BmcTarget("node-s", "127.0.0.1", Credential("admin", "secret"), port=port, protocol="ipmi")
    backend = SimBackend(replace(target, suites=(3,)), len(KINDS))
    async with await asyncio.start_server(backend.take_line, "127.0.0.1", 0) as serial:
        _configure(folder, port, serial.sockets[0].getsockname()[1])
        words = ("-c", "lan.conf", "-f", "node.emu", "-s", "state", "-n")
        with (folder / "log").open("wb") as log:
            process = await asyncio.create_subprocess_exec(
                "ipmi_sim", *words, cwd=folder, stdin=asyncio.subprocess.DEVNULL, stdout=log, stderr=log
            )
        try:
            yield backend
        finally:
            with contextlib.suppress(ProcessLookupError):
                process.kill()
            await process.wait()
            for writer in backend.lines:
                writer.close()
                await writer.wait_closed()


def _free_port() -> int:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _configure(folder: Path, port: int, serial_port: int) -> None:
    state = folder / "state" / "ipmi_sim" / "node-s"
    state.mkdir(parents=True)
    (folder / "lan.conf").write_text(
        f"""name "node-s"
set_working_mc 0x20
  startlan 1
    addr 127.0.0.1 {port}
    priv_limit admin
    allowed_auths_admin none md2 md5 straight
    guid 6f9d2a6e0f0e4c369c0b5a1d70b3f2c4
  endlan
  chassis_control "{folder}/chassis.sh"
  sol "tcp:127.0.0.1:{serial_port}" 115200 history=4000
  user 1 true "" "none" user 10 none md2 md5 straight
  user 2 true "admin" "secret" admin 10 none md2 md5 straight
"""
    )
    script = folder / "chassis.sh"
    script.write_text(CHASSIS_SCRIPT)
    script.chmod(0o700)
    emulator = [
        "mc_setbmc 0x20",
        "mc_add 0x20 0 no-device-sdrs 0x23 9 8 0x9f 0x001291 0x0f02 persist_sdr",
        "sel_enable 0x20 1000 0x0a",
    ]
    records = ""
    for number, (name, kind, unit, factor, exponent) in enumerate(KINDS, 1):
        records += _sensor_record(number, name, kind, unit, factor, exponent)
        emulator += [
            f"sensor_add 0x20 0 {number} {kind} 0x01",
            f"sensor_set_value 0x20 0 {number} {40 + number} 0",
            f"sensor_set_threshold 0x20 0 {number} settable 111000 0xf8 0xf0 0xe0 00 00 00",
            f"sensor_set_event_support 0x20 0 {number} enable scanning per-state"
            " 000111111000000 000111111000000 000111111000000 000111111000000",
        ]
    emulator.append(f"mc_add_fru_data 0x20 0 256 data {' '.join(f'{byte:#04x}' for byte in _fru())}")
    for data in (b"\x0c\x61\x6f\xa0\xff\x03", b"\x08\x62\x6f\x03\x00\x00", b"\x13\x63\x6f\xa8\x00\x18"):
        record = bytes(4) + b"\x20\x00\x04" + data
        emulator.append(f"sel_add 0x20 0x02 {' '.join(f'{byte:#04x}' for byte in record)}")
    emulator.append("mc_enable 0x20")
    (folder / "node.emu").write_text("\n".join(emulator) + "\n")
    (folder / "node.sdrs").write_text(records)
    command = ["sdrcomp", "-o", str(state / "sdr.20.main"), str(folder / "node.sdrs")]
    subprocess.run(command, check=True, capture_output=True, timeout=15)


def _sensor_record(number: int, name: str, kind: int, unit: int, factor: int, exponent: int) -> str:
    return f"""sdr type 1
	sensor_owner_id		0x20
	sensor_owner_lun	0
	channel_number		0
	sensor_number		{number}
	entity_id		system_board
	entity_instance		1
	sensor_type		{kind}
	init_scanning		true
	init_sensor_type	true
	default_sensor_scan_on	true
	event_reading_type_code	1
	analog_data_format	unsigned
	rate_unit		none
	modifier_unit		none
	percentage		false
	base_unit		{unit}
	modifier_unit_code	unspecified
	linearization		linear
	m			{factor}
	tolerance		0
	b			0
	accuracy		1
	accuracy_exp		0
	sensor_direction	input
	r_exp			{exponent}
	b_exp			0
	sensor_maximum		255
	sensor_minimum		0
	id_string		"{name} 1"
endsdr
"""


def _fru() -> bytes:
    def text(value: str) -> bytes:
        return bytes((0xC0 | len(value),)) + value.encode()

    def area(body: bytes) -> bytes:
        size = -(-(len(body) + 3) // 8)
        padded = (bytes((1, size)) + body).ljust(8 * size - 1, b"\x00")
        return padded + bytes((-sum(padded) & 0xFF,))

    chassis = area(b"\x17" + text("CH-1") + text(SERIAL) + b"\xc1")
    board = area(
        struct.pack("<I", 0)[:4] + b"".join(map(text, ("Example", "Board", "B1", "P1", ""))) + b"\xc1"
    )
    product = area(b"\x00" + b"".join(map(text, ("Example", "Node 8", "N8", "1", SERIAL, "", ""))) + b"\xc1")
    first = 1 + len(chassis) // 8
    head = bytes((1, 0, 1, first, first + len(board) // 8, 0, 0))
    return (head + bytes((-sum(head) & 0xFF,)) + chassis + board + product).ljust(256, b"\x00")
