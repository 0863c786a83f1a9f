"""Readings out of Redfish's older resources, as BMCs fill them in."""

from __future__ import annotations

from bmc.redfish import readings
from bmc.redfish.resource import Resource


def supply(**fields: object) -> dict[str, object]:
    return {"Status": {"State": "Enabled", "Health": "OK"}, **fields}


def test_parts_that_the_bmc_calls_alike_have_names_of_their_own() -> None:
    power = {
        "PowerControl": [{"MemberId": "0", "PowerConsumedWatts": 230}],
        "PowerSupplies": [
            supply(Name="ServerPowerSupply", MemberId="0", LastPowerOutputWatts=0),
            supply(Name="ServerPowerSupply", MemberId="1", LastPowerOutputWatts=95),
        ],
    }
    found = {reading.name: reading.value for reading in readings.power(Resource("/p", power))}
    assert found == {"Power": 230.0, "ServerPowerSupply 0": 0.0, "ServerPowerSupply 1": 95.0}


def test_a_name_that_is_the_only_one_stays_as_it_is() -> None:
    thermal = {"Temperatures": [supply(Name="Inlet", MemberId="7", ReadingCelsius=21)], "Fans": [supply()]}
    assert [reading.name for reading in readings.thermal(Resource("/t", thermal))] == ["Inlet", "Fan"]
