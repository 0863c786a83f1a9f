"""pyghmi drives the lab's BMC, in a process of its own."""

from __future__ import annotations

import json
import sys
from typing import Any

import pytest

from tests.contract.lab_bmc.conftest import ADDRESS, PASSWORD, USER, Lab

_CALLS = """
import json, sys
from pyghmi.ipmi.command import Command
host, port, user, password = sys.argv[1], int(sys.argv[2]), sys.argv[3], sys.stdin.readline().strip()
bmc = Command(bmc=host, userid=user, password=password, port=port)
bmc.set_bootdev("network", uefiboot=True)
found = {
    "boot": bmc.get_bootdev(),
    "before": bmc.get_power(),
    "on": bmc.set_power("on", wait=8),
    "sensors": {reading.name: reading.value for reading in bmc.get_sensor_data()},
    "health": bmc.get_health()["health"],
    "fru": {name: fields for name, fields in bmc.get_inventory() if fields},
    "events": [entry["event"] for entry in bmc.get_event_log(clear=True)],
    "left": len(list(bmc.get_event_log())),
    "users": [user["name"] for user in bmc.get_users().values()],
    "net": bmc.get_net_configuration()["ipv4_address"],
}
bmc.set_identify(True)
bmc.ipmi_session.logout()
print(json.dumps(found, default=str))
"""


async def test_pyghmi_reads_and_sets_everything_we_use(lab: Lab) -> None:
    pytest.importorskip("pyghmi", reason="pyghmi is not installed")
    lab.bmc.sensors.force("GPU3 Temp", 84)
    lab.bmc.sensors.release()
    secret = lab.folder / "secret"
    secret.write_text(PASSWORD + "\n")
    command = f'exec "{sys.executable}" -c "$0" "$@" < "{secret}"'
    where = (ADDRESS, str(lab.bmc.port), USER)
    found: dict[str, Any] = json.loads(await lab.ok(["sh", "-c", command, _CALLS, *where]))
    assert found["boot"] == {"bootdev": "network", "persistent": False, "uefimode": True}
    assert (found["before"], found["on"]) == ({"powerstate": "off"}, {"powerstate": "on"})
    assert lab.chassis.boots == ["pxe"]
    assert 38 <= found["sensors"]["GPU0 Temp"] <= 44
    assert found["sensors"]["Fan1"] > 9000
    assert found["fru"]["System"]["Serial Number"] == "LAB-C0001"
    assert len(found["events"]) == 2
    assert found["left"] == 1
    assert found["users"] == [USER]
    assert found["net"] == f"{ADDRESS}/8"
    assert lab.bmc.identify.name == "ON"
    assert len(lab.bmc.sessions) == 0
