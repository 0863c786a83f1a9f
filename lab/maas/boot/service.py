"""`/boot/{mac}` and `/ipxe/{mac}`: the lab's stand-in for MAAS's boot and metadata services."""

from __future__ import annotations

import base64
import json
import re
import secrets
from dataclasses import dataclass
from typing import Any

from aiohttp import web

from lab.maas.api import creation
from lab.maas.api.form import Form
from lab.maas.boot.intent import Intent, Phase, Progress, intent_of
from lab.maas.boot.ipxe import netboot_script
from lab.maas.errors import Refusal
from lab.maas.life import commission, deploy, release, testing
from lab.maas.life.conductor import Conductor
from lab.maas.life.scripts import ReportedResult, open_results
from lab.maas.model.events import Kind
from lab.maas.model.machine import Machine
from lab.maas.model.results import ScriptType
from lab.maas.model.status import Status

_MAC = re.compile(r"^([0-9a-f]{2}:){5}[0-9a-f]{2}$")
_EXPECTED = {
    Phase.COMMISSIONING: frozenset({Status.COMMISSIONING}),
    Phase.TESTING: frozenset({Status.TESTING}),
    Phase.INSTALLATION: frozenset({Status.DEPLOYING}),
    Phase.BOOT: frozenset({Status.DEPLOYING, Status.DEPLOYED}),
    Phase.RESCUE: frozenset({Status.ENTERING_RESCUE_MODE, Status.RESCUE_MODE}),
}
# MAAS's first word about a boot: which image it sends.
_PXE_WORDS = {
    Intent.COMMISSION: "commissioning",
    Intent.INSTALL: "installation",
    Intent.LOCAL: "local boot",
    Intent.RESCUE: "rescue",
    Intent.TEST: "testing",
    Intent.NOTHING: "poweroff",
}


@dataclass(frozen=True, slots=True)
class Report:
    """What a machine says about its progress."""

    token: str
    phase: Phase
    event: Progress
    message: str
    results: tuple[ReportedResult, ...]
    address: str | None


class BootService:
    """Tells machines what to boot, and takes their reports."""

    def __init__(self, ctl: Conductor) -> None:
        self._ctl = ctl
        # Machines that MAAS does not know yet, by MAC: the token of the boot that enlists them.
        self._strangers: dict[str, str] = {}

    async def boot(self, request: web.Request) -> web.Response:
        """Answer a machine that asks what to boot; its former token dies."""
        try:
            mac = _mac(request)
        except Refusal as exc:
            return _error(exc)
        return web.json_response(self._answer(mac))

    async def ipxe(self, request: web.Request) -> web.Response:
        """Answer the same question as an iPXE script."""
        try:
            mac = _mac(request)
        except Refusal as exc:
            return _error(exc)
        told = self._answer(mac)
        words = {name: str(told[name]) for name in ("token", "system_id", "hostname", "image")}
        words |= {"mac": mac, "url": self._ctl.config.boot_url or f"http://{request.host}"}
        script = netboot_script(self._ctl.config.boot_assets, Intent(str(told["intent"])), words)
        return web.Response(text=script, content_type="text/plain")

    def _answer(self, mac: str) -> dict[str, object]:
        token = secrets.token_hex(16)
        machine = self._ctl.region.by_mac(mac)
        if machine is None:
            self._strangers[mac] = token
            return _told(Intent.ENLIST, token)
        intent = intent_of(machine)
        machine.boot.token, machine.boot.intent = token, intent
        machine.boot.asked += 1
        self._ctl.touch(machine)
        self._ctl.note(machine, Kind.PXE_REQUEST, _PXE_WORDS[intent])
        if intent not in {Intent.LOCAL, Intent.NOTHING}:
            self._ctl.note(machine, Kind.PERFORMING_PXE_BOOT)
        order = machine.order
        told = _told(intent, token)
        told |= {
            "system_id": machine.system_id,
            "hostname": machine.hostname,
            "image": f"{order.osystem}/{order.distro_series}" if order.osystem else "",
            "ssh_keys": self._ssh_keys(machine),
            "user_data": order.user_data,
            "ephemeral": order.ephemeral,
            "enable_ssh": order.enable_ssh,
            "scripts": self._scripts(machine, intent),
        }
        return told

    def _ssh_keys(self, machine: Machine) -> list[str]:
        keys = self._ctl.region.ssh_keys.values()
        return [one.key for one in keys if machine.owner in {None, one.user}]

    def _scripts(self, machine: Machine, intent: Intent) -> list[dict[str, object]]:
        """Return the scripts that the machine may run and report by name."""
        wanted = {Intent.COMMISSION: machine.commissioning_set, Intent.TEST: machine.testing_set}
        made = self._ctl.region.script_set(wanted.get(intent))
        if made is None:
            return []
        return [
            {"name": one.name, "type": ScriptType(made.type).name.lower(), "device": one.device}
            for one in open_results(made)
        ]

    async def report(self, request: web.Request) -> web.Response:
        """Take a machine's report; answer what it is to do next."""
        try:
            mac = _mac(request)
            report = _parse(await request.read())
            return web.json_response({"status": "ok", "next": self._take(mac, report)})
        except Refusal as exc:
            return _error(exc)

    def _take(self, mac: str, report: Report) -> str:
        machine = self._ctl.region.by_mac(mac)
        if report.phase is Phase.ENLISTMENT:
            return self._enlist(mac, machine, report)
        if machine is None:
            raise Refusal(404, f"no machine has the address {mac}")
        if report.token not in _good_tokens(machine, report.phase):
            raise Refusal(403, "stale token: the machine has been booted or stopped since")
        if machine.status not in _EXPECTED[report.phase]:
            raise Refusal(409, f"a machine that is {machine.status.label} has no {report.phase} to report")
        self._ctl.touch(machine)
        return _TAKERS[report.phase](self._ctl, machine, report)

    def _enlist(self, mac: str, machine: Machine | None, report: Report) -> str:
        if machine is not None:
            raise Refusal(409, f"{mac} already belongs to {machine.hostname}")
        if not report.token or report.token != self._strangers.get(mac):
            raise Refusal(403, "stale token: the machine has been booted since")
        if report.event is not Progress.FINISHED:
            return "stay"
        fields = [("architecture", "amd64/generic"), ("mac_addresses", mac)]
        if report.message:
            fields.append(("hostname", report.message))
        made = creation.add(self._ctl.region, creation.check(self._ctl.region, Form(fields)), self._ctl.now())
        del self._strangers[mac]
        self._ctl.note(made, Kind.NEW)
        return "poweroff"


def _good_tokens(machine: Machine, phase: Phase) -> set[str]:
    """Return the tokens that may report a phase: an installed system keeps that of its installer."""
    good = {machine.boot.token}
    if phase is Phase.BOOT:
        good.add(machine.boot.system_token)
    return good - {""}


def _commissioning(ctl: Conductor, machine: Machine, report: Report) -> str:
    if report.event is Progress.STARTED:
        commission.started(ctl, machine)
    elif report.event is Progress.PROGRESS:
        commission.progress(ctl, machine, report.results)
    elif report.event is Progress.FAILED:
        commission.progress(ctl, machine, report.results)
        commission.failed(ctl, machine, report.message)
    else:
        token = machine.boot.token
        commission.finished(ctl, machine, report.results)
        if machine.status is Status.TESTING:
            # The same boot goes on, so its token must live on.
            machine.boot.token = token
            return "testing"
    if machine.status is Status.COMMISSIONING or machine.order.enable_ssh:
        return "stay"
    return "poweroff"


def _testing(ctl: Conductor, machine: Machine, report: Report) -> str:
    if report.event in {Progress.STARTED, Progress.PROGRESS}:
        testing.progress(ctl, machine, report.results)
        return "stay"
    results = report.results
    if report.event is Progress.FAILED and not any(one.exit_status for one in results):
        made = ctl.region.script_set(machine.testing_set)
        left = open_results(made) if made else []
        text = base64.b64encode(report.message.encode()).decode()
        results += tuple(ReportedResult(one.name, 1, text) for one in left)
    testing.finished(ctl, machine, results)
    if machine.status is Status.DEPLOYED:
        return "reboot"
    return "stay" if machine.order.enable_ssh else "poweroff"


def _installation(ctl: Conductor, machine: Machine, report: Report) -> str:
    log = report.results[-1].stdout if report.results else ""
    if report.event is Progress.STARTED:
        deploy.started(ctl, machine)
    elif report.event is Progress.PROGRESS:
        deploy.progress(ctl, machine, report.message)
    elif report.event is Progress.FAILED:
        deploy.failed(ctl, machine, report.message, log)
        return "poweroff"
    else:
        deploy.finished(ctl, machine, log)
        return "reboot" if machine.status is Status.DEPLOYING else "poweroff"
    return "stay"


def _booted(ctl: Conductor, machine: Machine, report: Report) -> str:
    if report.event is Progress.FINISHED:
        deploy.booted(ctl, machine, report.address)
    elif report.event is Progress.STARTED:
        deploy.booting(ctl, machine, report.address)
    elif report.event is Progress.FAILED and machine.status is Status.DEPLOYING:
        ctl.note(machine, Kind.POST_INSTALL_FAILED, report.message)
        ctl.mark_failed(machine, report.message or "Failed to boot the installed system.")
    return "stay"


def _rescue(ctl: Conductor, machine: Machine, report: Report) -> str:
    if report.event is Progress.FAILED:
        ctl.mark_failed(machine, report.message or "Failed to enter rescue mode.")
    else:
        token = machine.boot.token
        release.rescued(ctl, machine)
        machine.boot.token = token
    return "stay"


_TAKERS = {
    Phase.COMMISSIONING: _commissioning,
    Phase.TESTING: _testing,
    Phase.INSTALLATION: _installation,
    Phase.BOOT: _booted,
    Phase.RESCUE: _rescue,
}


def _told(intent: Intent, token: str) -> dict[str, object]:
    return {
        "intent": str(intent),
        "system_id": "",
        "hostname": "",
        "token": token,
        "image": "",
        "ssh_keys": [],
        "user_data": None,
        "ephemeral": False,
        "enable_ssh": False,
        "scripts": [],
    }


def _mac(request: web.Request) -> str:
    mac = request.match_info["mac"].lower().replace("-", ":")
    if not _MAC.match(mac):
        raise Refusal(400, f"{mac!r} is not a MAC address")
    return mac


def _parse(raw: bytes) -> Report:
    try:
        given: Any = json.loads(raw)
        return Report(
            token=str(given["token"]),
            phase=Phase(given["phase"]),
            event=Progress(given["event"]),
            message=str(given.get("message") or ""),
            results=tuple(_parse_result(one) for one in given.get("results") or ()),
            address=given.get("address") or None,
        )
    except (ValueError, KeyError, TypeError, AttributeError) as exc:
        raise Refusal(400, f"not a report: {exc!r}") from exc


def _parse_result(one: dict[str, Any]) -> ReportedResult:
    for name in ("stdout", "stderr"):
        base64.b64decode(str(one.get(name) or ""), validate=True)
    return ReportedResult(
        str(one["name"]),
        int(one["exit_status"]),
        str(one.get("stdout") or ""),
        str(one.get("stderr") or ""),
    )


def _error(refusal: Refusal) -> web.Response:
    return web.json_response({"error": refusal.body}, status=refusal.status)
