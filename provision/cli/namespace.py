"""The namespace of all commands, the same for `invoke` in a checkout and `muster` when installed."""

from __future__ import annotations

from invoke.collection import Collection

from provision.cli.commands import (
    acting,
    bmcs,
    bringup,
    consoles,
    fixing,
    fleet,
    images,
    inventories,
    judging,
    looking,
    mirror,
    pools,
    power,
    profiles,
    site,
    ticket,
    triage,
    workers,
)


def collection() -> Collection:
    """Return the commands. No command has positionals or short flags; a test walks them all."""
    root = Collection()
    for task in (
        bringup.bringup,
        bringup.reimage,
        judging.verify,
        acting.quarantine,
        acting.release,
        acting.retire,
        judging.checks,
        judging.judge,
        fixing.fix,
        fleet.rank,
        acting.cancel,
        looking.status,
        looking.nodes,
        looking.show,
        looking.history,
        looking.runs_,
        looking.watch,
        site.doctor,
        ticket.ticket,
        workers.worker,
        workers.adopt,
    ):
        root.add_task(task)
    for name, tasks in (
        ("power", (power.status, power.on, power.off, power.cycle)),
        (
            "console",
            (
                consoles.capture,
                consoles.record,
                consoles.daemon,
                consoles.show,
                consoles.tail,
                consoles.grep,
                consoles.screen,
                consoles.cast_,
            ),
        ),
        ("bmc", (bmcs.sel, bmcs.sensors, bmcs.fru, bmcs.firmware, bmcs.identify, bmcs.reset)),
        ("fleet", (fleet.outliers, fleet.offenders, fleet.flaps, fleet.parts, fleet.links)),
        ("profile", (profiles.learn,)),
        ("triage", (triage.list_, triage.show, triage.promote, triage.deny, triage.defer)),
        (
            "mirror",
            (
                mirror.put,
                mirror.get,
                mirror.list_,
                mirror.pin,
                mirror.gc,
                mirror.verify,
                mirror.fetch,
                mirror.spread,
            ),
        ),
        ("images", (images.push, images.status, images.preheat)),
        ("inventory", (inventories.check, inventories.import_)),
        (
            "pool",
            (
                pools.status,
                pools.allocate,
                pools.return_,
                pools.replace,
                pools.balance,
                pools.mirror,
                pools.resume,
            ),
        ),
    ):
        branch = Collection(name)
        for task in tasks:
            branch.add_task(task)
        root.add_collection(branch)
    return root
