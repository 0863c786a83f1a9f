"""A BMC that does everything by the standard."""

from __future__ import annotations

from bmc.redfish.vendor import Vendor

GENERIC = Vendor(name="generic", words=("",))
