"""Reads `nvidia-smi -q`, as text or XML, into the same fields."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache

from health.errors import Unreadable

_WHAT = "nvidia-smi -q"
_GPU_HEADING = re.compile(r"^GPU ([0-9A-Fa-f]{4,8}:[0-9A-Fa-f]{2}:[0-9A-Fa-f]{2}\.[0-7])\s*$")
_LINE = re.compile(r"^(?P<indent> *)(?P<label>\S.*?)\s*(?: : ?(?P<value>.*))?$")
_TAG = re.compile(r"<(?P<end>/?)(?P<name>[A-Za-z_][\w.]*)(?P<rest>[^<>]*)>(?P<text>[^<]*)")
_ID = re.compile(r'id="([^"]+)"')
# What the tool writes where the GPU has no such thing.
_ABSENT = frozenset({"", "N/A", "[N/A]", "Not Supported", "[Not Supported]", "None"})
# What it writes where it asked the GPU and got no answer.
_BROKEN = re.compile(r"ERR!|\[?Unknown Error\]?|\[?GPU is lost\]?|\[?GPU requires reset\]?")

# XML's names for what the text calls otherwise.
_TAGS = {
    "serial": "serial_number",
    "uuid": "gpu_uuid",
    "gpu_module_id": "module_id",
    "img_version": "image_version",
    "pci_bus_id": "bus_id",
    "pci_gpu_link_info": "gpu_link_info",
    "pcie_gen": "pcie_generation",
    "link_widths": "link_width",
    "max_link_gen": "max",
    "current_link_gen": "current",
    "max_link_width": "max",
    "current_link_width": "current",
    "current_ecc": "current",
    "pending_ecc": "pending",
    "current_mig": "current",
    "pending_mig": "pending",
    "sram_uncorrectable_secded": "sram_uncorrectable_sec_ded",
    "multiple_single_bit_retirement": "single_bit_ecc",
    "double_bit_retirement": "double_bit_ecc",
    "pending_blacklist": "pending_page_blacklist",
    "pending_retirement": "pending_page_blacklist",
    "remapped_row_corr": "correctable_error",
    "remapped_row_unc": "uncorrectable_error",
    "remapped_row_pending": "pending",
    "remapped_row_failure": "remapping_failure_occurred",
    "gpu_temp": "gpu_current_temp",
    "gpu_temp_tlimit": "gpu_t_limit_temp",
    "gpu_temp_max_threshold": "gpu_shutdown_temp",
    "gpu_temp_slow_threshold": "gpu_slowdown_temp",
    "gpu_temp_max_tlimit_threshold": "gpu_shutdown_t_limit_temp",
    "gpu_temp_slow_tlimit_threshold": "gpu_slowdown_t_limit_temp",
    "gpu_temp_max_mem_threshold": "memory_max_operating_temp",
    "memory_temp": "memory_current_temp",
    "graphics_clock": "graphics",
    "sm_clock": "sm",
    "mem_clock": "memory",
    "power_readings": "gpu_power_readings",
    "power_limit": "current_power_limit",
    "replay_counter": "replays_since_reset",
    "cliqueId": "cliqueid",
    "clusterUuid": "clusteruuid",
}
_SECTIONS = {
    "clocks_throttle_reasons": "clocks_event_reasons",
    "power_readings": "gpu_power_readings",
    "replays_since_reset": "replays_since_reset",
}
_NUMBER = re.compile(r"(-?\d+(?:\.\d+)?) ?(x|[A-Za-z%/()]*)")
# A number whose unit is cut off may have lost digits, too.
_UNITS = {
    "fb_memory_usage/": "MiB",
    "temperature/": "C",
    "power_readings/": "W",
    "_clocks/": "MHz",
    "link_width/": "x",
}
_REASON_PREFIX = re.compile(r"^clocks_(?:throttle|event)_reason_")


@dataclass(frozen=True, slots=True)
class Gpu:
    """One GPU: its address in the form 0000:53:00.0, and its fields by path, "ecc_mode/current" for one."""

    address: str
    fields: Mapping[str, str]

    def value(self, *paths: str) -> str | None:
        """Return the first of `paths` that is there and says something; None where none does."""
        for path in paths:
            value = self.fields.get(path)
            if value is not None and value not in _ABSENT and not _BROKEN.fullmatch(value):
                return value
        return None

    def number(self, *paths: str) -> float | None:
        """Return the number that a field is, without its unit; None where it is none."""
        path = next((path for path in paths if self.value(path) is not None), "")
        match = _NUMBER.fullmatch(self.value(path) or "")
        unit = next((unit for section, unit in _UNITS.items() if section in path), None)
        return float(match[1]) if match and unit in (None, match[2]) else None

    def has(self, section: str) -> bool:
        """Say whether a section, or one field, was printed at all."""
        return section in self.fields or any(path.startswith(section + "/") for path in self.fields)

    @property
    def name(self) -> str:
        """Name this GPU for a human: its serial where it has one, and its address."""
        serial = self.value("serial_number")
        return f"{serial} at {self.address}" if serial and serial.strip("0") else self.address

    @property
    def broken(self) -> Mapping[str, str]:
        """List the fields that the GPU did not answer, with what stands there instead."""
        return {path: value for path, value in self.fields.items() if _BROKEN.fullmatch(value)}


@dataclass(frozen=True, slots=True)
class SmiReport:
    """All that one `nvidia-smi -q` said. `attached` is its own count; None in a fragment without one."""

    driver: str | None
    cuda: str | None
    attached: int | None
    gpus: tuple[Gpu, ...]
    flaw: str | None = None  # why it is not whole
    cut: bool = False  # it ends before its own end

    def gpu(self, address: str) -> Gpu | None:
        """Return the GPU at a PCI address."""
        return next((gpu for gpu in self.gpus if gpu.address == address), None)


def read_smi(text: str) -> SmiReport:
    """Read a whole report. Raises Unreadable where it is cut, contradicts itself or is none."""
    report = read_smi_parts(text)
    if report.flaw:
        raise Unreadable(_WHAT, report.flaw)
    return report


# A dozen checks look at one report, one after the other.
@lru_cache(maxsize=4)
def read_smi_parts(text: str) -> SmiReport:
    """Read what is there of a report; `flaw` says why it is not whole. Raises Unreadable for none at all."""
    xml = "<nvidia_smi_log" in text
    head, blocks = _from_xml(text) if xml else _from_text(text)
    if not blocks and "attached_gpus" not in head:
        raise Unreadable(_WHAT, _first_line(text))
    gpus = tuple(Gpu(_short(address), fields) for address, fields in blocks)
    count = head.get("attached_gpus", "")
    attached = int(count) if count.isdecimal() else None
    cut = _is_cut(text, xml, gpus)
    return SmiReport(
        driver=head.get("driver_version"),
        cuda=head.get("cuda_version"),
        attached=attached,
        gpus=gpus,
        flaw="it ends in the middle" if cut else _flaw(xml, attached, gpus),
        cut=cut,
    )


def _is_cut(text: str, xml: bool, gpus: tuple[Gpu, ...]) -> bool:
    """Say whether the end is missing: XML closes itself, the text's last word on a GPU is its processes."""
    if xml:
        return "</nvidia_smi_log>" not in text
    return any(gpu.has("product_brand") and not gpu.has("processes") for gpu in gpus)


def _flaw(xml: bool, attached: int | None, gpus: tuple[Gpu, ...]) -> str | None:
    if attached is None:
        return None if xml else "it does not say how many GPUs are attached"
    if len(gpus) != attached:
        return f"it says {attached} attached GPUs and describes {len(gpus)}"
    if len({gpu.address for gpu in gpus}) != len(gpus):
        return "it describes one GPU twice"
    sections = [frozenset(path.partition("/")[0] for path in gpu.fields) for gpu in gpus]
    uneven = [gpu for gpu, own in zip(gpus, sections, strict=True) if own != sections[0]]
    if uneven:
        return f"it describes {uneven[0].address} with other sections than {gpus[0].address}"
    return None


def _short(address: str) -> str:
    """Bring a PCI address to the kernel's form: 00000000:53:00.0 becomes 0000:53:00.0."""
    domain, _, rest = address.lower().partition(":")
    try:
        return f"{int(domain, 16):04x}:{rest}"
    except ValueError as exc:
        raise Unreadable(_WHAT, f"GPU address {address!r}") from exc


def _from_text(text: str) -> tuple[dict[str, str], list[tuple[str, dict[str, str]]]]:
    head: list[str] = []
    blocks: list[tuple[str, list[str]]] = []
    lines = head
    for line in text.splitlines():
        if heading := _GPU_HEADING.match(line):
            lines = []
            blocks.append((heading[1], lines))
        elif line[:1].strip():
            # What stands at the margin is about the node, also after the last GPU.
            head.append(line)
        else:
            lines.append(line)
    return dict(_paths(head)), [(address, dict(_paths(lines))) for address, lines in blocks]


def _paths(lines: list[str]) -> Iterator[tuple[str, str]]:
    """Give each "label : value" with the labels that it is indented under."""
    above: list[tuple[int, str]] = []
    for line in lines:
        match = _LINE.match(line)
        if not match:
            continue
        indent = len(match["indent"])
        while above and above[-1][0] >= indent:
            above.pop()
        above.append((indent, _name(match["label"])))
        if match["value"] is not None:
            yield _path([name for _, name in above]), match["value"].strip()


def _path(names: list[str]) -> str:
    names = [_SECTIONS.get(name, name) for name in names]
    if len(names) == 3 and names[:2] == ["clocks_event_reasons", "hw_slowdown"]:
        # Newer drivers indent the two causes under what they cause.
        names = [names[0], names[2]]
    return "/".join(names)


@lru_cache(maxsize=2048)
def _name(label: str) -> str:
    return re.sub(r"[^a-z0-9]+", "_", label.lower()).strip("_")


def _from_xml(text: str) -> tuple[dict[str, str], list[tuple[str, dict[str, str]]]]:
    """Walk the tags. No parser for all of XML: a node's output must not expand entities here."""
    head: dict[str, str] = {}
    blocks: list[tuple[str, dict[str, str]]] = []
    above: list[str] = []
    for tag in _TAG.finditer(text):
        name = tag["name"]
        if tag["end"]:
            if above and name in above:
                while above.pop() != name:
                    pass
            continue
        if tag["rest"].rstrip().endswith("/"):
            continue
        if name == "gpu" and (found := _ID.search(tag["rest"])):
            blocks.append((found[1], {}))
        above.append(name)
        value = tag["text"].strip()
        if value:
            target = blocks[-1][1] if "gpu" in above else head
            inside = above[above.index("gpu") + 1 :] if "gpu" in above else above[1:]
            target.setdefault(_xml_path(inside), value)
    return head, blocks


def _xml_path(names: list[str]) -> str:
    plain = [_REASON_PREFIX.sub("", _TAGS.get(name, name)) for name in names]
    if plain[-1:] == ["retired_count"]:
        plain.pop()
    return _path(plain)


def _first_line(text: str) -> str:
    lines = text.strip().split("\n", 1)
    return f"it begins {lines[0].strip()[:80]!r}" if lines[0] else "it is empty"
