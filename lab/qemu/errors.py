"""What can go wrong with a QEMU node and the files it boots from."""

from __future__ import annotations

from lab.errors import Exit, LabError


class AssetsNotMade(LabError):
    """The kernel, initrd or disk image could not be made."""

    code = Exit.NO_SERVICE


class MachineFailed(LabError, RuntimeError):
    """QEMU did not start, or stopped answering; to a BMC, a power action that failed."""


class QmpRefused(LabError):
    """QEMU answered a monitor command with an error."""


class BootServiceFailed(LabError):
    """MAAS gave the boot server no usable answer for a node."""

    code = Exit.NO_SERVICE
