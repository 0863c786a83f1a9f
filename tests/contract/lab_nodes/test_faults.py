"""Each fault as an operator would meet it, from outside."""

from __future__ import annotations

import base64
import re
import time

import pytest

from tests.contract.lab_nodes.bench import LabUnderTest, until

pytestmark = [pytest.mark.lab, pytest.mark.timeout(180)]


def since(lab: LabUnderTest, number: int, begin: int) -> str:
    return lab.console(number)[begin:]


def test_gpu_missing(lab: LabUnderTest) -> None:
    lab.fresh(3)
    lab.fault("--nodes", "lab-n03", "--fault", "gpu-missing")
    assert lab.ssh(3, "nvidia-smi -L | wc -l").stdout.strip() == "7"
    assert re.search(r"NVRM: Xid \(PCI:0000:5d:00\): 79", lab.ssh(3, "dmesg").stdout)
    lab.fault("--nodes", "lab-n03", "--clear")
    assert lab.ssh(3, "nvidia-smi -L | wc -l").stdout.strip() == "8"


def test_disk_full(lab: LabUnderTest) -> None:
    lab.fresh(3)
    lab.fault("--nodes", "lab-n03", "--fault", "disk-full")
    until(lambda: "No space left" in lab.ssh(3, "echo x > ~/full").stderr, "a write fails")
    assert lab.ssh(3, "df --output=pcent / | tail -n 1").stdout.strip() == "100%"
    lab.fault("--nodes", "lab-n03", "--clear")
    until(lambda: lab.ssh(3, "echo x > ~/full && cat ~/full").stdout == "x\n", "a write works")


def test_service_failed(lab: LabUnderTest) -> None:
    lab.fresh(3)
    lab.fault("--nodes", "lab-n03", "--fault", "service-failed")
    until(
        lambda: "nvidia-persistenced.service" in lab.ssh(3, "systemctl --failed --no-legend").stdout,
        "the unit has failed",
    )
    lab.fault("--nodes", "lab-n03", "--clear")
    until(lambda: lab.ssh(3, "systemctl --failed --no-legend").stdout == "", "no unit has failed")


def test_clock_back(lab: LabUnderTest) -> None:
    lab.fresh(3)
    year = time.gmtime().tm_year
    lab.fault("--nodes", "lab-n03", "--fault", "clock-back", "--value", "4")
    ask = "date +%Y; sudo date +%Y; python3 -c 'import time; print(time.gmtime().tm_year)'"
    until(lambda: lab.ssh(3, ask).stdout.split() == [str(year - 4)] * 3, "the clock is back")
    lab.fault("--nodes", "lab-n03", "--clear")
    until(lambda: lab.ssh(3, ask).stdout.split() == [str(year)] * 3, "the clock is right")


def test_ssh_dead(lab: LabUnderTest) -> None:
    lab.fresh(3)
    lab.fault("--nodes", "lab-n03", "--fault", "ssh-dead")
    until(lambda: not lab.answers(3), "silence")
    lab.ipmi(3, "power", "reset")
    begin = len(lab.console(3))
    until(lambda: "lab-n03 login:" in since(lab, 3, begin), "the system comes up")
    assert not lab.answers(3)
    lab.fault("--nodes", "lab-n03", "--clear")
    until(lambda: lab.answers(3), "sshd answers")


def test_kernel_panic_now_and_at_the_next_boot(lab: LabUnderTest) -> None:
    lab.fresh(3)
    begin = len(lab.console(3))
    lab.fault("--nodes", "lab-n03", "--fault", "kernel-panic")
    until(lambda: "Kernel panic - not syncing" in since(lab, 3, begin), "a panic")
    until(lambda: not lab.answers(3), "silence")
    assert lab.ipmi(3, "power", "status") == "Chassis Power is on"
    begin = len(lab.console(3))
    lab.ipmi(3, "power", "reset")
    until(lambda: "end Kernel panic" in since(lab, 3, begin), "a panic at boot")


def test_no_lease(lab: LabUnderTest) -> None:
    lab.fresh(3)
    lab.fault("--nodes", "lab-n03", "--fault", "no-lease")
    begin = len(lab.console(3))
    lab.ipmi(3, "power", "reset")
    until(lambda: "https://ipxe.org/040ee119" in since(lab, 3, begin), "DHCP gives up")
    assert "Filename:" not in since(lab, 3, begin)


def test_pxe_loop(lab: LabUnderTest) -> None:
    lab.fresh(3)
    lab.fault("--nodes", "lab-n03", "--fault", "pxe-loop")
    begin = len(lab.console(3))
    lab.ipmi(3, "power", "reset")
    until(
        lambda: since(lab, 3, begin).count("iPXE initialising") >= 3, "it boots the network again and again"
    )
    assert not lab.answers(3)


def test_dies_in_gate(lab: LabUnderTest) -> None:
    lab.fresh(3)
    lab.fault("--nodes", "lab-n03", "--fault", "dies-in-gate")
    assert lab.ssh(3, "uptime").returncode == 0
    lab.ssh(3, "nvidia-smi -q")
    until(lambda: lab.ipmi(3, "power", "status") == "Chassis Power is off", "no power")


def test_deploy_fails(lab: LabUnderTest) -> None:
    lab.fresh(3)
    lab.fault("--nodes", "lab-n03", "--fault", "deploy-fails")
    machine = lab.machine(3)
    lab.maas("POST", f"machines/{machine}/?op=release")
    until(lambda: lab.machine_status(3) == "Ready", "Ready")
    lab.maas("POST", f"machines/{machine}/?op=deploy", distro_series="debian-12", osystem="custom")
    until(lambda: lab.machine_status(3) == "Failed deployment", "Failed deployment")
    results = lab.maas("GET", f"nodes/{machine}/results/?type=installation&include_output=true")
    assert "efibootmgr failed to register the boot entry" in lab.console(3)
    logs = [base64.b64decode(one["output"]) for made in results for one in made["results"]]
    assert any(b"installing the boot loader failed" in log for log in logs)


def test_an_nmi_makes_the_running_kernel_panic(lab: LabUnderTest) -> None:
    lab.fresh(3)
    begin = len(lab.console(3))
    lab.ipmi(3, "power", "diag")
    until(lambda: "NMI: Not continuing" in since(lab, 3, begin), "a panic")
    until(lambda: not lab.answers(3), "silence")


def test_a_silent_bmc_leaves_the_node_running(lab: LabUnderTest) -> None:
    lab.fresh(3)
    lab.fault("--nodes", "lab-n03", "--fault", "bmc-silent")
    assert lab.status()["lab-n03"]["faults"] == {"bmc-silent": 1.0}
    assert lab.answers(3)
    lab.fault("--nodes", "lab-n03", "--clear")
    assert lab.ipmi(3, "power", "status") == "Chassis Power is on"


def test_a_fault_that_a_node_cannot_have_is_refused(lab: LabUnderTest) -> None:
    done = lab.command("fault", "--nodes", "lab-n03", "--fault", "gpu-missing", "--value", "9")
    assert done.returncode == 5
    done = lab.command("fault", "--nodes", "lab-n33", "--fault", "gpu-missing")
    assert done.returncode == 5
    assert "did you mean lab-n03?" in done.stderr
