"""The kinds of saved outputs, and who judges each."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from health.outcome import Finding
from health.recognise import control, gpu, ib, ipmi, kernel, load, redfish, system, ufm

KINDS: Mapping[str, Callable[[str], list[Finding]]] = {
    "dmesg": kernel.judge,
    "nvidia_smi": gpu.judge,
    "system": system.judge,
    "ib": ib.judge,
    "dcgm_nccl": load.judge,
    "ufm": ufm.judge,
    "ipmi": ipmi.judge,
    "redfish": redfish.judge,
    "maas_ansible": control.judge,
}
