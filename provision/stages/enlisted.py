"""enlisted: MAAS has a machine for the node, with the node's MAC and a way to its BMC."""

from __future__ import annotations

from inventory.model import Node
from provision.errors import NodeFailed
from provision.maas.client import MaasClient
from provision.maas.model import Machine, NewMachine
from provision.stages.job import NodeJob, Reached


async def reach(job: NodeJob) -> Reached:
    """Find the node's machine in MAAS, or create it. Raises MaasError, NodeFailed."""
    async with job.access.maas() as maas:
        machine = await find_machine(maas, job)
        if machine is not None:
            return Reached(
                f"MAAS machine {machine.system_id}", already=True, facts={"system_id": machine.system_id}
            )
        machine = await _create(maas, job)
    return Reached(f"MAAS machine {machine.system_id} created", facts={"system_id": machine.system_id})


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


async def _create(maas: MaasClient, job: NodeJob) -> Machine:
    node = job.node
    target = job.access.bmc(node)
    parameters = {
        "power_address": target.host,
        "power_user": target.credential.username,
        "power_pass": target.credential.password,
        "power_driver": "LAN_2_0",
        "cipher_suite_id": "17",
    }
    new = NewMachine(hostname=node.name, macs=node.macs, architecture=node.architecture, power=parameters)
    return await maas.create(new, commission=False)
