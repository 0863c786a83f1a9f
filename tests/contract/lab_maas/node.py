"""The simulated node of the replay: does through the boot service what the recorded one did."""

from __future__ import annotations

import base64
import copy
import json
from typing import Any

from tests.contract.lab_maas.wire import Wire, b64, sign

Result = dict[str, Any]


class Node:
    """One machine with two ports."""

    def __init__(self, wire: Wire, mac: str, inventory: dict[str, Any]) -> None:
        self._wire = wire
        self.mac = mac
        self._inventory = inventory
        self._token = ""

    async def boots(self, intent: str) -> dict[str, Any]:
        told = await self._wire.boot(self.mac)
        assert told["intent"] == intent, told
        self._token = str(told["token"])
        return told

    async def says(self, phase: str, event: str, **more: Any) -> str:
        got = await self._wire.report(self.mac, self._token, phase, event, **more)
        assert got.status == 200, got
        return str(got.body["next"])

    async def commissions(self, *, failing: str | None = None, tests_pass: bool = True) -> None:
        """Run every commissioning script, then the tests that belong to it."""
        told = await self.boots("commission")
        results = [self._result(str(one["name"]), failing) for one in told["scripts"]]
        following = await self.says("commissioning", "finished", results=results)
        if following == "testing":
            await self.says("testing", "finished" if tests_pass else "failed")

    async def fails_tests(self) -> None:
        told = await self.boots("test")
        results = [
            {"name": one["name"], "exit_status": 1, "stdout": b64("out of order")} for one in told["scripts"]
        ]
        await self.says("testing", "finished", results=results)

    async def installs(self) -> None:
        """Install without a word, as the recorded node did, and come up from the disk."""
        await self.boots("install")
        got = await self._wire.call("POST", **self.netboot_off())
        assert got.status == 200, got
        await self.comes_up()

    def netboot_off(self) -> dict[str, Any]:
        """The request of MAAS's own installer, signed with this boot's token."""
        return {
            "path": f"{self._wire.root}/MAAS/metadata/2012-03-01/",
            "form": {"op": "netboot_off"},
            "headers": {"Authorization": sign(f"node:{self._token}:")},
        }

    async def comes_up(self) -> None:
        await self.boots("local")
        await self.says("boot", "started")

    def _result(self, name: str, failing: str | None) -> Result:
        text = f"output of {name}\n"
        if name == "50-maas-01-commissioning":
            text = json.dumps(self._own_inventory())
        return {"name": name, "exit_status": int(name == failing), "stdout": b64(text)}

    def _own_inventory(self) -> dict[str, Any]:
        """The recorded inventory with this machine's own addresses."""
        own = copy.deepcopy(self._inventory)
        head, _, tail = self.mac.partition(":01:01")
        assert not tail, f"{self.mac} is no first port"
        for number, card in enumerate(own["resources"]["network"]["cards"], start=1):
            card["ports"][0]["address"] = f"{head}:{number:02x}:01"
        return own


def recorded_inventory(results: dict[str, Any]) -> dict[str, Any]:
    """Take the inventory out of a recorded answer with commissioning results."""
    for one in results["results"]:
        if one["name"] == "50-maas-01-commissioning":
            return dict(json.loads(base64.b64decode(one["stdout"])))
    raise AssertionError("the recording holds no inventory")
