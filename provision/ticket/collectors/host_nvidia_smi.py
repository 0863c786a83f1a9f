"""All that the GPU driver says of every GPU."""

from __future__ import annotations

from dataclasses import replace

from health.errors import Unreadable
from health.readers.smi import read_smi_parts
from provision.ticket.collecting import Case, Collector, Facts, Lane, Result
from provision.ticket.host_command import Command, run_command

_COMMAND = Command("host/nvidia-smi-q.txt", ("nvidia-smi", "-q"), timeout_s=60)


async def _collect(case: Case) -> Result:
    result = await run_command(case, _COMMAND)
    text = "".join(text for file in result.files for text in file.content.texts())
    try:
        return replace(result, facts=Facts(smi=read_smi_parts(text)))
    except Unreadable:
        return result  # the file is there for who can read it


HOST_NVIDIA_SMI = Collector("host.nvidia-smi", Lane.HOST, _COMMAND.deadline_s, _collect)
