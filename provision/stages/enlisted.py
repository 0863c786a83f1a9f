"""enlisted: MAAS has a machine for the node, with the node's MAC and a way to its BMC."""

from __future__ import annotations

from urllib.parse import urlsplit

from inventory.model import Node
from provision.errors import NodeFailed
from provision.maas.client import MaasClient
from provision.maas.errors import MaasUncertain
from provision.maas.model import Machine, NewMachine
from provision.stages.job import NodeJob, Reached
from provision.stages.maas_wait import AWAY, Patience, patiently


async def reach(job: NodeJob) -> Reached:
    """Find the node's machine in MAAS, or create it. Raises MaasError, NodeFailed."""
    found = await patiently(job, lambda: find_machine(job.maas.client, job))
    machine = found or await _create(job)
    await patiently(job, lambda: _see_bmc(job, machine))
    detail = f"MAAS machine {machine.system_id}" + ("" if found else " created")
    return Reached(detail, already=found is not None, facts={"system_id": machine.system_id})


async def _see_bmc(job: NodeJob, machine: Machine) -> None:
    """See that MAAS switches the power of the node's BMC.

    A machine that enlisted itself at its first network boot has no BMC in MAAS yet: it gets the
    site's, and the node's name. Raises NodeFailed where MAAS has another BMC.
    """
    power = await job.maas.client.power_parameters(machine.system_id)
    host = urlsplit(power.address).hostname if "//" in power.address else power.address
    if not host:
        new = _new_machine(job)
        fields = {f"power_parameters_{name}": value for name, value in new.power.items()}
        job.note(f"{machine.system_id} enlisted itself: giving it its name and BMC")
        await job.maas.client.update(
            machine.system_id, hostname=new.hostname, power_type=new.power_type, **fields
        )
    elif host != job.node.bmc.host:
        reason = f"MAAS reaches {machine.system_id} at BMC {host or '(none)'}"
        raise NodeFailed("enlisted", "maas-mismatch", reason, why=f"the site files say {job.node.bmc.host}")


async def find_machine(maas: MaasClient, job: NodeJob) -> Machine | None:
    """Return the node's machine: by the id we know, else by MAC; never by name alone.

    Raises NodeFailed where MAAS knows the name or the MAC for something else.
    """
    known = job.state.system_id
    if known:
        for machine in await maas.machines(ids=[known]):
            return _same(machine, job.node)
    for mac in job.node.macs:
        for machine in await maas.machines(mac_address=[mac]):
            return _same(machine, job.node)
    for machine in await maas.machines(hostname=[job.node.name]):
        if job.node.macs:
            macs = ", ".join(machine.macs) or "none"
            reason = f"MAAS has another machine of this name ({machine.system_id}, MAC {macs})"
            raise NodeFailed(
                "enlisted", "maas-mismatch", reason, why=f"the site files say MAC {job.node.macs[0]}"
            )
        return machine
    return None


def _same(machine: Machine, node: Node) -> Machine:
    wanted = set(node.macs)
    if wanted and not wanted & set(machine.macs):
        reason = f"MAAS machine {machine.system_id} has MAC {', '.join(machine.macs)}"
        raise NodeFailed(
            "enlisted", "maas-mismatch", reason, why=f"the site files say {', '.join(node.macs)}"
        )
    return machine


async def _create(job: NodeJob) -> Machine:
    """Create the machine; where the answer was lost, look for it before creating it again."""
    patience = Patience(job)
    while True:
        try:
            return await job.maas.client.create(_new_machine(job), commission=False)
        except MaasUncertain as error:
            job.note(f"enlisting: {error}; looking before asking again")
        except AWAY as error:
            patience.away(error)
        await job.pace.sleep(job.pace.longest)
        found = await patiently(job, lambda: find_machine(job.maas.client, job))
        if found is not None:
            return found


def _new_machine(job: NodeJob) -> NewMachine:
    node = job.node
    target = job.access.bmc(node)
    parameters = {
        "power_address": target.host,
        "power_user": target.credential.username,
        "power_pass": target.credential.password,
        "power_driver": "LAN_2_0",
        "cipher_suite_id": "17",
    }
    return NewMachine(hostname=node.name, macs=node.macs, architecture=node.architecture, power=parameters)
