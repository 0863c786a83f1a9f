"""What only Redfish offers, asked of the lab's iDRAC over TLS on loopback."""

from __future__ import annotations

import io
import json
import zipfile
from collections.abc import AsyncIterator
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from bmc.drivers import connect_redfish
from lab.bmc import Bmc, BmcSpec, BmcUser, LightChassis, start_rack
from provision.ticket.artifact import Opaque
from provision.ticket.bundle import Wish, make
from provision.ticket.collecting import Case, Outcome, collect
from provision.ticket.collectors.bmc_dump import BMC_DUMP
from provision.ticket.collectors.bmc_firmware import BMC_FIRMWARE
from provision.ticket.collectors.bmc_redfish import BMC_REDFISH
from provision.ticket.collectors.bmc_screen import BMC_SCREEN
from provision.ticket.errors import SecretInTicket
from provision.ticket.lines import Login
from provision.ticket.redact import Profile, Redactor
from provision.ticket.scan import site_needles
from tests.unit.ticket.conftest import PASSWORD, MakeCase

HOST = "127.62.7.1"
COLLECTORS = (BMC_FIRMWARE, BMC_REDFISH, BMC_SCREEN, BMC_DUMP)


@dataclass(frozen=True)
class Web:
    """A BMC's Redfish service, and the node that it belongs to."""

    bmc: Bmc
    chassis: LightChassis
    port: int


@pytest.fixture
async def web() -> AsyncIterator[Web]:
    chassis = LightChassis("r1-n01", "LAB-K0001", powered=True)
    spec = BmcSpec(
        chassis=chassis, host=HOST, users=(BmcUser("oobadmin", PASSWORD),), port=0, redfish_port=0, job_s=0.1
    )
    rack = await start_rack([spec])
    try:
        yield Web(rack.bmc("r1-n01"), chassis, rack.redfish("r1-n01").port)
    finally:
        await rack.close()


@pytest.fixture
def case(make_case: MakeCase, web: Web) -> Case:
    made = make_case()
    target = replace(made.access.bmc(made.node), host=HOST, redfish_port=web.port)
    return replace(made, redfish=Login(lambda: connect_redfish(target)))


async def test_trees_logs_firmware_and_dump_are_there_and_name_no_account(case: Case) -> None:
    collected = await collect(case, COLLECTORS)
    outcomes = {report.collector: report.outcome for report in collected.reports}
    assert outcomes == {
        "bmc.firmware": Outcome.COMPLETE, "bmc.redfish": Outcome.COMPLETE,
        "bmc.screen": Outcome.SKIPPED, "bmc.vendor-dump": Outcome.COMPLETE,
    }  # fmt: skip
    redactor = Redactor(Profile.INTERNAL)
    files = {file.path: file.content.rendered(redactor) for file in collected.files}
    systems = json.loads(files["bmc/redfish/Systems.json"])
    assert systems["/redfish/v1/Systems/System.Embedded.1"]["PowerState"] == "On"
    assert len([path for path in systems if "/Processors/" in path]) >= 8
    logs = json.loads(files["bmc/redfish/LogServices.json"])
    assert {path.rsplit("/", 1)[-1] for path in logs} == {"Sel", "Lclog"}
    assert collected.facts.firmware
    names = zipfile.ZipFile(io.BytesIO(files["bmc/vendor/sacollect.zip"])).namelist()
    assert "DebugLogs/lclog.json" in names
    assert b"AccountService" not in b"".join(files.values())


async def test_only_our_own_ticket_has_the_screen_as_it_is_now(case: Case) -> None:
    collected = await collect(replace(case, audience=Profile.INTERNAL), (BMC_SCREEN,))
    (file,) = collected.files
    assert file.path == "console/screen-now.png"
    assert isinstance(file.content, Opaque)
    assert file.content.data.startswith(b"\x89PNG")


async def test_the_dump_is_left_where_it_is_when_nobody_wants_it(case: Case) -> None:
    (report,) = (await collect(replace(case, dump=False), (BMC_DUMP,))).reports
    assert (report.outcome, report.reason) == (Outcome.SKIPPED, "not asked for (--no-dump)")


async def test_a_secret_inside_the_dump_means_no_ticket(case: Case, web: Web, tmp_path: Path) -> None:
    web.chassis.print(f"root logged in with {PASSWORD}\r\n".encode())
    with pytest.raises(SecretInTicket, match=r"sacollect\.zip \(TTYLogs/serial\.log\) holds file:pw"):
        await make(case, Wish(tmp_path / "out"), site_needles(case.access), collectors=COLLECTORS)
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(("fault", "outcome"), [("html-error", Outcome.ERROR), ("half-body", Outcome.ERROR)])
async def test_a_bmc_that_answers_nonsense_is_an_error_of_the_collector(
    case: Case, web: Web, fault: str, outcome: Outcome
) -> None:
    await case.redfish.get()
    web.bmc.faults.set(fault)
    (report,) = (await collect(case, (BMC_FIRMWARE,))).reports
    assert report.outcome is outcome
    assert report.reason.startswith(f"BMC {HOST}: ")
