"""What the state store promises, on both databases."""

from __future__ import annotations

import threading
from collections.abc import Callable
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path

import pytest
import sqlalchemy as sa
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext

from inventory import schema
from inventory.backup import main, restore
from inventory.database import open_database
from inventory.errors import StoreBroken, StoreBusy, UnknownRun
from inventory.model import Pool, Stage
from inventory.records import AUTOMATION, EventKind, NodeState, RunState
from inventory.secrets import Secret
from inventory.store import Store

WHEN = datetime(2026, 3, 1, 12, 0, 0, 123456, tzinfo=UTC)


def kinds(store: Store, **filters: str) -> list[str]:
    """The kinds of events, in order."""
    return [event.kind for event in store.events(**filters)]  # type: ignore[arg-type]


def test_a_node_never_seen_is_racked_and_in_no_pool(store: Store) -> None:
    assert store.node("n1") == NodeState("n1", stage=Stage.RACKED)
    assert store.nodes() == {}


def test_follows_a_node_through_its_stages(store: Store) -> None:
    store.begin("n1", Stage.REACHABLE, run="r")
    assert (store.node("n1").in_stage, store.node("n1").stage) == (Stage.REACHABLE, Stage.RACKED)
    store.reach("n1", Stage.REACHABLE, run="r", detail="iDRAC 7.10")
    store.begin("n1", Stage.DEPLOYED, run="r")
    store.reach("n1", Stage.DEPLOYED, run="r", system_id="abc", address="10.0.0.1", deployed_at=WHEN)
    state = store.node("n1")
    assert (state.stage, state.in_stage, state.run) == (Stage.DEPLOYED, None, "r")
    assert (state.system_id, state.address, state.deployed_at) == ("abc", "10.0.0.1", WHEN)
    assert kinds(store, node="n1") == [EventKind.STAGE_BEGUN, EventKind.STAGE_REACHED] * 2
    assert store.events(node="n1")[1].message == "reachable reached: iDRAC 7.10"


def test_a_failure_keeps_the_stage_and_says_why_until_the_next_success(store: Store) -> None:
    store.reach("n1", Stage.REACHABLE, run="r")
    store.fail("n1", Stage.DEPLOYED, run="r", code="no-lease", reason="no lease", next="look", evidence="/e")
    state = store.node("n1")
    assert (state.stage, state.failed_stage) == (Stage.REACHABLE, Stage.DEPLOYED)
    assert (state.reason_code, state.reason, state.next, state.evidence) == (
        "no-lease",
        "no lease",
        "look",
        "/e",
    )
    store.reach("n1", Stage.DEPLOYED, run="r")
    state = store.node("n1")
    assert (state.failed_stage, state.reason_code, state.reason, state.next, state.evidence) == (None,) * 5


def test_facts_are_kept_until_new_ones_come(store: Store) -> None:
    store.observe("n1", system_id="abc", boot_id="b1")
    store.reach("n1", Stage.ENLISTED, run=None)
    store.observe("n1", boot_id="b2")
    assert (store.node("n1").system_id, store.node("n1").boot_id) == ("abc", "b2")
    assert store.node("n1").stage is Stage.ENLISTED


def test_times_come_back_as_the_same_moment_in_utc(store: Store) -> None:
    east = timezone(timedelta(hours=5, minutes=30))
    store.observe("n1", last_power_loss_at=WHEN.astimezone(east))
    found = store.node("n1").last_power_loss_at
    assert found == WHEN
    assert found is not None
    assert found.utcoffset() == timedelta(0)


def test_a_time_without_a_zone_is_refused_and_nothing_of_the_call_is_kept(store: Store) -> None:
    with pytest.raises(sa.exc.StatementError, match="without a zone"):
        store.observe("n1", deployed_at=datetime(2026, 1, 1))  # noqa: DTZ001 - the mistake under test
    assert store.nodes() == {}
    assert store.events() == ()


def test_a_secret_in_an_event_is_refused(store: Store) -> None:
    with pytest.raises(TypeError, match="Secret cannot be stored"):
        store.event("n1", "note", message="x", data={"password": Secret("s3cret")})
    assert store.events() == ()


def test_keeps_what_a_broken_console_said_as_well_as_a_database_can(store: Store) -> None:
    rubbish = "reset\0\udcff\u2026 done"
    store.fail("n1", Stage.DEPLOYED, run=None, code="x", reason=rubbish, next="look")
    store.event("n1", "console", message=rubbish, data={"tail": [rubbish, float("nan")], "at": WHEN})
    assert store.node("n1").reason == "reset\ufffd?\u2026 done"
    event = store.events()[-1]
    assert event.message == "reset\ufffd?\u2026 done"
    assert event.data == {"tail": ["reset\ufffd?\u2026 done", "nan"], "at": WHEN.isoformat()}


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE event SET message = 'other'",
        "DELETE FROM event",
        "DELETE FROM event WHERE node = 'n1'",
    ],
)
def test_the_database_refuses_to_change_or_delete_events(url: str, store: Store, statement: str) -> None:
    store.event("n1", "note", message="first")
    engine = sa.create_engine(url)
    with pytest.raises(sa.exc.DBAPIError, match="append-only"), engine.begin() as connection:
        connection.exec_driver_sql(statement)
    engine.dispose()
    assert [event.message for event in store.events()] == ["first"]


def test_the_database_refuses_to_empty_or_replace_events(url: str, store: Store) -> None:
    store.event("n1", "note", message="first")
    engine = sa.create_engine(url)
    columns = "(id, ts, kind, actor, host, message, data)"
    values = f"VALUES (1, '{WHEN.isoformat()}', 'note', 'x', 'x', 'other', '{{}}')"
    if engine.dialect.name == "sqlite":
        statement = f"INSERT OR REPLACE INTO event {columns} {values}"
    else:
        statement = "TRUNCATE event"
    with pytest.raises(sa.exc.DBAPIError, match="append-only"), engine.begin() as connection:
        connection.exec_driver_sql(statement)
    engine.dispose()
    assert [event.message for event in store.events()] == ["first"]


def test_events_are_filtered_limited_and_in_order(store: Store) -> None:
    for number in range(5):
        store.event("n1" if number % 2 else "n2", f"k{number}", run="r", message=str(number))
    assert kinds(store) == ["k0", "k1", "k2", "k3", "k4"]
    assert kinds(store, node="n1") == ["k1", "k3"]
    assert [event.kind for event in store.events(limit=2)] == ["k3", "k4"]
    assert [event.kind for event in store.events(kinds=["k1", "k4"])] == ["k1", "k4"]
    assert kinds(store, run="other") == []
    third = store.events()[2]
    assert [event.kind for event in store.events(since=third.ts)] == ["k2", "k3", "k4"]
    assert [event.kind for event in store.events(after=third.id, limit=1)] == ["k3"]


def test_an_event_says_who_where_and_what(store: Store) -> None:
    store.event("n1", "power", run="r", actor="ana", message="cut", data={"was": "on", "tries": 2})
    event = store.events()[0]
    assert (event.node, event.run, event.actor, event.message) == ("n1", "r", "ana", "cut")
    assert event.data == {"was": "on", "tries": 2}
    assert event.host


def test_a_run_is_started_followed_and_ended(store: Store) -> None:
    store.start_run(
        "b-1", kind="bringup", nodes=["n2", "n1"], who="ana", reason="new rack", options={"until": None}
    )
    store.begin("n1", Stage.REACHABLE, run="b-1")
    store.reach("n2", Stage.REACHABLE, run="b-1")
    store.fail("n2", Stage.ENLISTED, run="b-1", code="x", reason="why", next="do")
    store.reach("n3", Stage.REACHABLE, run="b-1")  # no part of the run
    progress = store.run_progress("b-1")
    assert store.run_nodes("b-1") == ("n1", "n2")
    assert progress["n1"].in_stage is Stage.REACHABLE
    assert (progress["n2"].reached, progress["n2"].failed) == (Stage.REACHABLE, Stage.ENLISTED)
    assert (progress["n2"].code, progress["n2"].reason, progress["n2"].next) == ("x", "why", "do")
    store.end_run("b-1", RunState.FAILED)
    run = store.run("b-1")
    assert (run.kind, run.selector, run.who, run.reason) == ("bringup", "n[1-2]", "ana", "new rack")
    assert (run.state, run.options) == (RunState.FAILED, {"until": None})
    assert run.ended_at is not None
    assert run.ended_at > run.started_at


def test_a_run_started_again_is_the_same_run_resumed(store: Store) -> None:
    store.start_run("b-1", kind="bringup", nodes=["n1"], who="ana", options={"a": 1})
    store.reach("n1", Stage.REACHABLE, run="b-1")
    store.end_run("b-1", RunState.INTERRUPTED)
    store.start_run("b-1", kind="bringup", nodes=["n1", "n2"], who="tom")
    run = store.run("b-1")
    assert (run.state, run.ended_at, run.who, run.options) == (RunState.RUNNING, None, "ana", {"a": 1})
    assert store.run_progress("b-1")["n1"].reached is Stage.REACHABLE
    assert store.run_nodes("b-1") == ("n1", "n2")
    assert kinds(store, run="b-1")[-1] == EventKind.RUN_RESUMED


def test_runs_come_newest_first(store: Store) -> None:
    for number in range(3):
        store.start_run(f"b-{number}", kind="bringup", nodes=["n1"], who="ana")
    assert [run.id for run in store.runs(limit=2)] == ["b-2", "b-1"]


def test_an_unknown_run_is_an_error_with_the_nearest(store: Store) -> None:
    store.start_run("b-0821-1403", kind="bringup", nodes=["n1"], who="ana")
    for ask in (store.run, store.run_nodes, lambda run: store.end_run(run, RunState.DONE)):
        with pytest.raises(UnknownRun, match=r"did you mean b-0821-1403\?"):
            ask("b-0821-1404")


def test_verdicts_are_kept_and_the_newest_evidence_counts(store: Store) -> None:
    store.record_verdict(
        "n1", run="r", level="full", answer="no", reasons=["gpu.count: 7 of 8"], evidence="/e/1"
    )
    store.record_verdict(
        "n1",
        run="r",
        level="quick",
        answer="yes",
        reasons=[],
        evidence="/e/0",
        collected_at=WHEN - timedelta(days=400),
    )
    assert [verdict.answer for verdict in store.verdicts("n1")] == ["yes", "no"]
    assert store.verdicts("n1")[1].reasons == ("gpu.count: 7 of 8",)
    assert store.node("n1").last_verdict == "no"


def test_an_answer_that_is_none_is_refused(store: Store) -> None:
    with pytest.raises(ValueError, match="maybe"):
        store.record_verdict("n1", run=None, level="quick", answer="maybe", reasons=[], evidence=None)


def test_a_backup_holds_everything_and_is_restored_on_either_database(
    store: Store, fresh: Callable[[], str], tmp_path: Path
) -> None:
    store.start_run("b-1", kind="bringup", nodes=["n1"], who="ana", options={"a": [1]})
    store.reach("n1", Stage.VERIFIED, run="b-1", deployed_at=WHEN - timedelta(days=365))
    store.record_verdict("n1", run="b-1", level="full", answer="yes", reasons=["fine"], evidence=None)
    store.set_pool("n1", Pool.RELIABLE, by=AUTOMATION, why="gate")
    backup = tmp_path / "backup.sqlite"
    store.backup(backup)
    store.event("n1", "note", message="after the backup")
    assert backup.stat().st_mode & 0o777 == 0o600
    assert [path.name for path in tmp_path.glob("*backup*")] == ["backup.sqlite"]

    other = fresh()
    restore(backup, other)
    with Store.open(other) as restored:
        assert restored.events() == store.events()[:-1]
        assert (restored.nodes(), restored.runs()) == (store.nodes(), store.runs())
        assert restored.verdicts("n1") == store.verdicts("n1")
        restored.event("n1", "note", message="numbering goes on")
        assert restored.events()[-1].id == store.events()[-1].id
    with pytest.raises(StoreBroken, match="not empty"):
        restore(backup, other)


def test_a_backup_replaces_an_older_one_and_what_a_killed_one_left(store: Store, tmp_path: Path) -> None:
    (tmp_path / ".backup.sqlite.partial").write_bytes(b"half a backup")
    for message in ("one", "two"):
        store.event("n1", "note", message=message)
        store.backup(tmp_path / "backup.sqlite")
    with Store.open(f"sqlite:///{tmp_path}/backup.sqlite") as copy:
        assert [event.message for event in copy.events()] == ["one", "two"]


def test_writers_wait_for_each_other_and_lose_nothing(url: str) -> None:
    store = Store.open(url)

    def write(name: str) -> None:
        for _ in range(10):
            store.reach(name, Stage.REACHABLE, run=None)

    writers = [threading.Thread(target=write, args=(f"n{number}",)) for number in range(4)]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join()
    assert len(store.events()) == 40
    assert set(store.nodes()) == {"n0", "n1", "n2", "n3"}
    store.close()


def test_ids_rise_in_the_order_in_which_events_become_visible(url: str) -> None:
    stores = [Store.open(url) for _ in range(4)]  # as many processes would have
    store = stores.pop()
    seen: list[int] = []
    done = threading.Event()

    def write(through: Store) -> None:
        for number in range(25):
            through.event("n1", "note", message=str(number))

    def follow() -> None:
        while True:
            last_look = done.is_set()
            found = store.events(after=seen[-1] if seen else 0)
            seen.extend(event.id for event in found)
            if last_look and not found:
                return

    writers = [threading.Thread(target=write, args=(through,)) for through in stores]
    reader = threading.Thread(target=follow)
    for thread in (*writers, reader):
        thread.start()
    for writer in writers:
        writer.join()
    done.set()
    reader.join()
    assert seen == [event.id for event in store.events()]
    assert len(seen) == 75
    for opened in (store, *stores):
        opened.close()


def test_a_store_that_stays_locked_is_busy(url: str, store: Store) -> None:
    other = open_database(url, busy_seconds=0.3)
    with other.write(), pytest.raises(StoreBusy):
        store.event("n1", "note", message="waits")
    other.close()
    store.event("n1", "note", message="goes on")


def test_reading_does_not_wait_for_a_writer(url: str, store: Store) -> None:
    store.event("n1", "note", message="there")
    other = open_database(url, busy_seconds=0.3)
    with other.write():
        assert len(store.events()) == 1
    other.close()


def test_many_first_starts_at_once_make_one_store(fresh: Callable[[], str]) -> None:
    url, problems = fresh(), list[Exception]()
    together = threading.Barrier(4)

    def start(name: str) -> None:
        together.wait()
        try:
            with Store.open(url) as store:
                store.event(None, "started", message=name)
        except Exception as exc:  # noqa: BLE001 - whatever a thread met is the test's result
            problems.append(exc)

    threads = [threading.Thread(target=start, args=(str(number),)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert problems == []
    with Store.open(url) as store:
        assert len(store.events()) == 4


def test_migrations_make_exactly_the_tables_of_the_schema(url: str, store: Store) -> None:
    del store  # has migrated
    engine = sa.create_engine(url)
    with engine.connect() as connection:
        context = MigrationContext.configure(connection, opts={"compare_type": True})
        assert compare_metadata(context, schema.metadata) == []
        assert context.get_current_revision() == schema.HEAD
    engine.dispose()


def test_a_store_of_a_newer_muster_is_left_alone(url: str, store: Store) -> None:
    store.close()
    engine = sa.create_engine(url)
    with engine.begin() as connection:
        connection.exec_driver_sql("UPDATE alembic_version SET version_num = '9999'")
    engine.dispose()
    with pytest.raises(StoreBroken, match="version 9999, which this Muster does not know"):
        Store.open(url)


def test_the_command_line_saves_and_restores(
    url: str, store: Store, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    store.event("n1", "note", message="kept")
    saved = str(tmp_path / "saved.sqlite")
    assert main([saved], {"MUSTER_DATABASE_URL": url}) == 0
    state = {"MUSTER_STATE": str(tmp_path / "state")}
    assert main(["--restore", saved], state) == 0
    with Store.open(f"sqlite:///{tmp_path}/state/muster.sqlite") as restored:
        assert [event.message for event in restored.events()] == ["kept"]
    assert main(["--restore", saved], state) == 4
    assert "it is not empty" in capsys.readouterr().err
    assert main([str(tmp_path / "nowhere" / "saved.sqlite")], {"MUSTER_DATABASE_URL": url}) == 0
