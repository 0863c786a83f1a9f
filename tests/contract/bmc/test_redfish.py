"""Redfish against the lab's iDRAC: logins, faults, and what only Redfish can do."""

from __future__ import annotations

import asyncio
import contextlib
import datetime
import io
import json
import zipfile
from dataclasses import replace
from pathlib import Path

import pytest
from aiohttp.test_utils import RawTestServer
from aiohttp.web import BaseRequest, Response
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from PIL import Image

from bmc import errors
from bmc.capability import BmcTarget, Credential, PowerAction, PowerState
from bmc.drivers import connect, connect_redfish
from bmc.ipmi.driver import Ipmi
from bmc.ipmi.endpoint import Endpoint
from bmc.redfish.driver import Redfish

from .conftest import USER, LabBackend, MakeLab, cancelled_at_work, refused


async def test_sessions_are_closed_whatever_happens(web: LabBackend, endpoint: Endpoint) -> None:
    for _ in range(2 * web.bmc.spec.redfish_session_limit):
        with contextlib.suppress(ZeroDivisionError):
            async with connect(web.target, endpoint=endpoint) as bmc:
                await bmc.power_state()
                raise ZeroDivisionError
    assert endpoint.counts.closed == 2 * web.bmc.spec.redfish_session_limit


async def test_a_cancelled_request_still_logs_out(web: LabBackend, endpoint: Endpoint) -> None:
    await cancelled_at_work(web.target, endpoint)
    assert endpoint.counts.open == 0
    assert endpoint.counts.closed == 1


async def test_a_wrong_password_is_told(web: LabBackend, endpoint: Endpoint) -> None:
    wrong = replace(web.target, credential=Credential(USER, "wrong"))
    error = await refused(wrong, endpoint)
    assert isinstance(error, errors.AuthRejected)
    assert "wrong" not in str(error).replace("wrong password", "")


async def test_no_free_session_is_busy(web: LabBackend, endpoint: Endpoint) -> None:
    web.bmc.set_fault("no-sessions")
    error = await refused(web.target, endpoint)
    assert isinstance(error, errors.Busy)
    assert error.occupied is errors.Occupied.SESSIONS


async def test_too_little_privilege_is_told(web: LabBackend, endpoint: Endpoint) -> None:
    viewer = replace(web.target, credential=Credential("viewer", "viewer-pw"))
    async with connect(viewer, endpoint=endpoint) as bmc:
        assert await bmc.power_state()
        with pytest.raises(errors.PrivilegeTooLow):
            await bmc.set_power(PowerAction.OFF)


async def test_another_certificate_than_the_pinned_one_gets_no_password(
    web: LabBackend, endpoint: Endpoint
) -> None:
    error = await refused(replace(web.target, fingerprint="00" * 32), endpoint)
    assert isinstance(error, errors.CertificateRefused)
    assert error.seen.lower() == (web.target.fingerprint or "").replace(":", "").lower()
    assert web.bmc.log.datagrams == 0


async def test_a_pin_that_is_no_fingerprint_is_refused(web: LabBackend, endpoint: Endpoint) -> None:
    error = await refused(replace(web.target, fingerprint="no hex"), endpoint)
    assert isinstance(error, errors.CertificateRefused)


async def test_an_expired_certificate_is_no_hindrance_where_it_is_the_pinned_one(
    make_lab: MakeLab, endpoint: Endpoint
) -> None:
    lab = await make_lab(redfish_port=0)
    lab.bmc.set_fault("expired-certificate")
    unpinned = replace(lab.target, protocol="redfish", fingerprint=None)
    async with connect_redfish(unpinned, endpoint=endpoint) as bmc:
        certificate = await bmc.certificate()
    assert certificate.pem.startswith("-----BEGIN CERTIFICATE-----")


async def test_a_bmc_that_is_not_ready_is_waited_for_as_long_as_it_says(
    web: LabBackend, endpoint: Endpoint
) -> None:
    async with connect(web.target, endpoint=endpoint) as bmc:
        web.bmc.set_fault("not-ready", 1)
        asyncio.get_running_loop().call_later(0.5, web.bmc.clear_faults)
        assert await bmc.power_state() is PowerState.ON


async def test_a_bmc_that_stays_not_ready_is_busy(web: LabBackend, endpoint: Endpoint) -> None:
    async with connect(web.target, endpoint=endpoint) as bmc:
        web.bmc.set_fault("not-ready", 600)
        with pytest.raises(errors.Busy) as caught:
            await bmc.power_state()
        web.bmc.clear_faults()
    assert caught.value.retry_after_s == 600


@pytest.mark.parametrize("fault", ["html-error", "half-body"])
async def test_an_answer_that_is_no_json_is_a_typed_error(
    web: LabBackend, endpoint: Endpoint, fault: str
) -> None:
    async with connect(web.target, endpoint=endpoint) as bmc:
        web.bmc.set_fault(fault, 100)
        with pytest.raises((errors.BadAnswer, errors.CommandRefused)):
            await bmc.power_state()
        web.bmc.clear_faults()


async def test_a_silent_bmc_is_unreachable_within_five_seconds(web: LabBackend, endpoint: Endpoint) -> None:
    web.bmc.set_fault("silent")
    error = await refused(web.target, endpoint)
    assert isinstance(error, errors.Unreachable)
    web.bmc.clear_faults()


@pytest.mark.parametrize("protocol", ["auto", "redfish"])
async def test_an_address_without_a_bmc_is_unreachable_within_five_seconds(
    endpoint: Endpoint, protocol: str
) -> None:
    target = BmcTarget("n1", "127.162.0.9", Credential("u", "p"), protocol=protocol, redfish_port=9)
    error = await refused(target, endpoint)
    assert isinstance(error, errors.Unreachable)


async def test_auto_takes_ipmi_where_it_answers(web: LabBackend, endpoint: Endpoint) -> None:
    async with connect(replace(web.target, protocol="auto"), endpoint=endpoint) as bmc:
        assert isinstance(bmc, Ipmi)


async def test_auto_takes_redfish_where_ipmi_is_silent(web: LabBackend, endpoint: Endpoint) -> None:
    async with connect(replace(web.target, protocol="auto", port=9), endpoint=endpoint) as bmc:
        assert isinstance(bmc, Redfish)


async def test_a_wrong_password_never_leads_to_the_other_protocol(
    web: LabBackend, endpoint: Endpoint
) -> None:
    before = len(web.bmc.log.requests)
    wrong = replace(web.target, protocol="auto", credential=Credential(USER, "wrong"))
    error = await refused(wrong, endpoint)
    assert isinstance(error, errors.AuthRejected)
    assert error.rejection is errors.Rejection.WRONG_PASSWORD  # IPMI's word; Redfish does not tell
    assert len(web.bmc.log.requests) == before


async def test_a_session_that_the_bmc_forgot_is_opened_again(web: LabBackend, endpoint: Endpoint) -> None:
    async with connect(web.target, endpoint=endpoint) as bmc:
        await bmc.power_state()
        assert isinstance(bmc, Redfish)
        bmc.client._token = "forgotten"
        assert await bmc.power_state()


async def test_the_screen_comes_as_a_png(web: LabBackend, endpoint: Endpoint) -> None:
    async with connect_redfish(web.target, endpoint=endpoint) as bmc:
        shot = await bmc.screenshot()
    assert Image.open(io.BytesIO(shot.data)).format == "PNG"


async def test_the_support_dump_is_collected_and_fetched(web: LabBackend, endpoint: Endpoint) -> None:
    async with connect_redfish(web.target, endpoint=endpoint) as bmc:
        assert await bmc.ready()
        name, data = await bmc.support_dump(deadline_s=10)
    assert name == "sacollect.zip"
    assert "metadata.json" in zipfile.ZipFile(io.BytesIO(data)).namelist()


async def test_the_mains_are_taken_and_given_back(web: LabBackend, endpoint: Endpoint) -> None:
    boots = len(web.chassis.boots)
    async with connect_redfish(web.target, endpoint=endpoint) as bmc:
        await bmc.ac_cycle()
    async with asyncio.timeout(10):
        while len(web.chassis.boots) == boots:
            await asyncio.sleep(0.02)
    assert web.chassis.powered


async def test_bios_attributes_are_planned_applied_and_in_force_after_a_boot(
    web: LabBackend, endpoint: Endpoint
) -> None:
    wanted = {"LogicalProc": "Disabled", "BootMode": "Uefi"}
    async with connect_redfish(web.target, endpoint=endpoint) as bmc:
        plan = await bmc.plan_bios(wanted)
        assert [(change.name, change.now, change.wanted) for change in plan] == [
            ("LogicalProc", "Enabled", "Disabled")
        ]
        await bmc.apply_bios(plan)
        assert (await bmc.bios())["LogicalProc"] == "Enabled"
        assert await bmc.plan_bios(wanted) == ()  # it waits already
        await bmc.set_power(PowerAction.CYCLE, wait_s=8)
        async with asyncio.timeout(8):
            while (await bmc.bios())["LogicalProc"] != "Disabled":
                await bmc.client.members("/redfish/v1/TaskService/Tasks")  # as one who waits would
                await asyncio.sleep(0.05)
        with pytest.raises(errors.Unsupported):
            await bmc.plan_bios({"NoSuchThing": "1"})


IMAGE = "LAB FIRMWARE\ncomponent: iDRAC.Embedded.1-1\nversion: 7.20.10.00\n"


async def version_of(bmc: Redfish, name: str) -> str:
    return next(item.version for item in await bmc.firmware() if name in item.name)


async def test_firmware_is_pushed(web: LabBackend, endpoint: Endpoint, tmp_path: Path) -> None:
    image = tmp_path / "idrac.img"
    image.write_text(IMAGE)
    async with connect_redfish(web.target, endpoint=endpoint) as bmc:
        assert await version_of(bmc, "Dell Remote Access") == "7.10.50.00"
        assert await bmc.update_firmware(image)
        assert await version_of(bmc, "Dell Remote Access") == "7.20.10.00"


async def test_firmware_is_fetched_by_the_bmc(web: LabBackend, endpoint: Endpoint) -> None:
    async def image(_request: BaseRequest) -> Response:
        return Response(text=IMAGE)

    async with RawTestServer(image) as server, connect_redfish(web.target, endpoint=endpoint) as bmc:
        await bmc.update_firmware(str(server.make_url("/idrac.img")))
        assert await version_of(bmc, "Dell Remote Access") == "7.20.10.00"


async def test_an_image_that_the_bmc_does_not_take_is_a_failed_task(
    web: LabBackend, endpoint: Endpoint, tmp_path: Path
) -> None:
    image = tmp_path / "wrong.img"
    image.write_text("not firmware")
    async with connect_redfish(web.target, endpoint=endpoint) as bmc:
        with pytest.raises(errors.TaskFailed) as caught:
            await bmc.update_firmware(image)
    assert "RED007" in caught.value.text


async def test_telemetry_is_read(web: LabBackend, endpoint: Endpoint) -> None:
    async with connect_redfish(web.target, endpoint=endpoint) as bmc:
        metrics = await bmc.metrics()
    assert any(metric.report == "ThermalSensor" and float(metric.value) > 0 for metric in metrics)


async def test_the_certificate_is_replaced_by_one_that_we_signed(web: LabBackend, endpoint: Endpoint) -> None:
    async with connect_redfish(web.target, endpoint=endpoint) as bmc:
        request = x509.load_pem_x509_csr((await bmc.certificate_request()).encode())
        await bmc.replace_certificate(signed(request))
        replaced = await bmc.certificate()
    assert replaced.fingerprint != (web.target.fingerprint or "").replace(":", "").lower()
    error = await refused(web.target, endpoint)
    assert isinstance(error, errors.CertificateRefused)
    async with connect(replace(web.target, fingerprint=replaced.fingerprint), endpoint=endpoint) as again:
        assert await again.power_state()


def signed(request: x509.CertificateSigningRequest) -> str:
    """Sign a request with a key of the test's own."""
    key = ec.generate_private_key(ec.SECP256R1())
    now = datetime.datetime.now(datetime.UTC)
    builder = x509.CertificateBuilder().subject_name(request.subject).issuer_name(request.subject)
    builder = builder.public_key(request.public_key()).serial_number(x509.random_serial_number())
    builder = builder.not_valid_before(now).not_valid_after(now + datetime.timedelta(days=1))
    return builder.sign(key, hashes.SHA256()).public_bytes(serialization.Encoding.PEM).decode()


async def test_the_log_is_read_over_all_its_pages(web: LabBackend, endpoint: Endpoint) -> None:
    for number in range(120):
        web.bmc.sel.add(0x0C, number, b"\xa0\xff\x03")
    async with connect(web.target, endpoint=endpoint) as bmc:
        assert len(await bmc.sel()) == len(web.bmc.sel)


async def test_redfish_where_there_is_none_is_unsupported(lab: LabBackend, endpoint: Endpoint) -> None:
    with pytest.raises(errors.Unsupported):
        async with connect_redfish(replace(lab.target, redfish_port=9), endpoint=endpoint):
            pass


async def test_other_logs_are_read_by_name(web: LabBackend, endpoint: Endpoint) -> None:
    async with connect_redfish(web.target, endpoint=endpoint) as bmc:
        assert {"Sel", "Lclog"} <= set(await bmc.logs())
        entries = await bmc.log("Lclog")
        with pytest.raises(errors.Unsupported):
            await bmc.log("Diary")
    assert any("logged in" in entry.event for entry in entries)


async def test_the_job_queue_is_listed_and_emptied(web: LabBackend, endpoint: Endpoint) -> None:
    async with connect_redfish(web.target, endpoint=endpoint) as bmc:
        await bmc.apply_bios(await bmc.plan_bios({"LogicalProc": "Disabled"}))
        jobs = await bmc.jobs()
        assert [(job.name, job.state) for job in jobs] != []
        await bmc.clear_jobs()
        assert await bmc.jobs() == ()


async def test_the_tree_is_walked_for_a_ticket(web: LabBackend, endpoint: Endpoint) -> None:
    async with connect_redfish(web.target, endpoint=endpoint) as bmc:
        tree = await bmc.tree()
        assert len(await bmc.tree(most=3)) == 3
    system = json.loads(tree["/redfish/v1/Systems/System.Embedded.1"])
    assert system["SKU"] == web.chassis.serial
    assert any("/Sensors/" in path for path in tree)
    assert any("/LogServices/Sel" in path for path in tree)
