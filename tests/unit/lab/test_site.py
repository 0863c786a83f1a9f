"""Site folders for labs of other sizes, as the product reads them."""

from __future__ import annotations

from pathlib import Path

import pytest

from inventory.site import load
from lab.errors import BadRequest
from lab.plan import Plan
from lab.site import write_site
from lab.spec import LabNet, RackKind, rack_specs


def test_the_product_reads_every_node_where_the_lab_puts_it(tmp_path: Path) -> None:
    plan = Plan(nodes=260, real=2, light=3)
    site = load(write_site(tmp_path / "big", LabNet(78), plan))
    expected = {
        spec.name: spec for rack in RackKind for spec in rack_specs(LabNet(78), rack, plan.count(rack))
    }
    assert {node.name for node in site.nodes} == set(expected)
    for node in site.nodes:
        spec = expected[node.name]
        assert (node.bmc.host, node.serial, node.macs, node.address) == (
            spec.bmc_host,
            spec.serial,
            (spec.mac,),
            spec.address,
        )
    assert site.maas.url == "http://127.78.0.2:5240/MAAS"


def test_a_folder_that_holds_something_else_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("mine")
    with pytest.raises(BadRequest, match="holds other files"):
        write_site(tmp_path, LabNet(), Plan())
