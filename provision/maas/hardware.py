"""A machine's interfaces and disks as MAAS sees them."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from provision.maas import parse
from provision.maas.model import BlockDevice, Interface, LinkMode
from provision.maas.transport import Call, form_fields

Read = Callable[[str, Call], Awaitable[object]]


class Hardware:
    """The calls about parts of a machine. `read` and `act` send a call that is about a system id."""

    def __init__(self, read: Read, act: Read) -> None:
        self._read = read
        self._act = act

    async def interfaces(self, system_id: str) -> tuple[Interface, ...]:
        """Return the interfaces with their links."""
        call = Call("interfaces", "GET", f"nodes/{system_id}/interfaces/")
        return parse.each(parse.interface, await self._read(system_id, call), "interfaces")

    async def link_subnet(
        self, system_id: str, interface: int, mode: LinkMode, *, subnet: int, address: str = ""
    ) -> Interface:
        """Link an interface to a subnet; `address` only with STATIC."""
        form = form_fields({"mode": mode.value, "subnet": str(subnet), "ip_address": address})
        path = f"nodes/{system_id}/interfaces/{interface}/"
        call = Call("link_subnet", "POST", path, query=(("op", "link_subnet"),), form=form)
        return parse.interface(await self._act(system_id, call))

    async def unlink_subnet(self, system_id: str, interface: int, link: int) -> Interface:
        """Take a link off an interface; `link` is the link's id."""
        path = f"nodes/{system_id}/interfaces/{interface}/"
        form = form_fields({"id": str(link)})
        call = Call("unlink_subnet", "POST", path, query=(("op", "unlink_subnet"),), form=form)
        return parse.interface(await self._act(system_id, call))

    async def block_devices(self, system_id: str) -> tuple[BlockDevice, ...]:
        """Return the disks."""
        call = Call("block_devices", "GET", f"nodes/{system_id}/blockdevices/")
        return parse.each(parse.block_device, await self._read(system_id, call), "block devices")

    async def set_storage_layout(self, system_id: str, layout: str) -> None:
        """Set the layout (flat, lvm, blank, custom, …) of a Ready or Allocated machine."""
        query = (("op", "set_storage_layout"),)
        form = form_fields({"storage_layout": layout})
        await self._act(
            system_id, Call("set_storage_layout", "POST", f"machines/{system_id}/", query=query, form=form)
        )
