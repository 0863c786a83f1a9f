"""OpenBMC (bmcweb): event log under the system, dumps under the manager."""

from __future__ import annotations

from bmc.redfish.vendor import Vendor
from bmc.vendors.nvidia import NVIDIA

OPENBMC = Vendor(
    name="openbmc",
    words=("openbmc", "bmcweb"),
    logs=("EventLog", "SEL"),
    support_dump=NVIDIA.support_dump,  # NVIDIA builds on bmcweb and left this as it was
)
