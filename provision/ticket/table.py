"""Every collector, in the order in which they are reported."""

from __future__ import annotations

from provision.ticket.collecting import Collector
from provision.ticket.collectors.bmc_dump import BMC_DUMP
from provision.ticket.collectors.bmc_firmware import BMC_FIRMWARE
from provision.ticket.collectors.bmc_fru import BMC_FRU
from provision.ticket.collectors.bmc_identity import BMC_IDENTITY
from provision.ticket.collectors.bmc_lan import BMC_LAN
from provision.ticket.collectors.bmc_power_events import BMC_POWER_EVENTS
from provision.ticket.collectors.bmc_redfish import BMC_REDFISH
from provision.ticket.collectors.bmc_saved import BMC_SAVED
from provision.ticket.collectors.bmc_screen import BMC_SCREEN
from provision.ticket.collectors.bmc_sel import BMC_SEL
from provision.ticket.collectors.bmc_sensors import BMC_SENSORS
from provision.ticket.collectors.console import CONSOLE
from provision.ticket.collectors.health import HEALTH
from provision.ticket.collectors.history import HISTORY
from provision.ticket.collectors.host_bug_report import HOST_BUG_REPORT
from provision.ticket.collectors.host_dmesg import HOST_DMESG
from provision.ticket.collectors.host_dmidecode import HOST_DMIDECODE
from provision.ticket.collectors.host_journal import HOST_JOURNAL
from provision.ticket.collectors.host_lspci import HOST_LSPCI
from provision.ticket.collectors.host_nvidia_smi import HOST_NVIDIA_SMI
from provision.ticket.collectors.host_uname import HOST_UNAME

COLLECTORS: tuple[Collector, ...] = (
    BMC_IDENTITY,
    BMC_SEL,
    BMC_SENSORS,
    BMC_FRU,
    BMC_LAN,
    BMC_FIRMWARE,
    BMC_REDFISH,
    BMC_SCREEN,
    BMC_DUMP,
    BMC_POWER_EVENTS,
    BMC_SAVED,
    CONSOLE,
    # The kernel's ring first: what the others stir up must not push it out.
    HOST_UNAME,
    HOST_DMESG,
    HOST_JOURNAL,
    HOST_NVIDIA_SMI,
    HOST_LSPCI,
    HOST_DMIDECODE,
    HOST_BUG_REPORT,
    HEALTH,
    HISTORY,
)
