"""The environment that a node boots from the network: commissioning, installation, rescue."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from pathlib import Path

from lab.nodes.boot_service import BootService, Intent, Order, ScriptResult
from lab.nodes.disk import Disk
from lab.nodes.guest import Ending, Guest, System
from lab.nodes.house import House
from lab.nodes.kernel import KernelLog, kernel_messages
from lab.nodes.serial import SerialPort
from lab.nodes.share import Share
from lab.spec import NodeSpec

_PHASES = {
    Intent.COMMISSION: "commissioning",
    Intent.ENLIST: "enlistment",
    Intent.INSTALL: "installation",
    Intent.TEST: "testing",
}


class Live:
    """One boot into memory, for one order of MAAS."""

    def __init__(
        self,
        spec: NodeSpec,
        house: House,
        guest: Guest,
        share: Share,
        service: BootService,
        kernel: KernelLog,
    ) -> None:
        self._spec = spec
        self._house = house
        self._guest = guest
        self._kernel = kernel
        self._share = share
        self._service = service
        self._out = house.folder / spec.name / "out"

    async def carry_out(self, order: Order, disk: Disk, port: SerialPort) -> Ending | None:
        """Return how it ended; None when the node stays as it is, for a human to see."""
        if order.intent is Intent.RESCUE:
            await self._report(order, "rescue", "started")
            return await self._boot(order, "rescue", None, port)
        phase = _PHASES[order.intent]
        await self._report(order, phase, "started")
        if order.intent is Intent.INSTALL:
            wanted = await self._install(order, disk, port)
        else:
            wanted = await self._examine(order, phase, port)
        if wanted == "reboot":
            port.emit("reboot: Restarting system\n")
            return Ending.REBOOT
        if wanted == "stay":
            return None
        port.emit("reboot: Power down\n")
        return Ending.POWEROFF

    async def _examine(self, order: Order, phase: str, port: SerialPort) -> str:
        """Run the commissioning scripts. MAAS's tests of disks have no disk to test and are left out."""
        if order.intent is Intent.TEST:
            return await self._report(order, phase, "finished")
        if await self._boot(order, "commission", None, port) is None:
            return "stay"
        results = self._script_results()
        event = "finished" if results else "failed"
        wanted = await self._report(order, phase, event, results=results)
        return await self._report(order, "testing", "finished") if wanted == "testing" else wanted

    async def _install(self, order: Order, disk: Disk, port: SerialPort) -> str:
        await disk.format()
        if await self._boot(order, "install", disk, port) is None:
            return "stay"
        text = _read(self._out / "install.log")
        status = int(_read(self._out / "install.status") or b"1")
        result = ScriptResult("/tmp/install.log", status, text)
        if status != 0:
            message = text.decode(errors="replace").strip().splitlines()[-1] if text else "no log"
            return await self._report(order, "installation", "failed", message=message, results=[result])
        self._share.keep_token(order.token)
        disk.mark_installed(order.hostname or self._spec.name)
        return await self._report(order, "installation", "finished", results=[result])

    async def _report(
        self, order: Order, phase: str, event: str, *, message: str = "", results: Sequence[ScriptResult] = ()
    ) -> str:
        return await self._service.report(
            order.token, phase, event, message=message, results=results, address=self._spec.address
        )

    async def _boot(self, order: Order, program: str, disk: Disk | None, port: SerialPort) -> Ending | None:
        """Run one program of the environment; None when it died in the middle, as in a panic."""
        shutil.rmtree(self._out, ignore_errors=True)
        self._out.mkdir()
        cmdline = f"BOOT_IMAGE=http/vmlinuz root=live:lab console=ttyS0,115200n8 lab.order={program}"
        self._share.prepare(cmdline, order)
        self._kernel.say(*kernel_messages(self._spec, cmdline))
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
        return None if ending is Ending.DIED else Ending.POWEROFF

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
