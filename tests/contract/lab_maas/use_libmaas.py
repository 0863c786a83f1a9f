"""Run by test_libmaas.py in a process of its own: python-libmaas warns of its age, and blocks."""

from __future__ import annotations

import sys
import time

from maas.client import connect, login
from maas.client.enum import NodeStatus

url, user, password, api_key = sys.argv[1:]
deadline = time.monotonic() + 15

told = login(url, username=user, password=password)
assert told.users.whoami().username == user

maas = connect(url, apikey=api_key)
for number in (1, 2, 3):
    made = maas.machines.create(
        "amd64/generic",
        [f"02:4c:41:42:00:0{number}"],
        "ipmi",
        {"power_address": f"127.0.9.{number}", "power_user": "lab", "power_pass": "lab"},
        hostname=f"lab-n0{number}",
    )
    assert made.status == NodeStatus.COMMISSIONING, made.status_name


def statuses() -> set[NodeStatus]:
    return {one.status for one in maas.machines.list()}


while (found := statuses()) != {NodeStatus.READY}:
    assert time.monotonic() < deadline, found

again = maas.machines.list()[0].commission(wait=True, wait_interval=0.05)
assert again.status == NodeStatus.READY, again.status_name

taken = maas.machines.allocate(hostname="lab-n02")
assert taken.status == NodeStatus.ALLOCATED, taken.status_name
taken.deploy(distro_series="noble", wait=True, wait_interval=0.05)
assert taken.status == NodeStatus.DEPLOYED, taken.status_name
assert taken.query_power_state().value == "on"
assert "Deployed" in [one.event_type for one in maas.events.query(hostnames=["lab-n02"])]
taken.release(wait=True, wait_interval=0.05)
assert taken.status == NodeStatus.READY, taken.status_name
maas.machines.get(taken.system_id).delete()
sys.stdout.write(" ".join(sorted(one.hostname for one in maas.machines.list())))
