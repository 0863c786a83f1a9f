"""Scripts, and what they found on machines."""

from __future__ import annotations

import base64
import re
from enum import IntEnum

from lab.maas.api.resource import Action, Answer, Call, Resource, bad, require_admin
from lab.maas.errors import Refusal
from lab.maas.model.catalogue import HardwareType, Script
from lab.maas.model.results import ScriptSet, ScriptType
from lab.maas.render import results as render

_TIMEOUT = re.compile(r"^(\d+):([0-5]?\d):([0-5]?\d)$")
_PARALLEL = {"disabled": 0, "instance": 1, "any": 2}


def read_scripts(call: Call) -> Answer:
    """List scripts, of one type if asked."""
    wanted = call.query.given("type")
    found = [
        one
        for one in call.region.scripts.values()
        if wanted is None or wanted in {one.type.name.lower(), str(int(one.type))}
    ]
    return Answer([_shown(call, one) for one in found])


def _shown(call: Call, one: Script) -> dict[str, object]:
    shown = render.script(one)
    if call.query.flag("include_script"):
        shown["script"] = base64.b64encode(one.body).decode()
    return shown


def create_script(call: Call) -> Answer:
    """Upload a script."""
    require_admin(call)
    form = call.form
    name = form.one("name")
    if not name:
        raise bad("name", "This field is required.")
    if name in call.region.scripts:
        raise bad("name", "Script with this Name already exists.")
    body = next(iter(call.files.values()), form.one("script").encode())
    if not body.startswith(b"#!/"):
        raise bad("script", "Must start with shebang.")
    made = Script(
        id=call.region.number("script"),
        name=name,
        title=form.one("title"),
        created=call.ctl.now(),
        description=form.one("description"),
        type=ScriptType[_choice("script_type", form.one("script_type", "testing"), ScriptType)],
        hardware=HardwareType[_choice("hardware_type", form.one("hardware_type", "node"), HardwareType)],
        parallel=_PARALLEL.get(form.one("parallel", "disabled"), 0),
        tags=tuple(form.listed("tags")),
        timeout=_timeout(form.one("timeout", "0:00:00")),
        destructive=form.flag("destructive"),
        body=body,
    )
    call.region.scripts[name] = made
    return Answer(render.script(made))


def _choice(field: str, given: str, known: type[IntEnum]) -> str:
    if given.upper() in known.__members__:
        return given.upper()
    raise bad(field, f"Invalid {field.replace('_', ' ')} '{given}'.")


def _timeout(given: str) -> str:
    found = _TIMEOUT.match(given)
    if found is None:
        raise bad("timeout", "Enter a valid duration.")
    hours, minutes, seconds = (int(part) for part in found.groups())
    return f"{hours}:{minutes:02}:{seconds:02}"


def read_script(call: Call) -> Answer:
    """Show a script. Its address has no slash at the end, unlike all others."""
    return Answer(_shown(call, _script(call)))


def delete_script(call: Call) -> Answer:
    """Remove an uploaded script."""
    require_admin(call)
    found = _script(call)
    if found.built_in:
        raise Refusal(403, "Unable to delete default script")
    del call.region.scripts[found.name]
    return Answer(b"", status=204, content_type="text/plain")


def _script(call: Call) -> Script:
    wanted = call.params["name"]
    for one in call.region.scripts.values():
        if wanted in {one.name, str(one.id)}:
            return one
    raise Refusal(404, "No Script matches the given query.", content_type="text/plain")


def read_results(call: Call) -> Answer:
    """List a machine's script sets, the oldest first."""
    one = call.machine()
    wanted = call.query.given("type")
    types = {
        kind for kind in ScriptType if wanted is None or wanted.lower() in {kind.name.lower(), str(int(kind))}
    }
    found = [
        made
        for made in call.region.script_sets.values()
        if made.system_id == one.system_id and made.type in types
    ]
    return Answer([_shown_set(call, made) for made in found])


def _shown_set(call: Call, made: ScriptSet) -> dict[str, object]:
    names = frozenset(call.query.listed("filters")) or None
    return render.script_set(made, outputs=call.query.flag("include_output"), only=names)


def _result_set(call: Call) -> ScriptSet:
    one = call.machine()
    wanted = call.params["id"]
    number: int | None = None
    if wanted.startswith("current-"):
        kind = wanted.removeprefix("current-")
        number = {
            "commissioning": one.commissioning_set,
            "installation": one.installation_set,
            "testing": one.testing_set,
        }.get(kind)
    elif wanted.isdigit():
        number = int(wanted)
    found = call.region.script_set(number)
    if found is None or found.system_id != one.system_id:
        raise Refusal(404, "No ScriptSet matches the given query.", content_type="text/plain")
    return found


def read_result(call: Call) -> Answer:
    """Show one script set: by number, or `current-commissioning` and its like."""
    return Answer(_shown_set(call, _result_set(call)))


def download_result(call: Call) -> Answer:
    """Return the outputs of a set's scripts as one text."""
    found = _result_set(call)
    names = frozenset(call.query.listed("filters"))
    parts = [
        base64.b64decode(one.output or one.stdout)
        for one in sorted(found.results, key=lambda one: one.name)
        if not names or one.name in names
    ]
    return Answer(b"".join(parts), content_type="text/plain; charset=utf-8")


RESOURCES = (
    Resource(
        "NodeScriptsHandler",
        "scripts/",
        (Action("GET", None, read_scripts), Action("POST", None, create_script)),
    ),
    Resource(
        "NodeScriptHandler",
        "scripts/{name}",
        (Action("GET", None, read_script), Action("DELETE", None, delete_script)),
    ),
    Resource("NodeScriptResultsHandler", "nodes/{system_id}/results/", (Action("GET", None, read_results),)),
    Resource(
        "NodeScriptResultHandler",
        "nodes/{system_id}/results/{id}/",
        (Action("GET", None, read_result), Action("GET", "download", download_result)),
    ),
)
