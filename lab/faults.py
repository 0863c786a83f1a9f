"""All faults of the lab by name, whichever part carries them."""

from __future__ import annotations

import difflib
from dataclasses import dataclass
from enum import StrEnum

from lab.bmc.faults import Fault as BmcFault
from lab.errors import BadRequest
from lab.maas.faults import OF_MACHINE
from lab.maas.faults import Fault as MaasFault
from lab.nodes.faults import NodeFault

_BMC_NAMES_KEPT = ("power-", "fru-", "boot-", "sol-")


class Carrier(StrEnum):
    """Which part of the lab a fault lives in."""

    NODE = "node"
    BMC = "bmc"
    MAAS = "maas"  # the whole service
    MACHINE = "machine"  # one machine in MAAS


@dataclass(frozen=True, slots=True)
class FaultName:
    """One fault: what the operator calls it, who carries it, and what that part calls it."""

    name: str
    carrier: Carrier
    inner: str


def _catalogue() -> dict[str, FaultName]:
    found = [FaultName(str(fault), Carrier.NODE, str(fault)) for fault in NodeFault]
    for bmc in BmcFault:
        name = str(bmc)
        found.append(
            FaultName(name if name.startswith(_BMC_NAMES_KEPT) else f"bmc-{name}", Carrier.BMC, name)
        )
    for maas in MaasFault:
        name = str(maas)
        carrier = Carrier.MACHINE if maas in OF_MACHINE else Carrier.MAAS
        found.append(FaultName(name if name.startswith("maas-") else f"maas-{name}", carrier, name))
    return {fault.name: fault for fault in found}


CATALOGUE = _catalogue()


def find_fault(name: str) -> FaultName:
    """Return the fault called `name`. Raises BadRequest that names the nearest."""
    if name in CATALOGUE:
        return CATALOGUE[name]
    near = difflib.get_close_matches(name, CATALOGUE, n=1, cutoff=0.4)
    hint = f"did you mean {near[0]}? " if near else ""
    raise BadRequest(
        "lab.fault",
        f"no fault is called {name!r}",
        follow=f"{hint}all of them: {' '.join(sorted(CATALOGUE))}",
    )
