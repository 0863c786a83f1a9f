"""What fields of nvidia-smi say about a GPU, one function an aspect.

Each gives findings for what is wrong. With `wanted` the profile needs the aspect, and a field that
is not there makes the finding unknown; without, a part that has no such thing is left in peace.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from health.outcome import Action, Finding, Status
from health.readers.smi import Gpu, SmiReport
from health.readers.smi_messages import GpuLinks, SmiMessage, TableRow

_SRAM = ("sram_uncorrectable", "sram_uncorrectable_parity", "sram_uncorrectable_sec_ded")
_UNCORRECTED = (*_SRAM, "dram_uncorrectable", "double_bit/total")
_ON_OFF = ("Enabled", "Disabled")
# So many at once are no longer an odd one now and then.
_MANY_LINK_ERRORS = 100
SRAM_EVER_MAX = 4
ROWS_WATCH = 10
# Fields whose silence says nothing about the part: the reading is repeated, the node is not blamed.
_HARMLESS = ("addressing_mode", "power_readings", "utilization", "clocks", "fan_speed", "voltage")


def unreadable(gpu: Gpu, what: str) -> Finding:
    """Make the finding for an aspect that the output does not hold."""
    return Finding("gpu", gpu.name, f"{what} cannot be read", Action.RERUN, Status.UNKNOWN)


def ecc(gpu: Gpu, *, wanted: bool, sram_max: float = SRAM_EVER_MAX) -> Iterator[Finding]:
    """Judge ECC mode and counters: uncorrected since the driver loaded, and SRAM over the part's life."""
    if wanted:
        yield from _ecc_is_on(gpu)
    since_load = sum(gpu.number(f"ecc_errors/volatile/{path}") or 0 for path in _UNCORRECTED)
    if since_load:
        message = f"{since_load:.0f} uncorrected memory errors since the driver loaded"
        yield Finding("gpu", gpu.name, message, Action.GPU_RESET)
    ever = sum(gpu.number(f"ecc_errors/aggregate/{path}") or 0 for path in _SRAM)
    if gpu.value("ecc_errors/aggregate/sram_threshold_exceeded") == "Yes" or ever > sram_max:
        message = f"{ever:.0f} uncorrected SRAM errors in its life: past the threshold for replacement"
        yield Finding("gpu", gpu.name, message, Action.VENDOR_TICKET)
    if dram := gpu.number("ecc_errors/aggregate/dram_uncorrectable", "ecc_errors/aggregate/double_bit/total"):
        message = f"{dram:.0f} uncorrected memory errors in its life"
        yield Finding("gpu", gpu.name, message, Action.INVESTIGATE, Status.WARN)
    for field, what in (("channel_repair_pending", "a memory channel"), ("tpc_repair_pending", "a core")):
        if gpu.value(f"ecc_errors/{field}") == "Yes":
            yield Finding("gpu", gpu.name, f"the repair of {what} waits for a reset", Action.GPU_RESET)
    if gpu.value("ecc_errors/unrepairable_memory") == "Yes":
        yield Finding("gpu", gpu.name, "memory cannot be repaired any more", Action.VENDOR_TICKET)


def _ecc_is_on(gpu: Gpu) -> Iterator[Finding]:
    """Judge that ECC is on, stays on, and counts."""
    mode, pending = gpu.value("ecc_mode/current"), gpu.value("ecc_mode/pending")
    whole = all(_has_all_counters(gpu, f"ecc_errors/{span}") for span in ("volatile", "aggregate"))
    if mode not in _ON_OFF or pending not in _ON_OFF or not whole:
        yield unreadable(gpu, "ECC mode or counters")
    if mode == "Disabled":
        yield Finding("gpu", gpu.name, "ECC is off", Action.REBOOT)
    elif pending == "Disabled":
        yield Finding("gpu", gpu.name, "ECC will be off after a reset", Action.REBOOT)


def _has_all_counters(gpu: Gpu, section: str) -> bool:
    """Say whether the counters are there whole, in the form that the driver prints."""
    if gpu.has(f"{section}/double_bit"):
        return gpu.number(f"{section}/double_bit/total") is not None
    split = any(gpu.has(f"{section}/{name}") for name in _SRAM[1:])
    names = (*(_SRAM[1:] if split else _SRAM[:1]), "dram_uncorrectable")
    # The threshold came with the split counters, over the part's life only.
    flag = gpu.fields.get(f"{section}/sram_threshold_exceeded", "" if split else "N/A")
    flagged = section.endswith("volatile") or flag in ("Yes", "No", "N/A")
    return flagged and all(gpu.number(f"{section}/{name}") is not None for name in names)


def remapped_rows(gpu: Gpu) -> float | None:
    """Return how many rows have been replaced after uncorrected errors, or None where it does not say."""
    return gpu.number("remapped_rows/uncorrectable_error")


def remap(gpu: Gpu, *, wanted: bool, watch: float = ROWS_WATCH) -> Iterator[Finding]:
    """Judge remapped rows: none pending, none failed, not too many."""
    pending = gpu.value("remapped_rows/pending")
    failed = gpu.value("remapped_rows/remapping_failure_occurred")
    rows = remapped_rows(gpu)
    if failed == "Yes":
        yield Finding("gpu", gpu.name, "a row could not be remapped: no spare is left", Action.VENDOR_TICKET)
    if pending == "Yes":
        often = f" ({rows:.0f} rows in all)" if rows else ""
        message = f"a row waits for remapping until the GPU is reset{often}"
        yield Finding("gpu", gpu.name, message, Action.GPU_RESET)
    if wanted and (pending not in ("Yes", "No") or failed not in ("Yes", "No") or rows is None):
        yield unreadable(gpu, "remapped rows")
    if rows is not None and rows > watch:
        message = f"{rows:.0f} rows remapped after uncorrected errors"
        yield Finding("gpu", gpu.name, message, Action.INVESTIGATE, Status.WARN)


def retired_pages(gpu: Gpu, *, wanted: bool) -> Iterator[Finding]:
    """Judge retired pages, which older parts have instead of remapped rows."""
    pending = gpu.value("retired_pages/pending_page_blacklist")
    double = gpu.number("retired_pages/double_bit_ecc")
    single = gpu.number("retired_pages/single_bit_ecc")
    if pending == "Yes":
        yield Finding("gpu", gpu.name, "a page waits for retirement until the GPU is reset", Action.GPU_RESET)
    if wanted and (pending is None or double is None or single is None):
        yield unreadable(gpu, "retired pages")
    total = (double or 0) + (single or 0)
    if total >= 60:
        message = f"{total:.0f} pages retired: the table is full"
        yield Finding("gpu", gpu.name, message, Action.VENDOR_TICKET)
    elif double:
        message = f"{double:.0f} pages retired after uncorrected errors"
        yield Finding("gpu", gpu.name, message, Action.INVESTIGATE, Status.WARN)


_SLOWDOWNS = {
    "hw_power_brake_slowdown": "hardware power brake",
    "hw_thermal_slowdown": "hardware thermal slowdown",
    "sw_thermal_slowdown": "software thermal slowdown",
    "hw_slowdown": "hardware slowdown",
}


def throttle(gpu: Gpu, *, wanted: bool) -> Iterator[Finding]:
    """Judge the reasons for lower clocks: heat and power brake, not idling and not the power cap."""
    states = {name: gpu.value(f"clocks_event_reasons/{name}") for name in _SLOWDOWNS}
    if wanted and not all(state in ("Active", "Not Active") for state in states.values()):
        yield unreadable(gpu, "the reasons for lower clocks")
    active = [words for name, words in _SLOWDOWNS.items() if states[name] == "Active"]
    if active:
        yield Finding("gpu", gpu.name, f"slowed down: {', '.join(active)}", Action.INVESTIGATE)


def recovery(gpu: Gpu, *, wanted: bool) -> Iterator[Finding]:
    """Judge what the driver itself wants done with the GPU."""
    action = gpu.fields.get("gpu_recovery_action")
    reset = gpu.value("gpu_reset_status/reset_required")
    if action is not None and "gpu_recovery_action" in gpu.broken:
        yield unreadable(gpu, "the recovery action")
    elif action is not None and action not in ("None", "N/A"):
        asked = Action.REBOOT if "reboot" in action.lower() else Action.GPU_RESET
        yield Finding("gpu", gpu.name, f"the driver asks for: {action}", asked)
    if reset == "Yes":
        yield Finding("gpu", gpu.name, "the driver asks for a reset", Action.GPU_RESET)
    if gpu.value("gpu_reset_status/drain_and_reset_recommended") == "Yes":
        yield Finding("gpu", gpu.name, "the driver recommends drain and reset", Action.GPU_RESET)
    drain = gpu.fields.get("gpu_reset_status/drain_and_reset_recommended")
    known = reset in ("Yes", "No") and drain in ("Yes", "No", "N/A")
    if wanted and not known and action is None:
        yield unreadable(gpu, "the recovery action")


def fabric(gpu: Gpu, *, wanted: bool) -> Iterator[Finding]:
    """Judge the NVSwitch fabric as the GPU sees it: registered, and with success."""
    state = gpu.value("fabric/state")
    status = gpu.value("fabric/status")
    if state is None:
        if wanted:
            yield unreadable(gpu, "the fabric's state")
    elif state != "Completed":
        message = f"the NVSwitch fabric is {state}: the fabric manager has not finished"
        yield Finding("nvlink", gpu.name, message, Action.RESTART_SERVICE)
    elif status != "Success":
        message = f"the NVSwitch fabric reports {status or 'no status'}"
        yield Finding("nvlink", gpu.name, message, Action.RESTART_SERVICE)
    for field in ("route_unhealthy", "route_recovery_in_progress", "access_timeout_recovery"):
        if gpu.value(f"fabric/health/{field}") in ("Yes", "True"):
            message = f"the fabric reports {field.replace('_', ' ')}"
            yield Finding("nvlink", gpu.name, message, Action.GPU_RESET)
    if gpu.value("fabric/health/bandwidth") == "Degraded":
        yield Finding("nvlink", gpu.name, "the fabric's bandwidth is degraded", Action.GPU_RESET)


def temperature_left(gpu: Gpu) -> float | None:
    """Return how many degrees there are to the slowdown temperature, or None where it does not say."""
    left = gpu.number("temperature/gpu_t_limit_temp")
    now = gpu.number("temperature/gpu_current_temp")
    slow = gpu.number("temperature/gpu_slowdown_temp")
    return slow - now if left is None and now is not None and slow is not None else left


def temperature(gpu: Gpu, *, wanted: bool, margin: float = 0) -> Iterator[Finding]:
    """Judge the distance to the slowdown temperature; `margin` in degrees."""
    left = temperature_left(gpu)
    if left is None:
        if wanted:
            yield unreadable(gpu, "the temperature")
    elif left <= margin:
        message = f"{left:.0f} degrees under its temperature limit"
        yield Finding("gpu", gpu.name, message, Action.INVESTIGATE)
    memory, most = (
        gpu.number("temperature/memory_current_temp"),
        gpu.number("temperature/memory_max_operating_temp"),
    )
    if memory is not None and most is not None and memory >= most > 0:
        message = f"memory at {memory:.0f} degrees of at most {most:.0f}"
        yield Finding("gpu", gpu.name, message, Action.INVESTIGATE)


def answers(gpus: Iterable[Gpu]) -> Iterator[Finding]:
    """Judge fields that a GPU did not answer: lost, in need of a reset, or only a reading gone wrong."""
    for gpu in gpus:
        for path, value in gpu.broken.items():
            if "lost" in value:
                yield Finding("gpu", gpu.name, "the GPU is lost", Action.POWER_CYCLE)
                break
            if "reset" in value:
                yield Finding("gpu", gpu.name, "the GPU requires a reset", Action.GPU_RESET)
                break
            harmless = any(word in path for word in _HARMLESS)
            status = Status.WARN if harmless else Status.UNKNOWN
            yield Finding("gpu", gpu.name, f"{path} reads {value}", Action.RERUN, status)


def judge_report(report: SmiReport) -> list[Finding]:
    """Judge whatever a report holds, without a profile: what no part may show."""
    return judge_gpus(report.gpus)


def judge_gpus(gpus: tuple[Gpu, ...]) -> list[Finding]:
    """Judge whatever is told of some GPUs, without a profile."""
    findings: list[Finding] = list(answers(gpus))
    for gpu in gpus:
        findings += ecc(gpu, wanted=False)
        findings += remap(gpu, wanted=False)
        findings += retired_pages(gpu, wanted=False)
        findings += throttle(gpu, wanted=False)
        findings += recovery(gpu, wanted=False)
        findings += fabric(gpu, wanted=False)
        findings += temperature(gpu, wanted=False)
    return findings


_MESSAGE_ACTIONS = {
    "lost": Action.POWER_CYCLE,
    "mismatch": Action.REBOOT,
    "no driver": Action.REIMAGE,
    "no GPU": Action.POWER_CYCLE,
    "nvml": Action.REBOOT,
}


def judge_messages(messages: tuple[SmiMessage, ...]) -> list[Finding]:
    """Judge what nvidia-smi says when it cannot report."""
    findings = []
    for message in messages:
        who = message.gpu or "GPUs of this node"
        text = f"GPU {message.gpu} is lost ({message.text})" if message.gpu else message.text
        findings.append(Finding("gpu", who, text, _MESSAGE_ACTIONS[message.kind]))
    return findings


def judge_links(gpus: tuple[GpuLinks, ...], *, count: int | None = None) -> list[Finding]:
    """Judge NVLinks: none inactive, all of one speed, `count` of them where it is stated."""
    findings = []
    speeds = sorted(speed for gpu in gpus for speed in gpu.links.values() if speed)
    usual = speeds[len(speeds) // 2] if speeds else None
    for gpu in gpus:
        dead = [number for number, speed in gpu.links.items() if speed is None]
        slow = [number for number, speed in gpu.links.items() if speed and usual and speed < 0.95 * usual]
        live = len(gpu.links) - len(dead)
        if gpu.trouble or dead:
            shown = ", ".join(map(str, dead)) or "all"
            findings.append(
                Finding("nvlink", gpu.uuid, f"NVLink {shown} not active on GPU {gpu.index}", Action.GPU_RESET)
            )
        elif count is not None and live != count:
            message = f"{live} of {count} NVLinks on GPU {gpu.index}"
            findings.append(Finding("nvlink", gpu.uuid, message, Action.GPU_RESET))
        if slow:
            shown = ", ".join(map(str, slow))
            findings.append(
                Finding("nvlink", gpu.uuid, f"NVLink {shown} slow on GPU {gpu.index}", Action.GPU_RESET)
            )
    counts = sorted(len(gpu.links) for gpu in gpus)
    for gpu in gpus:
        if count is None and not gpu.trouble and len(gpu.links) < counts[len(counts) // 2]:
            message = f"{len(gpu.links)} NVLinks on GPU {gpu.index}; others have {counts[-1]}"
            findings.append(Finding("nvlink", gpu.uuid, message, Action.GPU_RESET))
    return findings


def judge_counters(counters: dict[tuple[str, int, str], int]) -> list[Finding]:
    """Judge NVLink error counters of one reading; how fast they grow is another reading's matter."""
    return [
        Finding(
            "nvlink",
            uuid,
            f"NVLink {link}: {count} {what}",
            Action.INVESTIGATE,
            Status.FAIL if count >= _MANY_LINK_ERRORS and "Replay" not in what else Status.WARN,
        )
        for (uuid, link, what), count in counters.items()
        if (count and "Replay" not in what) or count > _MANY_LINK_ERRORS
    ]


def judge_table(rows: tuple[TableRow, ...]) -> list[Finding]:
    """Judge the plain table: errors counted, and cells that hold no reading."""
    findings = []
    for row in rows:
        cells = " ".join(row.cells)
        if "GPU is lost" in cells or "Unknown Error" in cells:
            findings.append(Finding("gpu", row.address, "the GPU is lost", Action.POWER_CYCLE))
        elif cells.count("ERR!") > 2:
            findings.append(Finding("gpu", row.address, "the GPU answers nothing", Action.POWER_CYCLE))
        elif "ERR!" in cells:
            findings.append(Finding("gpu", row.address, "a reading failed (ERR!)", Action.RERUN, Status.WARN))
        if row.uncorrected.isdecimal() and int(row.uncorrected):
            message = f"{row.uncorrected} uncorrected memory errors"
            findings.append(Finding("gpu", row.address, message, Action.GPU_RESET))
    return findings


def judge_topology(joins: dict[tuple[str, str], str]) -> list[Finding]:
    """Judge the matrix: where nearly all pairs of GPUs are joined alike, the odd ones are broken."""
    kinds = list(joins.values())
    if not kinds:
        return []
    usual = max(set(kinds), key=kinds.count)
    odd = {pair: join for pair, join in joins.items() if join != usual}
    if not usual.startswith("NV") or len(odd) > len(kinds) / 4:
        return []
    return [
        Finding("nvlink", "-".join(pair), f"joined by {join} where others have {usual}", Action.GPU_RESET)
        for pair, join in odd.items()
        if pair[0] < pair[1]
    ]
