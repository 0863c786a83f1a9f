from __future__ import annotations

import json
from pathlib import Path

import pytest

from lab.maas import BadSnapshot, MaasConfig
from lab.maas.life import inventory, scripts
from lab.maas.life.conductor import Conductor
from lab.maas.model import snapshot
from lab.maas.model.events import Kind
from lab.maas.model.machine import Machine
from lab.maas.model.region import BootResource, ImageFile, Region, Tag, new_region
from lab.maas.model.status import Status


def fresh() -> Region:
    return new_region(MaasConfig(), 0.0)


def test_remembers_everything(ctl: Conductor, machine: Machine, tmp_path: Path) -> None:
    made = scripts.commissioning_set(ctl, machine, skip_bmc_config=True)
    inventory.apply(ctl, machine, made)
    machine.status = Status.READY
    machine.tags.append("rowc")
    ctl.region.tags["rowc"] = Tag("rowc")
    ctl.region.images[9] = BootResource(9, "custom/x", "amd64/generic", file=ImageFile(1, "tgz", "abc", 10))
    ctl.note(machine, Kind.READY)
    file = tmp_path / "lab" / "maas.json"
    snapshot.save(ctl.region, file)
    again = fresh()
    assert snapshot.load(again, file)
    for name in ("machines", "tags", "vlans", "subnets", "scripts", "script_sets", "racks", "counters"):
        assert getattr(again, name) == getattr(ctl.region, name), name
    assert again.machines[machine.system_id].status is Status.READY
    assert list(again.events) == list(ctl.region.events)
    assert again.images[9].file is not None
    assert file.stat().st_mode & 0o077 == 0


def test_starts_anew_without_a_file(tmp_path: Path) -> None:
    assert not snapshot.load(fresh(), tmp_path / "absent.json")


@pytest.mark.parametrize("text", ["", "[]", "{}", json.dumps({"format": 99}), '{"format": 1}'])
def test_refuses_a_file_that_it_did_not_write(tmp_path: Path, text: str) -> None:
    file = tmp_path / "maas.json"
    file.write_text(text)
    with pytest.raises(BadSnapshot, match=r"maas\.json is"):
        snapshot.load(fresh(), file)
