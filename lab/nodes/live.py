"""The environment that a node boots from the network: commissioning, installation, rescue."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import TYPE_CHECKING

from lab.nodes.boot_service import BootService, Intent, Order, ScriptResult
from lab.nodes.disk import Disk
from lab.nodes.guest import Ending, Guest, System
from lab.nodes.kernel import KernelLog, kernel_messages
from lab.nodes.serial import SerialPort
from lab.nodes.share import Share
from lab.spec import NodeSpec

if TYPE_CHECKING:
    from lab.nodes.chassis import House

_PHASES = {Intent.COMMISSION: "commissioning", Intent.ENLIST: "enlistment", Intent.INSTALL: "installation"}


class Live:
    """One boot into memory, for one order of MAAS."""

    def __init__(
        self, spec: NodeSpec, house: House, guest: Guest, share: Share, service: BootService
    ) -> None:
        self._spec = spec
        self._house = house
        self._guest = guest
        self._share = share
        self._service = service
        self._out = house.folder / spec.name / "out"

    async def carry_out(self, order: Order, disk: Disk, port: SerialPort) -> Ending | None:
        """Return how it ended; None when it failed and the node stays as it is, for a human to see."""
        if order.intent is Intent.RESCUE:
            await self._service.report(order.token, "rescue", "started", address=self._spec.address)
            await self._boot(order, "rescue", None, port)
            return Ending.POWEROFF
        phase = _PHASES[order.intent]
        await self._service.report(order.token, phase, "started", address=self._spec.address)
        if order.intent is Intent.INSTALL:
            return await self._install(order, disk, port)
        await self._boot(order, "commission", None, port)
        results = self._script_results()
        event = "finished" if results else "failed"
        await self._service.report(order.token, phase, event, results=results, address=self._spec.address)
        port.emit("reboot: Power down\n")
        return Ending.POWEROFF

    async def _install(self, order: Order, disk: Disk, port: SerialPort) -> Ending | None:
        await disk.format()
        await self._boot(order, "install", disk, port)
        log_text = _read(self._out / "install.log")
        status = int(_read(self._out / "install.status") or b"1")
        result = ScriptResult("/tmp/install.log", status, log_text)
        if status != 0:
            message = log_text.decode(errors="replace").strip().splitlines()[-1] if log_text else "no log"
            await self._service.report(
                order.token, "installation", "failed", message=message, results=[result]
            )
            return None
        self._share.keep_token(order.token)
        disk.mark_installed(order.hostname or self._spec.name)
        await self._service.report(order.token, "installation", "finished", results=[result])
        port.emit("reboot: Restarting system\n")
        return Ending.REBOOT

    async def _boot(self, order: Order, program: str, disk: Disk | None, port: SerialPort) -> Ending:
        shutil.rmtree(self._out, ignore_errors=True)
        self._out.mkdir()
        cmdline = f"BOOT_IMAGE=http/vmlinuz root=live:lab console=ttyS0,115200n8 lab.order={program}"
        self._share.prepare(cmdline, order)
        kernel = KernelLog()
        for text in kernel_messages(self._spec, cmdline, 8):
            port.emit(kernel.add(text))
        self._share.keep_kernel_log(kernel)
        system = System(
            name=order.hostname or self._spec.name,
            lower=self._house.layers,
            share=self._share.folder,
            sysctl=self._house.sysctl,
            init=("/bin/sh", "/usr/lib/lab/live.sh", program),
            disk=disk.image if disk else None,
            live=True,
            out=self._out,
        )
        await self._guest.start(system, port.terminal)
        ending = await self._guest.wait()
        self._share.prepare(cmdline)
        return ending

    def _script_results(self) -> list[ScriptResult]:
        return [
            ScriptResult(
                name=status.stem,
                exit_status=int(status.read_text()),
                stdout=_read(status.with_suffix(".stdout")),
                stderr=_read(status.with_suffix(".stderr")),
            )
            for status in sorted(self._out.glob("*.status"))
        ]


def _read(path: Path) -> bytes:
    return path.read_bytes() if path.exists() else b""
