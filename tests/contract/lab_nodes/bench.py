"""A lab from outside: its own command, ipmitool, ssh, and plain HTTP to its MAAS."""

from __future__ import annotations

import json
import os
import secrets
import socket
import subprocess
import sys
import time
import urllib.parse
import urllib.request
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[3]
_POLL_S = 0.1


@dataclass
class LabUnderTest:
    """A lab through its own command, its BMCs through ipmitool, its MAAS through plain HTTP."""

    state: Path
    net: str
    ids: dict[str, str] = field(default_factory=dict)

    @property
    def octet(self) -> str:
        return self.net.split(".")[1]

    @property
    def secrets(self) -> Path:
        return self.state / "lab" / "secrets"

    def address(self, number: int) -> str:
        return f"10.{self.octet}.1.{number}"

    def command(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-m", "lab", *arguments],
            cwd=ROOT,
            capture_output=True,
            text=True,
            check=False,
            env={**os.environ, "MUSTER_STATE": str(self.state), "MUSTER_LAB_NET": self.net},
        )

    def status(self) -> dict[str, dict[str, Any]]:
        done = self.command("status", "--output", "json")
        assert done.returncode == 0, done.stderr
        return {node["name"]: node for node in json.loads(done.stdout)["nodes"]}

    def fault(self, *arguments: str) -> None:
        done = self.command("fault", *arguments)
        assert done.returncode == 0, done.stderr

    def ipmi(self, number: int, *arguments: str) -> str:
        place = [
            "-H",
            f"127.{self.octet}.1.{number}",
            "-U",
            "admin",
            "-f",
            str(self.secrets / "bmc-password"),
        ]
        done = subprocess.run(
            ["ipmitool", "-I", "lanplus", *place, *arguments], capture_output=True, text=True, check=True
        )
        return done.stdout.strip()

    def ssh(self, number: int, command: str) -> subprocess.CompletedProcess[str]:
        options = (
            "StrictHostKeyChecking=no",
            "UserKnownHostsFile=/dev/null",
            "LogLevel=ERROR",
            "ConnectTimeout=3",
        )
        return subprocess.run(
            [
                "ssh",
                *(word for option in options for word in ("-o", option)),
                *("-i", str(self.secrets / "ssh_key"), f"ubuntu@{self.address(number)}", command),
            ],
            capture_output=True,
            text=True,
            check=False,
            timeout=15,
        )

    def console(self, number: int) -> str:
        """All that the node has said on its serial line."""
        path = self.state / "lab" / "nodes" / f"lab-n{number:02d}" / "serial.log"
        return path.read_bytes().decode(errors="replace") if path.exists() else ""

    def answers(self, number: int) -> bool:
        """Say whether the node's sshd greets."""
        try:
            with closing(socket.create_connection((self.address(number), 22), 1.0)) as line:
                return line.recv(4) == b"SSH-"
        except OSError:
            return False

    def maas(self, method: str, path: str, **form: str) -> Any:
        consumer, token, key = (self.secrets / "maas-key").read_text().strip().split(":")
        signature = {
            "oauth_version": "1.0",
            "oauth_signature_method": "PLAINTEXT",
            "oauth_consumer_key": consumer,
            "oauth_token": token,
            "oauth_signature": f"%26{key}",
            "oauth_nonce": secrets.token_hex(8),
            "oauth_timestamp": str(int(time.time())),
        }
        header = "OAuth " + ", ".join(f'{name}="{value}"' for name, value in signature.items())
        data = urllib.parse.urlencode(form).encode() if method == "POST" else None
        request = urllib.request.Request(
            f"http://127.{self.octet}.0.2:5240/MAAS/api/2.0/{path}",
            data,
            {"Authorization": header},
            method=method,
        )
        with urllib.request.urlopen(request) as answer:
            return json.load(answer)

    def machine(self, number: int) -> str:
        """Return the system id of a node's machine, enlisting it first."""
        name = f"lab-n{number:02d}"
        if name not in self.ids:
            self.ids[name] = self.maas(
                "POST",
                "machines/",
                hostname=name,
                architecture="amd64/generic",
                mac_addresses=f"52:54:00:{self.octet[-2:]}:01:{number:02x}",
                commission="false",
                power_type="ipmi",
                power_parameters_power_address=f"127.{self.octet}.1.{number}",
                power_parameters_power_user="admin",
                power_parameters_power_pass=(self.secrets / "bmc-password").read_text().strip(),
                power_parameters_cipher_suite_id="17",
                power_parameters_privilege_level="ADMIN",
            )["system_id"]
        return self.ids[name]

    def machine_status(self, number: int) -> str:
        return str(self.maas("GET", f"machines/{self.machine(number)}/")["status_name"])

    def deploy(self, number: int, user_data: str = "") -> None:
        """Bring a node to a fresh system, whatever it is doing; returns when MAAS says Deployed."""
        machine = self.machine(number)
        status = self.machine_status(number)
        if status in ("New", "Failed commissioning"):
            self.maas("POST", f"machines/{machine}/?op=commission")
        elif status != "Ready":
            self.maas("POST", f"machines/{machine}/?op=release")
        until(lambda: self.machine_status(number) == "Ready", "Ready")
        self.maas(
            "POST",
            f"machines/{machine}/?op=deploy",
            distro_series="debian-12",
            osystem="custom",
            user_data=user_data,
        )
        until(lambda: self.machine_status(number) == "Deployed", "Deployed")

    def fresh(self, number: int) -> None:
        """Make sure that a node has a healthy system that answers, with little work where it has."""
        self.fault("--nodes", f"lab-n{number:02d}", "--clear")
        if not self.answers(number) or self.machine_status(number) != "Deployed":
            self.deploy(number)
            until(lambda: self.answers(number), "sshd answers")


def until(true: Callable[[], bool], what: str, deadline_s: float = 15.0) -> None:
    """Wait for a state by looking at it."""
    end = time.monotonic() + deadline_s
    while not true():
        assert time.monotonic() < end, f"waited {deadline_s:.0f} s in vain: {what}"
        time.sleep(_POLL_S)


def is_up(lab: LabUnderTest) -> bool:
    return lab.command("status").returncode == 0
