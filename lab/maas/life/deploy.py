"""Allocation and deployment: from Ready to a machine with an operating system."""

from __future__ import annotations

import base64
from dataclasses import dataclass

from lab.maas.errors import Refusal
from lab.maas.faults import Fault
from lab.maas.life import network, powering, scripts, storage
from lab.maas.life.conductor import Conductor
from lab.maas.model.events import Kind
from lab.maas.model.machine import Machine, Order
from lab.maas.model.region import BootResource
from lab.maas.model.results import OPEN, ResultStatus
from lab.maas.model.status import Status

INSTALL_FAILED = "Installation failed (refer to the installation log for more information)."


# The installer's own names of its stages, and what MAAS says when it hears them.
_STAGES = {
    "cmd-install/stage-partitioning": Kind.CONFIGURING_STORAGE,
    "cmd-install/stage-extract": Kind.INSTALLING_OS,
    "cmd-install/stage-curthooks": Kind.CONFIGURING_OS,
}


@dataclass(frozen=True, slots=True)
class DeployOrder:
    """What a user wants on the machine."""

    series: str = ""
    osystem: str = ""
    kernel: str = ""
    user_data: str | None = None
    ephemeral: bool = False
    comment: str = ""


def acquire(ctl: Conductor, machine: Machine, user: str, agent_name: str, comment: str) -> None:
    """Give a Ready machine to a user."""
    ctl.new_turn(machine)
    machine.owner, machine.acquired = user, True
    machine.agent_name = agent_name
    ctl.asked(machine, Kind.USER_ACQUIRE, user, comment)
    ctl.move(machine, Status.ALLOCATED)


def begin(ctl: Conductor, machine: Machine, user: str, order: DeployOrder) -> None:
    """Start deployment, allocating a Ready machine on the way. Raises Refusal."""
    if machine.status not in {Status.READY, Status.ALLOCATED}:
        text = f"Can't deploy a machine that is in the '{machine.status.label}' state"
        raise Refusal(409, text)
    image = choose_image(ctl, order)
    powering.need_rack(ctl, machine, starting=True)
    if not network.is_on_network(ctl.region, machine):
        text = "Node must be configured to use a network"
        raise Refusal(400, {"network": [text]}, content_type="application/json")
    if not order.ephemeral and not storage.root_is_mounted(machine):
        text = "Mount the root '/' filesystem to be able to deploy this node."
        raise Refusal(400, {"storage": [text]}, content_type="application/json")
    if machine.status is Status.READY:
        acquire(ctl, machine, user, "", order.comment)
    _start(ctl, machine, user, order, image)


def _start(ctl: Conductor, machine: Machine, user: str, order: DeployOrder, image: BootResource) -> None:
    ctl.new_turn(machine)
    osystem, _, series = image.name.partition("/")
    kernel = order.kernel or image.architecture.partition("/")[2]
    machine.order = Order(osystem, series, kernel, order.user_data, order.ephemeral)
    machine.netboot = True
    machine.boot.system_token = ""
    machine.installation_set = None
    if not order.ephemeral:
        scripts.installation_set(ctl, machine)
    ctl.asked(machine, Kind.USER_DEPLOY, user, order.comment)
    ctl.note(machine, Kind.DEPLOYING)
    ctl.move(machine, Status.DEPLOYING)
    ctl.watch(machine)
    ctl.start(_boot(ctl, machine, machine.turn))


def choose_image(ctl: Conductor, order: DeployOrder) -> BootResource:
    """Find the image for a series, `noble` or `ubuntu/noble`. Raises Refusal for an unknown one."""
    settings = ctl.region.settings
    images = {one.name: one for one in ctl.region.images.values() if one.file is None or one.file.complete}
    asked = order.series or str(settings["default_distro_series"])
    osystem = order.osystem or (str(settings["default_osystem"]) if not order.series else "")
    for name in (asked, f"{osystem}/{asked}", f"ubuntu/{asked}", f"custom/{asked}"):
        if name in images:
            return images[name]
    known = ", ".join(f"'{name}'" for name in ["", *sorted(images)])
    text = f"'{asked}' is not a valid distro_series.  It should be one of: {known}."
    raise Refusal(400, {"distro_series": [text]})


async def _boot(ctl: Conductor, machine: Machine, turn: int) -> None:
    network.claim_addresses(ctl.region, machine)
    if not await powering.switch_on(ctl, machine) or machine.turn != turn:
        return
    if not ctl.simulated:
        return
    if not machine.order.ephemeral:
        started(ctl, machine)
        await ctl.clock.sleep(ctl.config.delays.deploy)
        if machine.turn != turn:
            return
        finished(ctl, machine, "")
    await ctl.clock.sleep(ctl.config.delays.boot)
    if machine.turn == turn:
        booted(ctl, machine, None)


def started(ctl: Conductor, machine: Machine) -> None:
    """Note that the installer runs."""
    ctl.note(machine, Kind.LOADING_EPHEMERAL)
    ctl.note(machine, Kind.CONFIGURING_STORAGE)
    made = ctl.region.script_set(machine.installation_set)
    for one in made.results if made else ():
        scripts.change(ctl, machine, one, ResultStatus.RUNNING)


def progress(ctl: Conductor, machine: Machine, message: str) -> None:
    """Note how far the installer is."""
    ctl.note(machine, Kind.INSTALL, message)
    stage, _, _ = message.partition(":")
    ctl.note(machine, _STAGES.get(stage, Kind.INSTALLING_OS), action=stage if stage in _STAGES else "")


def finished(ctl: Conductor, machine: Machine, log: str) -> None:
    """Note that the installer is done: from now on the machine boots from its disk."""
    if ctl.faults.of(machine.system_id, Fault.STUCK_DEPLOYING):
        return
    if ctl.faults.of(machine.system_id, Fault.DEPLOY_FAILS):
        text = "curtin: Installation failed with exception: a fault was injected\n"
        failed(ctl, machine, "curtin command install", base64.b64encode(text.encode()).decode())
        return
    _close_log(ctl, machine, ResultStatus.PASSED, log)
    stop_netboot(ctl, machine)
    ctl.note(machine, Kind.REBOOTING)
    ctl.touch(machine)


def stop_netboot(ctl: Conductor, machine: Machine) -> None:
    """From now on the machine boots from its disk, and what lies there has a token of its own."""
    machine.netboot = False
    machine.boot.system_token = machine.boot.token
    ctl.note(machine, Kind.INSTALLATION_FINISHED, "Node disabled netboot")


def failed(ctl: Conductor, machine: Machine, message: str, log: str) -> None:
    """Give the installation up, as MAAS does when curtin says so."""
    _close_log(ctl, machine, ResultStatus.FAILED, log)
    ctl.note(machine, Kind.INSTALL_FAILED, f"'curtin' {message or 'curtin command install'}")
    ctl.mark_failed(machine, INSTALL_FAILED)


def _close_log(ctl: Conductor, machine: Machine, status: ResultStatus, log: str) -> None:
    made = ctl.region.script_set(machine.installation_set)
    for one in made.results if made else ():
        if one.status in OPEN:
            one.output = log
            one.exit_status = 0 if status is ResultStatus.PASSED else 1
            scripts.change(ctl, machine, one, status)


def booting(ctl: Conductor, machine: Machine, address: str | None) -> bool:
    """Note that the deployed system speaks: that is Deployed already. Say whether it is news."""
    if address:
        network.learn_address(ctl.region, machine, address)
    if machine.status is not Status.DEPLOYING:
        return False
    if ctl.faults.of(machine.system_id, Fault.STUCK_DEPLOYING):
        return False
    token = machine.boot.token
    ctl.new_turn(machine)
    machine.boot.token = token
    ctl.move(machine, Status.DEPLOYED)
    return True


def booted(ctl: Conductor, machine: Machine, address: str | None) -> None:
    """Note that the deployed system is up, and where it can be reached."""
    if booting(ctl, machine, address):
        ctl.note(machine, Kind.DEPLOYED)
