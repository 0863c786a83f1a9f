"""The lab's wire: one bridge on this machine, a cable a node, and no way out of it."""

from __future__ import annotations

import asyncio
import contextlib
import subprocess
from pathlib import Path

from lab.errors import LabError, NoService
from lab.spec import LabNet

# While the lab is up, its addresses never follow another route, even when the bridge is gone.
_BLACKHOLE_METRIC = 4294967000
_INOTIFY = {"max_user_instances": 16384, "max_user_watches": 1048576}


def raise_bridge(net: LabNet) -> None:
    """Make the bridge and the blackhole behind it; does nothing where they are already there.

    Raises NoService when something else on this machine owns the addresses.
    """
    lines = []
    if not _link(net.bridge).exists():
        _refuse_foreign_route(net)
        lines += [f"link add {net.bridge} type bridge forward_delay 0 stp_state 0"]
    lines += [
        f"addr replace {net.gateway}/16 dev {net.bridge}",
        f"link set {net.bridge} up",
        f"route replace blackhole {net.subnet} metric {_BLACKHOLE_METRIC}",
    ]
    _ip(lines)
    # Nodes cannot use this machine as a router, whatever its own settings are.
    Path(f"/proc/sys/net/ipv4/conf/{net.bridge}/forwarding").write_text("0")
    with contextlib.suppress(OSError):
        Path(f"/proc/sys/net/ipv6/conf/{net.bridge}/disable_ipv6").write_text("1")


def drop_bridge(net: LabNet) -> None:
    """Remove the bridge and its blackhole; does nothing where they are gone."""
    if _link(net.bridge).exists():
        ports = [port.name for port in (_link(net.bridge) / "brif").glob("*")]
        _ip([f"link del {port}" for port in ports] + [f"link del {net.bridge}"], force=True)
    _ip([f"route del blackhole {net.subnet} metric {_BLACKHOLE_METRIC}"], force=True)


def raise_inotify_limits() -> None:
    """Allow as many inotify instances as systemd nodes need; never lowers a limit."""
    for name, wanted in _INOTIFY.items():
        path = Path("/proc/sys/fs/inotify") / name
        if int(path.read_text()) < wanted:
            path.write_text(str(wanted))


async def plug(net: LabNet, link: str, pid: int) -> None:
    """Lay a cable from the bridge to eth0 in the network namespace of `pid`."""
    await unplug(link)
    lines = [
        f"link add {link} type veth peer name eth0 netns {pid}",
        f"link set {link} master {net.bridge} up",
    ]
    process = await asyncio.create_subprocess_exec(
        "ip",
        "-batch",
        "-",
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.DEVNULL,
        stderr=asyncio.subprocess.PIPE,
    )
    _, complaint = await process.communicate("\n".join(lines).encode())
    if process.returncode != 0:
        text = complaint.decode(errors="replace").strip()
        raise LabError(link, f"the cable could not be laid: {text}", follow="see the lab's log")


async def unplug(link: str) -> None:
    """Remove a cable at once; the kernel would do so too, but only some time after the node died."""
    if not _link(link).exists():
        return
    process = await asyncio.create_subprocess_exec(
        "ip", "link", "del", link, stdout=asyncio.subprocess.DEVNULL, stderr=asyncio.subprocess.DEVNULL
    )
    await process.wait()


def _link(name: str) -> Path:
    return Path("/sys/class/net") / name


def _refuse_foreign_route(net: LabNet) -> None:
    answer = subprocess.run(
        ["ip", "-4", "route", "show", "root", net.subnet], capture_output=True, text=True, check=False
    )
    foreign = [line for line in answer.stdout.splitlines() if not line.startswith("blackhole")]
    if foreign:
        raise NoService(
            f"network {net.subnet}",
            f"this machine already uses it: {foreign[0].strip()}",
            follow="choose another net, for example MUSTER_LAB_NET=127.78",
        )


def _ip(lines: list[str], *, force: bool = False) -> None:
    command = ["ip", *(["-force"] if force else []), "-batch", "-"]
    answer = subprocess.run(command, input="\n".join(lines), capture_output=True, text=True, check=False)
    if answer.returncode != 0 and not force:
        raise LabError(
            "network",
            f"ip refused: {answer.stderr.strip()}",
            follow="see `ip link`, then lab.down and lab.up",
        )
