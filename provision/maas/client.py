"""MAAS's API 2.0, typed: one method a call. What may be repeated is decided in `transport`."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Iterable, Sequence
from datetime import datetime
from types import TracebackType
from typing import Self

import aiohttp

from provision.maas import parse
from provision.maas.errors import MaasBadAnswer, MaasForbidden, MaasLocked, MaasRejected
from provision.maas.hardware import Hardware
from provision.maas.images import Images
from provision.maas.model import (
    Deployment,
    Event,
    Machine,
    Named,
    NewMachine,
    PowerParameters,
    RackController,
    ResultKind,
    ScriptResult,
    StopMode,
    Subnet,
    Tag,
    User,
    Version,
)
from provision.maas.oauth import ApiKey
from provision.maas.transport import Ambient, Call, Fields, Limits, Transport, for_machine, form_fields

# One machine is about 18 KB of JSON: a batch stays near one megabyte.
_BATCH = 64
_EVENTS = 1000  # the most that MAAS gives in one answer


class MaasClient:
    """A session with one MAAS: `async with MaasClient(url, key) as maas`.

    `node_names` turns a system id into the name that errors should use.
    """

    def __init__(
        self,
        url: str,
        key: ApiKey,
        *,
        node_names: Callable[[str], str] | None = None,
        session: aiohttp.ClientSession | None = None,
        limits: Limits | None = None,
        ambient: Ambient | None = None,
    ) -> None:
        self._transport = Transport(url, key, session=session, limits=limits, ambient=ambient)
        self._node_names = node_names or (lambda system_id: system_id)
        self.hardware = Hardware(self._send_about, self._send_acting)
        self.images = Images(self._transport.send)

    def __repr__(self) -> str:
        return f"MaasClient({self._transport.url})"

    async def __aenter__(self) -> Self:
        await self._transport.open()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.close()

    async def close(self) -> None:
        """Close the connections."""
        await self._transport.close()

    # What MAAS is

    async def version(self) -> Version:
        """Return MAAS's version; needs no key, so it tells an unreachable MAAS from a wrong key."""
        return parse.version(await self._get("version/", "version"))

    async def whoami(self) -> User:
        """Return the user that the key belongs to."""
        return parse.user(await self._get("users/", "whoami", op="whoami"))

    async def rack_controllers(self) -> tuple[RackController, ...]:
        """Return the rack controllers and the state of their services."""
        raw = await self._get("rackcontrollers/", "rack_controllers")
        return parse.each(parse.rack_controller, raw, "rack controllers")

    async def subnets(self) -> tuple[Subnet, ...]:
        """Return the subnets that MAAS knows."""
        return parse.each(parse.subnet, await self._get("subnets/", "subnets"), "subnets")

    # Machines

    async def machines(
        self, *, ids: Sequence[str] | None = None, **filters: str | Sequence[str]
    ) -> tuple[Machine, ...]:
        """Return the machines that match: hostname, mac_address, zone, pool, tags, status, agent_name, …

        With `ids` they are asked for in batches; ids that MAAS does not know are left out.
        """
        wanted = form_fields(filters)
        if ids is None:
            return parse.each(parse.machine, await self._list(wanted), "machines")
        found: list[Machine] = []
        for start in range(0, len(ids), _BATCH):
            batch = tuple(("id", system_id) for system_id in ids[start : start + _BATCH])
            found += parse.each(parse.machine, await self._list((*batch, *wanted)), "machines")
        return tuple(found)

    async def machine(self, system_id: str) -> Machine:
        """Return one machine. Raises MaasNotFound."""
        call = Call("machine", "GET", f"machines/{system_id}/")
        return parse.machine(await self._send_about(system_id, call))

    async def find(self, *, mac: str | None = None, hostname: str | None = None) -> Machine | None:
        """Return the machine with this MAC or this hostname, or None. Raises MaasBadAnswer for several."""
        filters = {"mac_address": mac, "hostname": hostname}
        given = {name: value for name, value in filters.items() if value}
        if not given:
            raise ValueError("find needs a MAC or a hostname")
        found = await self.machines(**given)
        if len(found) > 1:
            raise MaasBadAnswer("find", f"{len(found)} machines match {given}")
        return found[0] if found else None

    async def accept(self, *system_ids: str) -> None:
        """Accept machines that enlisted themselves; MAAS commissions them."""
        form = form_fields({"machines": system_ids})
        await self._transport.send(Call("accept", "POST", "machines/", query=(("op", "accept"),), form=form))

    async def create(self, new: NewMachine, *, commission: bool = False) -> Machine:
        """Enlist a machine; MAAS would commission it at once unless told otherwise."""
        form = form_fields(
            {
                "hostname": new.hostname,
                "architecture": new.architecture,
                "mac_addresses": new.macs,
                "power_type": new.power_type,
                "power_parameters": json.dumps(dict(new.power)),
                "commission": _flag(commission),
                "description": new.description,
            }
        )
        call = Call("create", "POST", "machines/", form=form, machine=new.hostname)
        return parse.machine(await self._transport.send(call))

    async def update(self, system_id: str, **fields: str) -> Machine:
        """Change a machine's fields: hostname, pool, zone, description, power_parameters_power_address, …"""
        return parse.machine(await self._act(system_id, "update", method="PUT", **fields))

    async def delete(self, system_id: str) -> None:
        """Remove the machine from MAAS. Raises MaasForbidden for a deployed one."""
        await self._act(system_id, "delete", method="DELETE")

    # A machine's life

    async def commission(
        self,
        system_id: str,
        *,
        testing_scripts: Sequence[str] = ("none",),
        enable_ssh: bool = False,
        skip_bmc_config: bool = True,
    ) -> Machine:
        """Start commissioning. `skip_bmc_config` keeps MAAS from making its own BMC user."""
        return await self._operate(
            system_id,
            "commission",
            enable_ssh=str(int(enable_ssh)),
            skip_bmc_config=str(int(skip_bmc_config)),
            testing_scripts=",".join(testing_scripts),
        )

    async def allocate(self, system_id: str, *, agent_name: str = "", comment: str = "") -> Machine:
        """Take a Ready machine. Raises MaasConflict where it is not to be had."""
        form = form_fields({"system_id": system_id, "agent_name": agent_name, "comment": comment})
        call = Call(
            "allocate", "POST", "machines/", query=(("op", "allocate"),), form=form,
            machine=self._node_names(system_id),
        )  # fmt: skip
        return parse.machine(await self._transport.send(call))

    async def deploy(self, system_id: str, deployment: Deployment) -> Machine:
        """Start deploying an Allocated or Ready machine."""
        data = deployment.user_data
        return await self._operate(
            system_id,
            "deploy",
            osystem=deployment.osystem,
            distro_series=deployment.distro_series,
            hwe_kernel=deployment.hwe_kernel,
            user_data=base64.b64encode(data).decode() if data is not None else "",
            ephemeral_deploy="true" if deployment.ephemeral else "",
            comment=deployment.comment,
        )

    async def release(
        self,
        system_id: str,
        *,
        erase: bool = False,
        secure_erase: bool = False,
        quick_erase: bool = False,
        comment: str = "",
    ) -> Machine:
        """Give the machine back; with `erase` its disks are wiped first. Asynchronous."""
        return await self._operate(
            system_id,
            "release",
            erase=_flag(erase),
            secure_erase=_flag(secure_erase),
            quick_erase=_flag(quick_erase),
            comment=comment,
        )

    async def abort(self, system_id: str, *, comment: str = "") -> Machine:
        """Stop commissioning, deploying, testing or erasing. The answer still shows the old status."""
        return await self._operate(system_id, "abort", comment=comment)

    async def mark_broken(self, system_id: str, *, comment: str) -> Machine:
        """Mark the machine Broken."""
        return await self._operate(system_id, "mark_broken", comment=comment)

    async def mark_fixed(self, system_id: str, *, comment: str = "") -> Machine:
        """Make a Broken machine Ready."""
        return await self._operate(system_id, "mark_fixed", comment=comment)

    async def lock(self, system_id: str, *, comment: str = "") -> Machine:
        """Lock a deployed or deploying machine against every change."""
        return await self._operate(system_id, "lock", comment=comment)

    async def unlock(self, system_id: str, *, comment: str = "") -> Machine:
        """Lift the lock."""
        return await self._operate(system_id, "unlock", comment=comment)

    async def rescue_mode(self, system_id: str) -> Machine:
        """Boot into rescue mode. Asynchronous."""
        return await self._operate(system_id, "rescue_mode")

    async def exit_rescue_mode(self, system_id: str) -> Machine:
        """Leave rescue mode. Asynchronous."""
        return await self._operate(system_id, "exit_rescue_mode")

    async def test(self, system_id: str, *, testing_scripts: Sequence[str] = ()) -> Machine:
        """Run testing scripts; none named: MAAS's defaults."""
        return await self._operate(system_id, "test", testing_scripts=",".join(testing_scripts))

    async def override_failed_testing(self, system_id: str, *, comment: str) -> Machine:
        """Make a machine that failed testing usable again."""
        return await self._operate(system_id, "override_failed_testing", comment=comment)

    async def annotate(self, system_id: str, **annotations: str) -> Machine:
        """Set workload annotations on an allocated machine; an empty value removes one."""
        call = self._operation(system_id, "set_workload_annotations", tuple(annotations.items()))
        return parse.machine(await self._send_acting(system_id, call))

    # Power

    async def power_on(self, system_id: str, *, comment: str = "") -> Machine:
        """Power on an allocated machine; MAAS refuses for a Ready one (MaasConflict)."""
        return await self._operate(system_id, "power_on", comment=comment)

    async def power_off(self, system_id: str, *, stop_mode: StopMode = StopMode.HARD) -> Machine:
        """Power off."""
        return await self._operate(system_id, "power_off", stop_mode=stop_mode.value)

    async def query_power_state(self, system_id: str) -> str:
        """Ask the BMC through the rack controller: on, off, unknown or error. The last two are not off."""
        raw = await self._of_machine(system_id, "query_power_state")
        state = parse.obj(raw, "query_power_state").get("state")
        if not isinstance(state, str):
            raise MaasBadAnswer("query_power_state", "no state in it")
        return state

    async def power_parameters(self, system_id: str) -> PowerParameters:
        """Return how MAAS reaches the BMC, password included: never to be logged."""
        return parse.power_parameters(await self._of_machine(system_id, "power_parameters"))

    async def all_power_parameters(self) -> dict[str, PowerParameters]:
        """Return every machine's power parameters in one call, by system id."""
        raw = await self._get("machines/", "power_parameters", op="power_parameters")
        return parse.all_power_parameters(raw)

    # Pools, zones, tags

    async def pools(self) -> tuple[Named, ...]:
        """Return the resource pools."""
        return parse.each(parse.named, await self._get("resourcepools/", "pools"), "pools")

    async def zones(self) -> tuple[Named, ...]:
        """Return the zones."""
        return parse.each(parse.named, await self._get("zones/", "zones"), "zones")

    async def tags(self) -> tuple[Tag, ...]:
        """Return the tags."""
        return parse.each(parse.tag, await self._get("tags/", "tags"), "tags")

    async def ensure_pool(self, name: str, description: str = "") -> None:
        """Make the resource pool unless it is there."""
        if all(pool.name != name for pool in await self.pools()):
            await self._make("resourcepools/", "create pool", name=name, description=description)

    async def ensure_zone(self, name: str, description: str = "") -> None:
        """Make the zone unless it is there."""
        if all(zone.name != name for zone in await self.zones()):
            await self._make("zones/", "create zone", name=name, description=description)

    async def ensure_tag(self, name: str, comment: str = "", kernel_opts: str = "") -> None:
        """Make the tag unless it is there."""
        if all(tag.name != name for tag in await self.tags()):
            await self._make("tags/", "create tag", name=name, comment=comment, kernel_opts=kernel_opts)

    async def tag_nodes(self, tag: str, *, add: Iterable[str] = (), remove: Iterable[str] = ()) -> None:
        """Put the tag on the machines of `add` and take it from those of `remove` (system ids)."""
        form = form_fields({"add": tuple(add), "remove": tuple(remove)})
        if form:
            call = Call(f"tag {tag}", "POST", f"tags/{tag}/", query=(("op", "update_nodes"),), form=form)
            await self._transport.send(call)

    # What happened

    async def events(
        self, system_id: str, *, after: int | None = None, since: datetime | None = None, level: str = "INFO"
    ) -> tuple[Event, ...]:
        """Return the newest thousand events, newest first; `after` is an event id, `since` a time."""
        pairs = form_fields({"op": "query", "id": system_id, "level": level, "limit": str(_EVENTS)})
        if after is not None:
            pairs = (*pairs, ("after", str(after)))
        raw = parse.obj(await self._send_about(system_id, Call("events", "GET", "events/", pairs)), "events")
        found = parse.each(parse.event, raw.get("events"), "events")
        if since is not None:
            found = tuple(event for event in found if event.at >= since)
        return tuple(sorted(found, key=lambda event: event.id, reverse=True))

    async def results(
        self, system_id: str, kind: ResultKind, *, include_output: bool = False
    ) -> tuple[ScriptResult, ...]:
        """Return the results of all runs of this kind, the newest run first."""
        query = form_fields({"type": kind.value, "include_output": _flag(include_output)})
        raw = await self._send_about(system_id, Call("results", "GET", f"nodes/{system_id}/results/", query))
        runs = parse.each(parse.script_set, raw, "results")
        newest_first = sorted((run for run in runs if run), key=lambda run: run[0].set_id, reverse=True)
        return tuple(result for run in newest_first for result in run)

    # How it is sent

    async def _get(self, path: str, name: str, *, op: str | None = None) -> object:
        query: Fields = (("op", op),) if op else ()
        return await self._transport.send(Call(name, "GET", path, query=query))

    async def _list(self, query: Fields) -> object:
        return await self._transport.send(Call("machines", "GET", "machines/", query=query))

    async def _of_machine(self, system_id: str, op: str) -> object:
        return await self._send_about(system_id, Call(op, "GET", f"machines/{system_id}/", (("op", op),)))

    async def _send_about(self, system_id: str, call: Call) -> object:
        return await self._transport.send(for_machine(call, self._node_names(system_id)))

    async def _operate(self, system_id: str, op: str, **form: str) -> Machine:
        call = self._operation(system_id, op, form_fields(form))
        return parse.machine(await self._send_acting(system_id, call))

    def _operation(self, system_id: str, op: str, form: Fields) -> Call:
        return Call(op, "POST", f"machines/{system_id}/", query=(("op", op),), form=form)

    async def _act(self, system_id: str, name: str, *, method: str, **form: str) -> object:
        call = Call(name, method, f"machines/{system_id}/", form=form_fields(form))
        return await self._send_acting(system_id, call)

    async def _make(self, path: str, call_name: str, **form: str) -> None:
        try:
            await self._transport.send(Call(call_name, "POST", path, form=form_fields(form)))
        except MaasRejected as exc:
            # Another run made it between our look and our call.
            if exc.status != 400 or "already exists" not in exc.reason:
                raise

    async def _send_acting(self, system_id: str, call: Call) -> object:
        """Send; a 403 without a body is looked into, since MAAS says "locked" with an empty page."""
        try:
            return await self._send_about(system_id, call)
        except MaasForbidden as exc:
            if (await self.machine(system_id)).locked:
                raise MaasLocked(exc.status, "locked in MAAS", call=exc.call, machine=exc.machine) from exc
            raise


def _flag(value: bool) -> str:
    return "true" if value else "false"
