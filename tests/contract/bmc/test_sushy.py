"""Redfish against sushy-tools' emulator, which we did not write: plain, no sessions, no logs."""

from __future__ import annotations

import contextlib
import datetime
import shutil
import socket
import ssl
import subprocess
import sys
import time
import urllib.request
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from bmc import errors
from bmc.capability import BmcTarget, BootTarget, Credential, PowerAction, PowerState
from bmc.drivers import connect_redfish
from bmc.ipmi.endpoint import Endpoint
from bmc.redfish.driver import Redfish
from lab.bmc.redfish.certificate import make_identity

from .conftest import refused

HOST = "127.162.0.19"
# aiohttp leaves the socket of a connection that was given up in the middle to the collector.
pytestmark = pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")

POWER_S = 20.0  # the emulator lets power follow after 1 to 11 s, by chance


def emulator_program() -> str | None:
    """Return the emulator of this environment, else the one on PATH."""
    own = Path(sys.executable).with_name("sushy-emulator")
    return str(own) if own.exists() else shutil.which("sushy-emulator")


@pytest.fixture(scope="module")
def emulator(tmp_path_factory: pytest.TempPathFactory) -> Iterator[int]:
    """Run the emulator with its imaginary node; yield its port."""
    program = emulator_program()
    if program is None:
        pytest.skip("sushy-tools is not installed: no sushy-emulator here or on PATH")
    folder = tmp_path_factory.mktemp("sushy")
    identity = make_identity("node-y", HOST, datetime.datetime.now(datetime.UTC))
    certificate, key = folder / "certificate.pem", folder / "key.pem"
    certificate.write_text(identity.certificate)
    key.write_text(identity.key)
    (folder / "emulator.conf").write_text(f"SUSHY_EMULATOR_STATE_DIR = {str(folder)!r}\n")
    with socket.socket() as probe:
        probe.bind((HOST, 0))
        port = int(probe.getsockname()[1])
    words = [program, "--fake", "--config", str(folder / "emulator.conf"), "-i", HOST, "-p", str(port)]
    words += ["--ssl-certificate", str(certificate), "--ssl-key", str(key)]
    with (folder / "log").open("wb") as log:
        process = subprocess.Popen(words, stdout=log, stderr=log, cwd=folder)
    try:
        wait_until_it_answers(port)
        yield port
    finally:
        process.terminate()
        process.wait(timeout=10)


def wait_until_it_answers(port: int) -> None:
    anybody = ssl.create_default_context()
    anybody.check_hostname, anybody.verify_mode = False, ssl.CERT_NONE
    end = time.monotonic() + 30
    while True:
        try:
            with urllib.request.urlopen(f"https://{HOST}:{port}/redfish/v1/", timeout=10, context=anybody):
                return
        except OSError:
            if time.monotonic() > end:
                raise
        time.sleep(0.1)


@pytest.fixture
async def sushy(emulator: int, endpoint: Endpoint) -> AsyncIterator[Redfish]:
    target = BmcTarget("node-y", HOST, Credential("admin", "pw"), protocol="redfish", redfish_port=emulator)
    async with contextlib.AsyncExitStack() as stack:
        for _ in range(3):  # a development server on a busy machine may miss the probe's deadline
            with contextlib.suppress(errors.Unreachable):
                bmc = await stack.enter_async_context(connect_redfish(target, endpoint=endpoint))
                break
        else:
            bmc = await stack.enter_async_context(connect_redfish(target, endpoint=endpoint))
        yield bmc


async def test_says_who_it_is(sushy: Redfish) -> None:
    identity = await sushy.identity()
    assert identity.manufacturer == "Sushy Emulator"
    assert len(identity.guid) == 36
    assert identity.serial
    assert await sushy.ready()


async def test_power_follows(sushy: Redfish) -> None:
    for action, wanted in ((PowerAction.ON, PowerState.ON), (PowerAction.ON, PowerState.ON)):
        assert await sushy.set_power(action, wait_s=POWER_S) is wanted
        assert await sushy.power_state() is wanted


@pytest.mark.parametrize("device", [BootTarget.PXE, BootTarget.CD, BootTarget.DISK])
async def test_boot_device_is_held_as_set(sushy: Redfish, device: BootTarget) -> None:
    held = await sushy.set_boot(device, uefi=True, persistent=True)
    assert (held.target, held.uefi, held.persistent, held.valid) == (device, True, True, True)
    assert await sushy.boot_setting() == held


async def test_reads_sensors_with_their_limits(sushy: Redfish) -> None:
    readings = await sushy.sensors()
    warm = [reading for reading in readings if reading.unit == "°C"]
    assert len(warm) >= 2
    assert any(reading.unit == "RPM" for reading in readings)
    for reading in warm:
        assert reading.health == "ok"
        assert reading.value is not None
        assert reading.value < reading.thresholds["upper critical"]


async def test_reads_the_inventory_although_links_of_it_lead_nowhere(sushy: Redfish) -> None:
    fru = await sushy.fru()
    assert fru["chassis"]["serial"]
    assert fru["system"]["manufacturer"] == "Sushy Emulator"


async def test_what_it_lacks_is_unsupported_and_nothing_else(sushy: Redfish) -> None:
    for lacking in (sushy.sel, sushy.firmware, sushy.bios, sushy.jobs, sushy.certificate, sushy.metrics):
        with pytest.raises(errors.Unsupported):
            await lacking()


async def test_its_tree_is_read_for_a_ticket(sushy: Redfish) -> None:
    tree = await sushy.tree()
    assert any("/Systems/" in path for path in tree)
    assert any("/Chassis/" in path for path in tree)


async def test_a_pinned_certificate_that_is_another_is_refused(sushy: Redfish, endpoint: Endpoint) -> None:
    target = BmcTarget(
        "node-y",
        HOST,
        Credential("admin", "pw"),
        protocol="redfish",
        redfish_port=sushy.client.target.redfish_port,
        fingerprint="00" * 32,
    )
    assert isinstance(await refused(target, endpoint), errors.CertificateRefused)
