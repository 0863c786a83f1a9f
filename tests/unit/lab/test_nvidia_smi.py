"""The image's nvidia-smi: the real program's forms, and the node's faults at once."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from health.readers.smi import read_smi
from lab.nodes.kernel import lost_gpus

PROGRAM = Path(__file__).parents[3] / "lab" / "nodes" / "image" / "usr" / "bin" / "nvidia-smi"
Run = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture
def share(tmp_path: Path) -> Path:
    (tmp_path / "facts.json").write_text(json.dumps({"serial": "LAB-N01"}))
    (tmp_path / "faults").write_text("")
    return tmp_path


@pytest.fixture
def run(share: Path) -> Run:
    def call(*arguments: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-B", str(PROGRAM), *arguments],
            capture_output=True,
            text=True,
            check=False,
            env={**os.environ, "LAB_SHARE": str(share)},
        )

    return call


def test_the_long_report_is_one_that_the_products_reader_reads_whole(run: Run) -> None:
    report = read_smi(run("-q").stdout)
    assert report.attached == 8
    assert len(report.gpus) == 8


def test_a_missing_gpu_is_missing_in_every_form(run: Run, share: Path) -> None:
    whole = run("-L").stdout.splitlines()
    (share / "faults").write_text("gpu-missing 1\n")
    assert len(run("-L").stdout.splitlines()) == 7
    assert len(read_smi(run("-q").stdout).gpus) == 7
    assert len(run("--query-gpu=index", "--format=csv,noheader").stdout.splitlines()) == 7
    buses = run("--query-gpu=pci.bus_id", "--format=csv,noheader").stdout.lower()
    assert lost_gpus(1)[0] not in [line.split(":")[1] for line in buses.splitlines()]
    assert len(whole) == 8


def test_no_gpu_left_is_said_as_the_real_program_says_it(run: Run, share: Path) -> None:
    (share / "faults").write_text("gpu-missing 8\n")
    done = run()
    assert (done.returncode, done.stdout) == (6, "No devices were found\n")


def test_csv_has_units_in_its_header_and_values_or_only_there(run: Run) -> None:
    asked = "--query-gpu=index,memory.total,power.limit"
    head, first, *_ = run(asked, "--format=csv").stdout.splitlines()
    assert head == "index, memory.total [MiB], power.limit [W]"
    assert first == "0, 81559 MiB, 700.00 W"
    assert run(asked, "--format=csv,noheader,nounits").stdout.splitlines()[1] == "1, 81559, 700.00"


def test_an_unknown_field_is_refused_by_name(run: Run) -> None:
    done = run("--query-gpu=index,colour", "--format=csv")
    assert done.returncode == 2
    assert 'Field "colour" is not a valid field to query.' in done.stdout


def test_a_query_needs_a_format(run: Run) -> None:
    assert run("--query-gpu=index").returncode == 2


def test_every_link_of_every_gpu_is_listed(run: Run) -> None:
    lines = run("nvlink", "-s").stdout.splitlines()
    assert sum(line.startswith("GPU ") for line in lines) == 8
    assert sum("26.562 GB/s" in line for line in lines) == 8 * 18
    assert sum("CRC Errors: 0" in line for line in run("nvlink", "-e").stdout.splitlines()) == 8 * 18


def test_sections_and_single_gpus_can_be_asked_for(run: Run) -> None:
    text = run("-q", "-d", "ROW_REMAPPER", "-i", "2").stdout
    assert text.count("Remapped Rows") == 1
    assert "Temperature" not in text


def test_the_table_is_as_wide_as_the_real_one(run: Run) -> None:
    widths = {len(line) for line in run().stdout.splitlines()[1:] if line.strip()}
    assert widths == {91}


def test_serials_and_uuids_are_the_nodes_own(run: Run, share: Path) -> None:
    mine = run("--query-gpu=serial,uuid", "--format=csv,noheader").stdout
    (share / "facts.json").write_text(json.dumps({"serial": "LAB-N02"}))
    others = run("--query-gpu=serial,uuid", "--format=csv,noheader").stdout
    assert mine.startswith("LAB-N01-G0, GPU-")
    assert not set(mine.splitlines()) & set(others.splitlines())


def test_asking_is_heard_by_the_lab_when_it_listens(run: Run, share: Path) -> None:
    os.mkfifo(share / "asked")
    assert run("-L").returncode == 0  # nobody listens, nobody waits
    ears = os.open(share / "asked", os.O_RDWR | os.O_NONBLOCK)
    run("-L")
    assert os.read(ears, 64) == b"gpus\n"
    os.close(ears)


@pytest.mark.parametrize(
    ("fault", "path", "value"),
    [
        ("gpu-ecc 3", "ecc_errors/volatile/dram_uncorrectable", "3"),
        ("gpu-remap-pending 1", "remapped_rows/pending", "Yes"),
        ("gpu-remap-failed 1", "remapped_rows/remapping_failure_occurred", "Yes"),
        ("gpu-pcie-width 4", "pci/gpu_link_info/link_width/current", "4x"),
        ("gpu-throttle 1", "clocks_event_reasons/hw_thermal_slowdown", "Active"),
    ],
)
def test_a_fault_of_one_gpu_shows_in_its_report_only(
    run: Run, share: Path, fault: str, path: str, value: str
) -> None:
    healthy = [one.value(path) for one in read_smi(run("-q").stdout).gpus]
    (share / "faults").write_text(f"{fault}\n")
    found = [one.value(path) for one in read_smi(run("-q").stdout).gpus]
    assert found[2] == value
    assert [*found[:2], *found[3:]] == [*healthy[:2], *healthy[3:]]
    assert healthy[2] != value


def test_an_inactive_link_is_named_as_the_real_program_names_it(run: Run, share: Path) -> None:
    (share / "faults").write_text("nvlink-inactive 2\n")
    lines = run("nvlink", "-s").stdout.splitlines()
    assert [line.strip() for line in lines if "inactive" in line] == [
        "Link 5: <inactive>",
        "Link 6: <inactive>",
    ]


def test_another_driver_shows_in_every_form(run: Run, share: Path) -> None:
    (share / "faults").write_text("driver-version 1\n")
    assert read_smi(run("-q").stdout).driver == "550.54.15"
    assert run("--query-gpu=driver_version", "--format=csv,noheader").stdout.split() == ["550.54.15"] * 8
    assert "Driver Version: 550.54.15" in run().stdout


@pytest.mark.parametrize(
    ("fault", "words", "status"),
    [("gpu-lost", "Unable to determine the device handle for GPU0000:3A:00.0: Unknown Error", 255),
     ("driver-mismatch", "Failed to initialize NVML: Driver/library version mismatch", 18)],
)  # fmt: skip
def test_what_keeps_the_program_from_all_gpus_is_said_with_its_own_status(
    run: Run, share: Path, fault: str, words: str, status: int
) -> None:
    (share / "faults").write_text(f"{fault} 1\n")
    done = run("-q")
    assert done.returncode == status
    assert done.stdout.splitlines()[0] == words


def test_a_cut_report_is_half_of_one_and_ends_well(run: Run, share: Path) -> None:
    whole = run("-q").stdout
    (share / "faults").write_text("smi-cut 1\n")
    done = run("-q")
    assert done.returncode == 0
    assert len(done.stdout) == len(whole) // 2


def test_a_hung_program_waits_in_the_kernel(share: Path) -> None:
    (share / "faults").write_text("smi-hangs 1\n")
    process = subprocess.Popen(
        [sys.executable, "-B", str(PROGRAM), "-q"],
        env={**os.environ, "LAB_SHARE": str(share)},
        start_new_session=True,
    )
    try:
        end = time.monotonic() + 10
        while (state := Path(f"/proc/{process.pid}/stat").read_text().rsplit(")", 1)[1].split()[0]) != "D":
            assert time.monotonic() < end, f"state {state}"
            time.sleep(0.02)
    finally:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def test_a_reset_tells_the_lab_and_names_the_gpus(run: Run, share: Path) -> None:
    os.mkfifo(share / "asked")
    pipe = os.open(share / "asked", os.O_RDWR | os.O_NONBLOCK)
    done = run("--gpu-reset", "-i", "0000:3a:00.0")
    said = os.read(pipe, 4096).decode().split()
    os.close(pipe)
    assert done.stdout == "GPU 00000000:3A:00.0 was successfully reset.\nAll done.\n"
    assert said == ["gpus", "gpu-reset"]
