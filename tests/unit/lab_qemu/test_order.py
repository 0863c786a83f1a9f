"""Boot orders: from MAAS's JSON to what iPXE and a shell read."""

from __future__ import annotations

import json
import subprocess
import tempfile

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lab.qemu.errors import BootServiceFailed
from lab.qemu.order import BootOrder, Intent, boot_script, read_order, shell_order

# A shell variable holds anything but NUL; what a surrogate would mean in bytes nobody knows.
TEXT = st.text(st.characters(codec="utf-8", exclude_characters="\0"))


def test_reads_what_maas_answers() -> None:
    body = {
        "intent": "install",
        "system_id": "4xk7ra",
        "hostname": "lab-real-n01",
        "token": "t0ken",
        "image": "custom/debian-12",
        "ssh_keys": ["ssh-ed25519 AAAA a", "ssh-ed25519 BBBB b"],
        "user_data": None,
        "ephemeral": False,
        "more": "than we know",
    }
    assert read_order("m", json.dumps(body).encode()) == BootOrder(
        Intent.INSTALL,
        hostname="lab-real-n01",
        token="t0ken",
        image="custom/debian-12",
        ssh_keys=("ssh-ed25519 AAAA a", "ssh-ed25519 BBBB b"),
    )


@pytest.mark.parametrize(
    "body", [b"", b"[]", b"5", b"null", b"{}", b'{"intent": "dance", "token": "hush"}', b"<html>", b"\xff"]
)
def test_refuses_what_is_no_order_without_repeating_it(body: bytes) -> None:
    with pytest.raises(BootServiceFailed, match="no boot order") as caught:
        read_order("52:54:00:77:02:01", body)
    assert caught.value.where == "52:54:00:77:02:01"
    assert "hush" not in str(caught.value)


def test_no_token_is_shown() -> None:
    assert "hush" not in repr(BootOrder(Intent.INSTALL, token="hush", user_data="hush"))


@settings(max_examples=25, deadline=None, database=None)
@given(hostname=TEXT, token=TEXT, keys=st.lists(TEXT, max_size=3))
def test_a_shell_reads_back_every_value_and_runs_none(hostname: str, token: str, keys: list[str]) -> None:
    order = BootOrder(Intent.INSTALL, hostname=hostname, token=token, ssh_keys=tuple(keys))
    script = shell_order(order, address="127.77.3.1", image_bytes=7)
    script += r'printf "%s\0" "$intent" "$hostname" "$token" "$ssh_keys" "$address" "$image_bytes"'
    # Were the quoting broken, chance would write commands: give them no program and no folder.
    with tempfile.TemporaryDirectory() as nowhere:
        done = subprocess.run(
            ["/bin/sh"], input=script.encode(), capture_output=True, check=True, cwd=nowhere, env={"PATH": ""}
        )
    assert done.stderr == b""
    values = ["install", hostname, token, "\n".join(keys), "127.77.3.1", "7"]
    assert done.stdout == "".join(f"{value}\0" for value in values).encode()


@pytest.mark.parametrize(
    "intent", [Intent.COMMISSION, Intent.INSTALL, Intent.ENLIST, Intent.TEST, Intent.RESCUE]
)
def test_the_netboot_environment_is_started_for_work(intent: Intent) -> None:
    script = boot_script(BootOrder(intent, token="hush"), "http://10.0.2.2:80")
    assert script.startswith("#!ipxe\n")
    assert "kernel http://10.0.2.2:80/kernel console=ttyS0,115200 " in script
    assert "hush" not in script
    assert "quiet" not in script


@pytest.mark.parametrize("intent", [Intent.LOCAL, Intent.NOTHING])
def test_nothing_is_loaded_where_nothing_is_wanted(intent: Intent) -> None:
    script = boot_script(BootOrder(intent), "http://10.0.2.2:80")
    assert script.startswith("#!ipxe\n")
    assert "kernel" not in script
