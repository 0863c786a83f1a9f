"""Parts of the Redfish service that need no socket: jobs, logs, routes, sessions."""

from __future__ import annotations

import contextlib
import datetime
from collections.abc import Callable

import pytest

from lab.bmc.redfish.answers import Answer, Rejected
from lab.bmc.redfish.certificate import dates, expired_twin, make_identity
from lab.bmc.redfish.endpoint import ROUTES
from lab.bmc.redfish.jobs import JobFailed, JobQueue, State
from lab.bmc.redfish.logs import sel_entry
from lab.bmc.redfish.service import Call, Route, Routes, Service
from lab.bmc.redfish.sessions import WebSessions
from lab.bmc.users import Account
from tests.unit.lab_bmc.conftest import Bench, Clock

MakeBench = Callable[..., Bench]


def make_queue(clock: Clock, boots: list[int]) -> JobQueue:
    return JobQueue(clock.now, lambda: "2026-01-01T00:00:00-06:00", lambda: len(boots))


def test_a_job_runs_its_time_and_does_its_work_once() -> None:
    clock, done = Clock(), list[str]()
    queue = make_queue(clock, [])
    job = queue.add("Export", "Export", 10.0, lambda: done.append("once"))
    clock.pass_by(4)
    assert (queue.get(job.job_id), job.state, job.percent) == (job, State.RUNNING, 40)
    clock.pass_by(7)
    list(queue)
    list(queue)
    assert (job.state, job.percent, done) == (State.COMPLETED, 100, ["once"])


def test_a_job_for_the_next_boot_waits_for_it() -> None:
    clock, boots, done = Clock(), [1], list[str]()
    queue = make_queue(clock, boots)
    job = queue.add("BIOSConfiguration", "Configure", 1.0, lambda: done.append("set"), at_boot=True)
    clock.pass_by(100)
    assert job.describe_task()["TaskState"] == "Pending"
    boots.append(2)
    list(queue)
    assert job.state is State.RUNNING
    clock.pass_by(1)
    list(queue)
    assert done == ["set"]


def test_a_job_that_fails_says_why() -> None:
    def work() -> None:
        raise JobFailed("Unable to verify Update Package signature: RED007.")

    clock = Clock()
    queue = make_queue(clock, [])
    job = queue.add("FirmwareUpdate", "Update", 0.0, work)
    list(queue)
    assert job.describe()["JobState"] == "Failed"
    assert "RED007" in job.describe()["Message"]
    assert queue.remove("JID_CLEARALL")
    assert list(queue) == []


def test_sel_records_read_as_an_idrac_words_them(bench: Bench) -> None:
    bench.bmc.sensors.force("GPU3 Temp", 95)
    bench.bmc.sensors.force("PS2 Status", 0x09)
    bench.bmc.sel.add_record(bytes((0, 0, 0xDF)) + bytes(13))
    cleared, warning, critical, supply, oem = map(sel_entry, bench.bmc.sel.records)
    assert (cleared["MessageId"], cleared["Severity"]) == ("SEL9901", "OK")
    assert (warning["Severity"], critical["Severity"]) == ("Warning", "Critical")
    assert critical["Message"] == "GPU3 Temp is greater than the upper critical threshold (95)."
    assert (supply["MessageId"], supply["Severity"]) == ("PSU0003", "Critical")
    assert supply["Message"].startswith("PS2 Status")
    assert oem["Message"] == "OEM software event."
    assert datetime.datetime.fromisoformat(cleared["Created"]).utcoffset() == datetime.timedelta(hours=-6)


def test_web_sessions_have_a_limit_and_expire() -> None:
    clock = Clock()
    sessions, account = WebSessions(2, clock.now), Account(2, b"admin")
    first, second = sessions.open(account, "127.0.0.1"), sessions.open(account, "127.0.0.1")
    assert first is not None
    assert second is not None
    assert sessions.open(account, "127.0.0.1") is None
    clock.pass_by(1700)
    assert sessions.by_token(first.token) is first
    clock.pass_by(200)
    assert [session.session_id for session in sessions] == [first.session_id]
    assert sessions.close(first.session_id)
    assert not sessions.close(first.session_id)


async def _nothing(_call: Call) -> Answer:
    return Answer()


def test_routes_tell_missing_from_forbidden_methods() -> None:
    routes = Routes([Route("GET", "/redfish/v1", _nothing), Route("DELETE", "/redfish/v1/S/{one}", _nothing)])
    assert routes.find("HEAD", "/redfish/v1/")[0].method == "GET"
    assert routes.find("DELETE", "/redfish/v1/S/17")[1] == {"one": "17"}
    for method, path, status in (("POST", "/redfish/v1", 405), ("GET", "/redfish/v1/S/1/2", 404)):
        with pytest.raises(Rejected) as rejected:
            routes.find(method, path)
        assert rejected.value.answer.status == status
    with pytest.raises(ValueError, match="stands twice"):
        Routes([Route("GET", "/a", _nothing), Route("GET", "/a", _nothing)])


def test_an_expired_certificate_keeps_the_key() -> None:
    now = datetime.datetime.now(datetime.UTC)
    sound = make_identity("n1", "127.0.0.1", now)
    expired = expired_twin(sound, "n1", "127.0.0.1", now)
    assert dates(sound.certificate)[1] > now > dates(expired.certificate)[1]
    assert expired.key == sound.key
    assert expired.fingerprint != sound.fingerprint
    assert sound.key not in repr(sound)


PROPERTIES = (
    "@Redfish.OperationApplyTime",
    "@Redfish.SettingsApplyTime",
    "Attributes",
    "Boot",
    "CertificateString",
    "Context",
    "DataSelectorArrayIn",
    "Destination",
    "FileType",
    "FinalPowerState",
    "ImageURI",
    "IndicatorLED",
    "JobID",
    "LocationIndicatorActive",
    "Message",
    "MessageId",
    "Password",
    "ResetType",
    "ShareType",
    "UserName",
)
ODD_PARTS: tuple[object, ...] = ({"BootSourceOverrideTarget": []}, {"ApplyTime": []}, {"MemTest": {}})
ODD_VALUES: tuple[object, ...] = (None, [], {}, 7, "", "x", [1], *ODD_PARTS)
READS_THE_REQUEST = ("MultipartUpload", "FirmwareInventory", "SessionService/Sessions")


async def test_odd_bodies_are_rejected_and_never_raise(make_bench: MakeBench) -> None:
    bench = make_bench(reset_s=0.0)
    identity = make_identity("node-a", "127.0.0.1", datetime.datetime.now(datetime.UTC))
    service = Service(bench.bmc, identity, lambda identity: None)
    service.eula_accepted = True
    routes = [route for route in ROUTES if route.method in ("POST", "PATCH")]
    asked = 0
    for route in routes:
        if route.path.endswith(READS_THE_REQUEST):
            continue
        for name in PROPERTIES:
            for value in ODD_VALUES:
                body = {"ShareType": "Local", "ResetType": "PowerCycle", name: value}
                call = Call(service, route.method, route.path, {}, {}, body, None, None)  # type: ignore[arg-type]
                with contextlib.suppress(Rejected):
                    await route.run(call)
                asked += 1
    await bench.bmc.close()
    assert asked > 3000
