"""Submitting, resuming, cancelling: what two commands do to each other, and what a dead one leaves."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from contextlib import closing
from datetime import UTC, datetime, timedelta

import pytest
import sqlalchemy as sa

from inventory.model import Stage
from inventory.records import RunState
from inventory.store import Store
from provision import engine, guards, runner, runs
from provision.access import Access
from provision.errors import NodesBusy
from provision.guards import Asking, Consent
from provision.planning import Plan, plan_bringup, plan_reimage
from provision.stages.job import Options
from tests.unit.provision.making import admit


@pytest.fixture
def site(access: Access) -> Iterator[Access]:
    """A site whose runner is this test: it takes up runs and executes none."""
    with runner.lock(access.settings.state) as say:
        say(True)
        yield access


def plan(access: Access, *names: str, **options: object) -> tuple[Plan, Consent]:
    nodes = [access.node(name) for name in names]
    wanted = Options(**options)  # type: ignore[arg-type]
    if wanted.reimage:
        made = plan_reimage(access, nodes, wanted)
    else:
        made = asyncio.run(plan_bringup(access, nodes, wanted))
    asked = Asking(yes=True, typed=None, reason=wanted.reason)
    return made, guards.ask(access, made.nodes, action="test", plan="", asking=asked)


def submit(access: Access, *names: str, **options: object) -> str:
    return runs.submit(access, *plan(access, *names, **options))


def long_ago(access: Access) -> Store:
    """The same store, an hour earlier."""
    return Store.open(access.settings.database, clock=lambda: datetime.now(UTC) - timedelta(hours=1))


def test_of_two_commands_at_the_same_moment_one_begins(site: Access) -> None:
    engine.migrate(site.settings.engine_database)
    ended: list[str | NodesBusy] = []
    together = threading.Barrier(2)

    def ask(*names: str) -> None:
        prepared = plan(site, *names)
        together.wait()
        try:
            ended.append(runs.submit(site, *prepared))
        except NodesBusy as error:
            ended.append(error)

    threads = [threading.Thread(target=ask, args=names) for names in (("r1-n01", "r1-n02"), ("r1-n02",))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    (begun,) = [one for one in ended if isinstance(one, str)]
    (refused,) = [one for one in ended if isinstance(one, NodesBusy)]
    assert (refused.run, refused.nodes) == (begun, ("r1-n02",))


def test_runs_of_the_same_second_have_ids_of_their_own(site: Access) -> None:
    ids = {submit(site, name) for name in ("r1-n01", "r1-n02", "r1-n03")}
    assert len(ids) == 3
    for run in ids:
        assert len(site.store.run_nodes(run)) == 1


def test_a_run_whose_command_died_before_the_engine_had_it_frees_its_nodes(site: Access) -> None:
    with long_ago(site) as store:
        store.claim_run("b-dead", kind="bringup", nodes=["r1-n01"], who="ana")
        store.begin("r1-n01", Stage.REACHABLE, run="b-dead")
    run = submit(site, "r1-n01")
    assert site.store.run("b-dead").state is RunState.INTERRUPTED
    assert site.store.run(run).state is RunState.RUNNING
    assert site.store.node("r1-n01").in_stage is None


def test_a_run_that_is_only_just_starting_keeps_its_nodes(site: Access) -> None:
    site.store.claim_run("b-new", kind="bringup", nodes=["r1-n01"], who="ana")
    with pytest.raises(NodesBusy):
        submit(site, "r1-n01")


def test_a_run_that_the_engine_did_not_take_is_over(site: Access) -> None:
    engine.migrate(site.settings.engine_database)
    database = sa.create_engine(site.settings.engine_database)
    with database.begin() as connection:
        connection.execute(sa.text("DROP TABLE workflow_status"))
    database.dispose()
    with pytest.raises(sa.exc.OperationalError):
        submit(site, "r1-n01")
    assert site.store.going() == ()


def test_a_cancelled_run_is_at_work_on_nothing_and_stays_cancelled(site: Access) -> None:
    run = submit(site, "r1-n01", "r1-n02")
    site.store.begin("r1-n01", Stage.REACHABLE, run=run)
    assert runs.cancel(site, run, "ana", "wrong rack") == 1
    assert site.store.node("r1-n01").in_stage is None
    assert site.store.run(run).state is RunState.CANCELLED
    with closing(engine.Client(site.settings.engine_database)) as client:
        assert client.pending(run) == 0
    # The runner may still come to record an end.
    site.store.end_run(run, RunState.FAILED)
    assert site.store.run(run).state is RunState.CANCELLED


def test_a_run_that_has_ended_cannot_be_cancelled_any_more(site: Access) -> None:
    run = submit(site, "r1-n01")
    runs.cancel(site, run, "ana", "")
    with closing(engine.Client(site.settings.engine_database)) as client:
        assert client.pending() == 0
    before = len(site.store.events(run=run))
    assert runs.cancel(site, run, "ana", "") == 0
    assert len(site.store.events(run=run)) == before


def test_nodes_that_a_cancelled_run_never_began_are_taken_up_by_resuming_it(site: Access) -> None:
    run = submit(site, "r1-n01", "r1-n02")
    runs.cancel(site, run, "ana", "")
    assert runs.unfinished(site, run) == ("r1-n01", "r1-n02")
    assert runs.resume(site, run, "ana") == ("r1-n01", "r1-n02")
    assert site.store.run(run).state is RunState.RUNNING
    assert runs.resume(site, run, "ana") == ()  # it is under way


def test_a_run_is_not_resumed_with_nodes_that_another_took_meanwhile(site: Access) -> None:
    run = submit(site, "r1-n01", "r1-n02")
    runs.cancel(site, run, "ana", "")
    other = submit(site, "r1-n02")
    with pytest.raises(NodesBusy) as refused:
        runs.resume(site, run, "ana")
    assert refused.value.run == other


def test_a_reimage_takes_nodes_out_of_the_pool_before_anything_else(site: Access) -> None:
    admit(site, "r1-n01")
    submit(site, "r1-n01", reimage=True, reason="new kernel")
    assert site.store.node("r1-n01").pool is None


def test_a_run_that_the_engine_lost_ends_as_interrupted(site: Access) -> None:
    """Whoever watched it must not say that it runs."""
    site.store.claim_run("b-9", kind="bringup", nodes=["r1-n01"], who="ana")
    site.store.begin("r1-n01", Stage.ENLISTED, run="b-9")
    assert runs.give_up(site, "b-9")
    assert site.store.run("b-9").state is RunState.INTERRUPTED
    assert site.store.node("r1-n01").in_stage is None
    assert not runs.give_up(site, "b-9")  # it has ended
