"""Making script sets and writing results into them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from lab.maas.errors import Refusal
from lab.maas.life.conductor import Conductor
from lab.maas.model.catalogue import HardwareType, Script
from lab.maas.model.events import Kind
from lab.maas.model.machine import Disk, Machine
from lab.maas.model.results import OPEN, Result, ResultStatus, ScriptSet, ScriptType

INSTALL_LOG = "/tmp/install.log"
BMC_CONFIG = "30-maas-01-bmc-config"
DEFAULT_TESTS_TAG = "commissioning"


@dataclass(frozen=True, slots=True)
class ReportedResult:
    """One script's result as a machine sends it; the outputs are base64."""

    name: str
    exit_status: int
    stdout: str = ""
    stderr: str = ""


def choose_tests(ctl: Conductor, asked: list[str] | None) -> list[Script]:
    """Return the tests asked for by name or tag; by default those for commissioning.

    Raises Refusal for a name that no test has.
    """
    tests = [one for one in ctl.region.scripts.values() if one.type is ScriptType.TESTING]
    if asked is None:
        return [one for one in tests if DEFAULT_TESTS_TAG in one.tags]
    names = [name for entry in asked for name in entry.split(",") if name]
    if names == ["none"]:
        return []
    chosen: list[Script] = []
    for name in names:
        found = [one for one in tests if name in {one.name, str(one.id)} or name in one.tags]
        if not found:
            text = f"Select a valid choice. {name} is not one of the available choices."
            raise Refusal(400, {"testing_scripts": [text]})
        chosen += [one for one in found if one not in chosen]
    return chosen


def commissioning_set(ctl: Conductor, machine: Machine, *, skip_bmc_config: bool) -> ScriptSet:
    """Make the set of all built-in commissioning scripts."""
    scripts = [one for one in ctl.region.scripts.values() if one.type is ScriptType.COMMISSIONING]
    made = _new_set(ctl, machine, ScriptType.COMMISSIONING)
    made.results = [_new_result(ctl, one, None) for one in scripts]
    machine.commissioning_set = made.id
    for one in made.results:
        if one.name == BMC_CONFIG:
            one.parameters = _bmc_parameters(ctl.region.scripts[BMC_CONFIG])
            if skip_bmc_config:
                change(ctl, machine, one, ResultStatus.SKIPPED)
    return made


def testing_set(ctl: Conductor, machine: Machine, scripts: list[Script]) -> ScriptSet:
    """Make a set of tests; those of disks once for every known disk."""
    made = _new_set(ctl, machine, ScriptType.TESTING)
    made.results = [one for script in scripts for one in _of_script(ctl, machine, script)]
    machine.testing_set = made.id
    return made


def spread_over_disks(ctl: Conductor, machine: Machine, made: ScriptSet) -> None:
    """Replace disk tests made before the disks were known by one for every disk."""
    results: list[Result] = []
    for one in made.results:
        script = ctl.region.scripts.get(one.name)
        if script is not None and script.per_disk and not one.device and machine.disks:
            results += _of_script(ctl, machine, script)
        else:
            results.append(one)
    made.results = results


def installation_set(ctl: Conductor, machine: Machine) -> ScriptSet:
    """Make the set that holds the installer's log."""
    made = _new_set(ctl, machine, ScriptType.INSTALLATION)
    now = ctl.now()
    made.results = [Result(ctl.region.number("result"), INSTALL_LOG, now, now)]
    machine.installation_set = made.id
    return made


def change(ctl: Conductor, machine: Machine, one: Result, status: ResultStatus) -> None:
    """Move a result to a status, with its times, and write that down."""
    if one.status is status:
        return
    text = f"{one.name} changed status from '{one.status.label}' to '{status.label}'"
    now = ctl.now()
    one.status, one.updated = status, now
    if status is not ResultStatus.PENDING and status is not ResultStatus.ABORTED:
        one.started = now if one.started is None else one.started
    if status not in OPEN and one.started is not None:
        one.ended = now
    if status is ResultStatus.SKIPPED:
        one.exit_status = 0
    ctl.note(machine, Kind.SCRIPT_RESULT, text)


def write(ctl: Conductor, machine: Machine, made: ScriptSet, reported: Iterable[ReportedResult]) -> None:
    """Enter what a machine reported; a script that runs per disk takes the reports in turn."""
    made.last_ping = ctl.now()
    for report in reported:
        one = next((o for o in made.results if o.name == report.name and o.status in OPEN), None)
        if one is None:
            continue
        change(ctl, machine, one, ResultStatus.RUNNING)
        _announce(ctl, machine, made, one)
        one.stdout, one.stderr, one.output = report.stdout, report.stderr, report.stdout
        one.exit_status = report.exit_status
        change(ctl, machine, one, ResultStatus.PASSED if report.exit_status == 0 else ResultStatus.FAILED)
        if report.exit_status and made.type is ScriptType.TESTING:
            ctl.note(machine, Kind.SCRIPT, f"{_title(one)} failed")


def _announce(ctl: Conductor, machine: Machine, made: ScriptSet, one: Result) -> None:
    if made.type is ScriptType.TESTING:
        ctl.note(machine, Kind.RUNNING_TEST, _title(one))


def _title(one: Result) -> str:
    return f"{one.name} on {one.device}" if one.device else one.name


def abort_open(ctl: Conductor, machine: Machine, made: ScriptSet | None) -> None:
    """Mark everything unfinished in a set as aborted."""
    for one in made.results if made else ():
        if one.status in OPEN:
            change(ctl, machine, one, ResultStatus.ABORTED)


def open_results(made: ScriptSet) -> list[Result]:
    """Return the results that are still to come."""
    return [one for one in made.results if one.status in OPEN]


def _new_set(ctl: Conductor, machine: Machine, kind: ScriptType) -> ScriptSet:
    made = ScriptSet(ctl.region.number("script_set"), machine.system_id, kind, [])
    ctl.region.script_sets[made.id] = made
    return made


def _of_script(ctl: Conductor, machine: Machine, script: Script) -> list[Result]:
    disks = [one for one in machine.disks if not one.virtual]
    if script.per_disk and disks:
        return [_new_result(ctl, script, one) for one in disks]
    return [_new_result(ctl, script, None)]


def _new_result(ctl: Conductor, script: Script, disk: Disk | None) -> Result:
    now = ctl.now()
    parameters: dict[str, object] = {}
    if disk is not None:
        shown = {
            "id": disk.id,
            "name": disk.name,
            "model": disk.model,
            "serial": disk.serial,
            "id_path": f"/dev/{disk.name}",
        }
        parameters = {"storage": {"type": "storage", "value": shown, "argument_format": "{path}"}}
    return Result(
        ctl.region.number("result"),
        script.name,
        now,
        now,
        script_id=script.id,
        hardware=int(script.hardware if script.type is ScriptType.TESTING else HardwareType.NODE),
        device=disk.name if disk else "",
        parameters=parameters,
    )


def _bmc_parameters(script: Script) -> dict[str, object]:
    given = {
        "maas_auto_ipmi_user": "maas",
        "maas_auto_ipmi_cipher_suite_id": "3",
        "maas_auto_ipmi_user_privilege_level": "ADMIN",
    }
    return {name: {**script.parameters[name], "value": value} for name, value in given.items()}
