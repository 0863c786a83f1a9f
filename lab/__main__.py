"""`python -m lab`: start the virtual rack, look at it, break it, stop it."""

from __future__ import annotations

import argparse
import json
import os
import sys
from pathlib import Path
from typing import Any, NoReturn

from lab.control import ask
from lab.errors import BadRequest, Exit, LabError, Refused
from lab.lifecycle import take_down, take_up
from lab.plan import Plan
from lab.spec import LabNet, LabPaths, RackKind


def main(arguments: list[str] | None = None, *, user: int | None = None) -> int:
    """Run one command as `user`, by default who runs this process, and return its exit code."""
    try:
        options = _parser().parse_args(arguments)
        if options.needs_root and (os.geteuid() if user is None else user) != 0:
            raise Refused(
                "lab",
                "nodes are namespaces with network and mounts of their own, which only root can make",
                follow="run the same command as root, for example with sudo",
            )
        return int(options.run(options, LabNet.from_environment(), LabPaths.from_environment()))
    except LabError as exc:
        sys.stderr.write(f"error: {exc.where}: {exc}\n  why: {exc.why}\n  next: {exc.follow}\n")
        return int(exc.code)


def _serve(options: argparse.Namespace, net: LabNet, paths: LabPaths) -> int:
    from lab.daemon import configure_log, serve  # other commands start without it

    configure_log()
    serve(net, paths, _plan(options), options.ready_fd)
    return Exit.DONE


def _up(options: argparse.Namespace, net: LabNet, paths: LabPaths) -> int:
    started = take_up(net, paths, _plan(options), say=_note)
    if started or not options.if_down:
        _note("lab up" if started else "lab already up")
    return Exit.DONE


def _down(options: argparse.Namespace, net: LabNet, paths: LabPaths) -> int:
    take_down(net, paths, wipe=options.wipe)
    _note("lab down" + (", disks and secrets removed" if options.wipe else ""))
    return Exit.DONE


def _status(options: argparse.Namespace, _: LabNet, paths: LabPaths) -> int:
    status = ask(paths.socket, {"op": "status"})
    if options.output == "json":
        sys.stdout.write(json.dumps(status, indent=2) + "\n")
        return Exit.DONE
    rows = [("NODE", "POWER", "SYSTEM", "BMC", "SSH", "FAULTS")]
    rows += [
        (node["name"], node["power"], node["installed"] or "-", node["bmc"], node["address"], _faults(node))
        for node in status["nodes"]
    ]
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    for row in rows:
        sys.stdout.write(
            "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
        )
        sys.stdout.write("\n")
    sys.stdout.write(f"MAAS {status['maas']}{_service_faults(status)}\n")
    return Exit.DONE


def _fault(options: argparse.Namespace, _: LabNet, paths: LabPaths) -> int:
    if not options.fault and not options.clear:
        raise BadRequest("lab.fault", "names no fault", follow="add --fault NAME, or --clear")
    request = {"op": "fault", "fault": options.fault, "nodes": options.nodes}
    answer = ask(paths.socket, {**request, "value": options.value, "clear": options.clear})
    what = options.fault or "all faults"
    _note(f"{what} {'lifted from' if options.clear else 'set on'} {answer['struck']}")
    return Exit.DONE


def _site(options: argparse.Namespace, net: LabNet, _: LabPaths) -> int:
    from lab.site import write_site  # other commands start without it

    folder = write_site(Path(options.out), net, _plan(options))
    _note(f"site of {_plan(options).nodes} nodes written to {folder}")
    return Exit.DONE


def _parser() -> argparse.ArgumentParser:
    parser = _Parser(prog="python -m lab", description=__doc__, allow_abbrev=False)
    commands = parser.add_subparsers(required=True, metavar="COMMAND", parser_class=_Parser)

    def command(name: str, run: Any, about: str) -> argparse.ArgumentParser:
        made = commands.add_parser(name, help=about, description=about, allow_abbrev=False)
        made.set_defaults(run=run, needs_root=run in (_serve, _up, _down))
        return made

    for name, run, about in (
        ("up", _up, "start the lab in the background and wait until it answers"),
        ("serve", _serve, "run the lab in the foreground"),
        ("site", _site, "write a site folder for the lab's nodes"),
    ):
        sized = command(name, run, about)
        sized.add_argument("--racks", default="lab,lab-real", help="comma separated: lab, lab-real")
        sized.add_argument("--nodes", type=int, default=8, help="nodes of rack lab")
        sized.add_argument("--real", type=int, default=1, help="nodes of rack lab-real, where it is named")
        sized.add_argument(
            "--light", type=int, default=0, help="imaginary nodes: a BMC and nothing behind it"
        )
        if name == "up":
            sized.add_argument("--if-down", action="store_true", help="say nothing when it is up already")
        if name == "serve":
            sized.add_argument("--ready-fd", type=int, help=argparse.SUPPRESS)
        if name == "site":
            sized.add_argument("--out", required=True, metavar="DIR")
    command("down", _down, "stop the lab; disks stay").add_argument(
        "--wipe", action="store_true", help="also remove disks, MAAS's memory and the secrets"
    )
    command("status", _status, "show nodes, power and faults").add_argument(
        "--output", choices=("table", "json"), default="table"
    )
    fault = command("fault", _fault, "break something, or mend it again")
    fault.add_argument("--nodes", metavar="SET", help="lab-n03, 'lab-n[01-04]', @lab or @*")
    fault.add_argument("--fault", metavar="NAME")
    fault.add_argument("--value", type=float, help="how much, where the fault has a size")
    fault.add_argument("--clear", action="store_true", help="lift the fault, or all of them")
    return parser


class _Parser(argparse.ArgumentParser):
    """A parser without short options whose complaints have the lab's form."""

    def __init__(self, **settings: Any) -> None:
        super().__init__(**settings, add_help=False)
        self.add_argument("--help", action="help", help="show this and exit")

    def error(self, message: str) -> NoReturn:
        raise BadRequest(self.prog, message, follow=f"{self.prog} --help")


def _plan(options: argparse.Namespace) -> Plan:
    racks = [rack for rack in options.racks.split(",") if rack]
    known = [str(rack) for rack in (RackKind.NAMESPACE, RackKind.REAL)]
    for rack in racks:
        if rack not in known:
            raise BadRequest(
                "--racks", f"no rack is called {rack!r}", follow=f"choose from {', '.join(known)}"
            )
    if min(options.nodes, options.real, options.light) < 0:
        raise BadRequest("lab.up", "a number of nodes cannot be negative", follow="give 0 or more")
    return Plan(
        nodes=options.nodes if RackKind.NAMESPACE in racks else 0,
        real=options.real if RackKind.REAL in racks else 0,
        light=options.light,
    )


def _faults(node: dict[str, Any]) -> str:
    return " ".join(sorted(node["faults"])) or "-"


def _service_faults(status: dict[str, Any]) -> str:
    names = " ".join(sorted(status["faults"]))
    return f"  faults: {names}" if names else ""


def _note(text: str) -> None:
    sys.stderr.write(f"{text}\n")


if __name__ == "__main__":
    sys.exit(main())
