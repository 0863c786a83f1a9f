"""Switching machines on and off through the power driver, one slot per command."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from lab.maas.errors import PowerError, Refusal
from lab.maas.faults import Fault
from lab.maas.life.conductor import Conductor
from lab.maas.model.events import Kind
from lab.maas.model.machine import Machine
from lab.maas.power import PowerState, PowerTarget

# Power types that a rack controller can drive; the rest is for somebody's hands.
DRIVEN = frozenset({"ipmi", "redfish"})


def target_of(machine: Machine) -> PowerTarget:
    """Describe the machine's BMC for the driver."""
    given = machine.power_parameters
    port = machine.boot_interface
    return PowerTarget(
        system_id=machine.system_id,
        hostname=machine.hostname,
        mac=port.mac if port else None,
        power_type=machine.power_type,
        address=given.get("power_address", ""),
        user=given.get("power_user", ""),
        password=given.get("power_pass", ""),
        cipher_suite=given.get("cipher_suite_id", ""),
        privilege=given.get("privilege_level", "OPERATOR"),
        k_g=given.get("k_g", ""),
    )


def need_rack(ctl: Conductor, machine: Machine, *, starting: bool = False) -> None:
    """Refuse when no rack controller can reach the machine's BMC. Raises Refusal."""
    if not ctl.faults.active(Fault.NO_RACK):
        return
    if starting:
        raise Refusal(500, f"Error determining BMC task queue for machine {machine.system_id}")
    raise Refusal(503, f"No rack controllers can access the BMC of node {machine.hostname}")


async def switch_on(ctl: Conductor, machine: Machine) -> bool:
    """Switch a machine on, or cycle it; say whether that worked, and fail the machine if not.

    MAAS always boots machines from the network; one that is installed is then told to use its disk.
    """
    ctl.note(machine, Kind.POWERING_ON)
    done = await _command(ctl, machine, lambda: ctl.power.on(target_of(machine), pxe=True))
    if done is not None:
        ctl.note(machine, Kind.POWER_ON_FAILED, done)
        ctl.mark_failed(machine, f"Power on for the node failed: {done}")
        return False
    ctl.note(machine, Kind.POWERED_ON)
    if machine.power_type in DRIVEN:
        machine.power_state = PowerState.ON
    return True


async def switch_off(ctl: Conductor, machine: Machine, *, soft: bool = False) -> bool:
    """Switch a machine off; say whether that worked, and fail the machine if not."""
    done = await _command(ctl, machine, lambda: ctl.power.off(target_of(machine), soft=soft))
    if done is not None:
        ctl.note(machine, Kind.POWER_OFF_FAILED, done)
        ctl.mark_failed(machine, f"Power off for the node failed: {done}")
        return False
    ctl.note(machine, Kind.POWERED_OFF)
    if machine.power_type in DRIVEN:
        machine.power_state = PowerState.OFF
    return True


async def query(ctl: Conductor, machine: Machine) -> str:
    """Ask the BMC, and remember what it says: on, off, unknown or error."""
    if machine.power_type not in DRIVEN:
        return PowerState.UNKNOWN
    if ctl.simulated:
        return machine.power_state
    try:
        async with ctl.slots:
            machine.power_state = await ctl.power.query(target_of(machine))
    except PowerError as exc:
        ctl.note(machine, Kind.POWER_QUERY_FAILED, exc.reason)
        machine.power_state = PowerState.ERROR
    return machine.power_state


async def _command(ctl: Conductor, machine: Machine, command: Callable[[], Awaitable[None]]) -> str | None:
    """Run a power command in a slot; return why it failed, or None."""
    await ctl.clock.sleep(ctl.config.delays.power)
    if ctl.simulated or machine.power_type not in DRIVEN:
        return None
    try:
        # Commands to one machine keep their order, whatever the slots do.
        async with ctl.power_lock(machine), ctl.slots:
            await command()
    except PowerError as exc:
        machine.power_state = PowerState.ERROR
        return exc.reason
    return None
