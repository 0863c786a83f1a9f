"""Collectors: what one cannot get costs the ticket nothing but that."""

from __future__ import annotations

import asyncio
import gzip
import json
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from bmc.errors import AuthRejected, BadAnswer, Rejection, Unreachable, Unsupported
from inventory.errors import SecretMissing
from inventory.model import Stage
from provision.errors import SshFailed
from provision.ssh import SshResult
from provision.ticket.collecting import Case, Collected, Collector, Lane, Outcome, Report, Result, collect
from provision.ticket.collectors.bmc_fru import BMC_FRU
from provision.ticket.collectors.bmc_identity import BMC_IDENTITY
from provision.ticket.collectors.bmc_saved import BMC_SAVED
from provision.ticket.collectors.bmc_sel import BMC_SEL
from provision.ticket.collectors.bmc_sensors import BMC_SENSORS
from provision.ticket.collectors.console import CONSOLE
from provision.ticket.collectors.health import HEALTH
from provision.ticket.collectors.history import HISTORY
from provision.ticket.collectors.host_bug_report import HOST_BUG_REPORT
from provision.ticket.collectors.host_dmesg import HOST_DMESG
from provision.ticket.collectors.host_journal import HOST_JOURNAL
from provision.ticket.collectors.host_nvidia_smi import HOST_NVIDIA_SMI
from provision.ticket.collectors.host_uname import HOST_UNAME
from provision.ticket.ledger import record_ticket
from provision.ticket.redact import Profile, Redactor
from provision.ticket.table import COLLECTORS
from tests.unit.ticket.conftest import FakeBmc, FakeHost, Logins, MakeCase

BMC = (BMC_IDENTITY, BMC_SEL, BMC_SENSORS, BMC_FRU)
REFUSED = AuthRejected("r1-n01", "127.0.9.1", "oobadmin", Rejection.WRONG_PASSWORD)
DEAD = Unreachable("r1-n01", "127.0.9.1", 4.5)


def reports(collected: Collected) -> dict[str, Report]:
    return {report.collector: report for report in collected.reports}


def text(collected: Collected, path: str) -> str:
    (file,) = [file for file in collected.files if file.path == path]
    return file.content.rendered(Redactor(Profile.INTERNAL)).decode()


def row(
    collect_: Callable[[Case], Awaitable[Result]], lane: Lane = Lane.HERE, timeout_s: float = 5
) -> Collector:
    return Collector("x", lane, timeout_s, collect_)


def test_every_collector_is_in_the_table_once_with_a_time_of_its_own() -> None:
    assert len({one.id for one in COLLECTORS}) == len(COLLECTORS)
    assert all(one.timeout_s > 0 for one in COLLECTORS)


async def test_all_that_a_bmc_tells_is_kept_over_one_login(make_case: MakeCase) -> None:
    logins = Logins(FakeBmc())
    collected = await collect(make_case(bmc=logins), BMC)
    assert {report.outcome for report in collected.reports} == {Outcome.COMPLETE}
    assert (logins.ins, logins.outs) == (1, 1)
    assert json.loads(text(collected, "bmc/sel.json"))[0]["raw"] == bytes(range(16)).hex()
    assert "Power Supply AC lost (deasserted)" in text(collected, "bmc/sel.txt")
    assert collected.facts.identity is not None
    assert collected.facts.fru is not None


@pytest.mark.parametrize(
    ("error", "outcome", "says"),
    [
        (DEAD, Outcome.ERROR, "no answer within 4.5 s"),
        (REFUSED, Outcome.ERROR, "wrong password"),
        (Unsupported("r1-n01", "127.0.9.1", "Redfish"), Outcome.SKIPPED, "does not support Redfish"),
    ],
)  # fmt: skip
async def test_a_login_that_fails_is_tried_once_and_told_to_all(
    make_case: MakeCase, error: Any, outcome: Outcome, says: str
) -> None:
    logins = Logins(None, error)
    collected = await collect(make_case(bmc=logins), BMC)
    assert logins.ins == 1
    assert {report.outcome for report in collected.reports} == {outcome}
    assert all(says in report.reason for report in collected.reports)
    assert collected.files == ()


async def test_a_session_lost_in_the_middle_costs_one_collector(make_case: MakeCase) -> None:
    logins = Logins(FakeBmc({"sel": DEAD}))
    found = reports(await collect(make_case(bmc=logins), BMC))
    assert found["bmc.sel"].outcome is Outcome.ERROR
    assert {found[name].outcome for name in ("bmc.identity", "bmc.sensors", "bmc.fru")} == {Outcome.COMPLETE}
    assert (logins.ins, logins.outs) == (2, 2)


async def test_a_bad_answer_costs_no_login(make_case: MakeCase) -> None:
    logins = Logins(FakeBmc({"sensors": BadAnswer("r1-n01", "127.0.9.1", "noise")}))
    found = reports(await collect(make_case(bmc=logins), BMC))
    assert found["bmc.sensors"].outcome is Outcome.ERROR
    assert logins.ins == 1


async def test_a_missing_password_is_an_error_of_each(make_case: MakeCase) -> None:
    case = make_case(bmc=Logins(None, SecretMissing("file:pw", "does not exist", "write it")))  # type: ignore[arg-type]
    found = reports(await collect(case, BMC))
    assert {report.outcome for report in found.values()} == {Outcome.ERROR}


async def test_a_bmc_of_another_node_is_said_loudly(make_case: MakeCase) -> None:
    logins = Logins(FakeBmc(serial="S4X1977"))
    report = reports(await collect(make_case(bmc=logins), BMC))["bmc.identity"]
    assert report.outcome is Outcome.PARTIAL
    assert "its serial is S4X1977, the inventory says S4X1931" in report.reason


async def test_a_collector_that_takes_too_long_is_stopped_and_the_next_logs_in_anew(
    make_case: MakeCase,
) -> None:
    stopped = asyncio.Event()

    async def hang(case: Case) -> Result:
        await case.bmc.get()
        try:
            await asyncio.Event().wait()
        finally:
            stopped.set()
        return Result()

    logins = Logins(FakeBmc())
    collected = await collect(make_case(bmc=logins), (row(hang, Lane.BMC, 0.05), BMC_SEL))
    assert stopped.is_set()
    assert collected.reports[0].reason == "not done within 0.05 s"
    assert collected.reports[1].outcome is Outcome.COMPLETE
    assert (logins.ins, logins.outs) == (2, 2)


async def test_a_collector_with_a_bug_is_an_error_and_no_more(make_case: MakeCase) -> None:
    async def broken(_case: Case) -> Result:
        raise ZeroDivisionError("oops")

    collected = await collect(make_case(), (row(broken), HISTORY))
    assert collected.reports[0].outcome is Outcome.ERROR
    assert "ZeroDivisionError" in collected.reports[0].reason
    assert collected.reports[1].outcome is Outcome.COMPLETE


async def test_a_dead_host_skips_what_only_it_could_say(make_case: MakeCase) -> None:
    case = make_case(host=FakeHost(dead="ssh: No route to host"))
    found = reports(await collect(case, (HOST_UNAME, HOST_DMESG, HOST_BUG_REPORT, BMC_SEL)))
    assert found.pop("bmc.sel").outcome is Outcome.COMPLETE
    assert {(report.outcome, report.reason) for report in found.values()} == {
        (Outcome.SKIPPED, "ssh: No route to host")
    }


@pytest.mark.parametrize(
    ("answer", "outcome", "reason", "kept"),
    [
        (b"[0.0] Linux", Outcome.COMPLETE, "", True),
        (None, Outcome.SKIPPED, "dmesg is not installed", False),
        (SshResult(1, b"", b"sudo: dmesg: command not found\n"), Outcome.SKIPPED,
         "dmesg is not installed", False),
        (SshResult(1, b"", b"read kernel buffer failed\n"), Outcome.ERROR,
         "dmesg ended with 1: read kernel buffer failed", False),
        (SshResult(1, b"some", b"then it broke\n"), Outcome.PARTIAL,
         "dmesg ended with 1: then it broke", True),
        (SshResult(124, b"some", b""), Outcome.PARTIAL, "dmesg did not end within 30 s", True),
        (SshResult(137, b"", b""), Outcome.ERROR, "dmesg did not end within 30 s", False),
        (SshResult(0, b"", b""), Outcome.PARTIAL, "dmesg said nothing", True),
        (SshFailed("r1-n01", "no answer within 40 s", answered=False), Outcome.ERROR,
         "r1-n01: ssh: no answer within 40 s", False),
    ],
)  # fmt: skip
async def test_how_a_command_ended_decides_what_is_said_of_it(
    make_case: MakeCase, answer: Any, outcome: Outcome, reason: str, kept: bool
) -> None:
    outputs = {} if answer is None else {"dmesg": answer}
    collected = await collect(make_case(host=FakeHost(outputs)), (HOST_DMESG,))
    (report,) = collected.reports
    assert (report.outcome, report.reason) == (outcome, reason)
    assert report.files == (("host/dmesg.txt",) if kept else ())


async def test_a_very_long_journal_is_said_to_be_its_end(make_case: MakeCase) -> None:
    case = make_case(host=FakeHost({"journalctl": b"line\n" * 100_000}))
    (report,) = (await collect(case, (HOST_JOURNAL,))).reports
    assert (report.outcome, report.reason) == (Outcome.PARTIAL, "the last 100000 lines of this boot")


async def test_what_nvidia_smi_says_is_kept_even_where_it_cannot_be_read(make_case: MakeCase) -> None:
    case = make_case(host=FakeHost({"nvidia-smi": b"Unable to determine the device handle\n"}))
    collected = await collect(case, (HOST_NVIDIA_SMI,))
    assert collected.reports[0].files == ("host/nvidia-smi-q.txt",)
    assert collected.facts.smi is None


@pytest.mark.parametrize(
    ("answer", "outcome"),
    [
        (gzip.compress(b"report of ana"), Outcome.COMPLETE),
        (SshResult(127, b"", b""), Outcome.SKIPPED),
        (b"this is no gzip", Outcome.ERROR),
        (SshResult(124, b"", b""), Outcome.ERROR),
    ],
)
async def test_nvidias_report_is_taken_apart_so_that_it_can_be_redacted(
    make_case: MakeCase, answer: Any, outcome: Outcome
) -> None:
    collected = await collect(make_case(host=FakeHost({"sh": answer})), (HOST_BUG_REPORT,))
    assert collected.reports[0].outcome is outcome
    assert len(collected.files) == (outcome is Outcome.COMPLETE)


async def test_nothing_recorded_is_skipped_with_the_reason(make_case: MakeCase) -> None:
    found = reports(await collect(make_case(), (CONSOLE, HEALTH, BMC_SAVED)))
    assert {report.outcome for report in found.values()} == {Outcome.SKIPPED}
    assert all(report.reason for report in found.values())


async def test_what_was_saved_before_is_found_newest_last(make_case: MakeCase) -> None:
    case = make_case()
    state = case.access.settings.state
    for folder, hour in (
        ("captures/r1-n01", 1),
        ("runs/b-1/r1-n01", 2),
        ("captures/r1-n01", 3),
        ("captures/r1-n01", 4),
    ):
        (state / folder).mkdir(parents=True, exist_ok=True)
        (state / folder / f"bmc-20260821T0{hour}0000Z.json").write_text('{"a": 1}')
    (state / "captures/r1-n01/bmc-20260821T050000Z.json").write_text("cut off {")
    (report,) = (await collect(case, (BMC_SAVED,))).reports
    assert [path[-12:] for path in report.files] == ["030000Z.json", "040000Z.json", "050000Z.json"]


async def test_the_history_has_earlier_tickets_of_the_same_serial_under_another_name(
    make_case: MakeCase,
) -> None:
    case = make_case()
    store = case.access.store
    store.begin("r1-n01", Stage.REACHABLE, run="b-1")
    record_ticket(store, case.node, who="marta", file="ticket-1", sha256="0", component="gpu5")
    store.event("old-n7", "ticket", message="ticket made: ticket-0", data={"serial": "S4X1931"})
    store.event("r1-n02", "ticket", message="ticket made: ticket-9", data={"serial": "S4X1932"})
    lines = [json.loads(line) for line in text(await collect(case, (HISTORY,)), "history.jsonl").splitlines()]
    assert [line["message"] for line in lines] == [
        "reachable begun", "ticket made about gpu5: ticket-1", "ticket made: ticket-0",
    ]  # fmt: skip


@pytest.mark.parametrize("raw", [None, b"", b"{ cut off"])
async def test_evidence_that_is_gone_or_broken_is_said(make_case: MakeCase, raw: bytes | None) -> None:
    case = make_case()
    path = case.access.settings.state / "evidence.json"
    if raw is not None:
        path.write_bytes(raw)
    case.access.store.record_verdict(
        "r1-n01", run=None, level="quick", answer="no", reasons=["gpu.count: 7 of 8"], evidence=str(path)
    )
    collected = await collect(case, (HEALTH,))
    (report,) = collected.reports
    assert report.outcome is Outcome.PARTIAL
    assert "last evidence: " in report.reason
    assert "never passed the gate" in report.reason
    assert "gpu.count: 7 of 8" in text(collected, "health/verdicts.json")
