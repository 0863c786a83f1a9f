"""One lab a net: nobody builds or removes what is another's."""

from __future__ import annotations

from pathlib import Path

import pytest

from lab.errors import Refused
from lab.ownership import owned_net
from lab.spec import LabNet, LabPaths


def test_a_net_in_use_is_refused_and_its_owner_named(tmp_path: Path) -> None:
    first, second = LabPaths(tmp_path / "one" / "lab"), LabPaths(tmp_path / "two" / "lab")
    with (
        owned_net(LabNet(77), first, tmp_path),
        pytest.raises(Refused, match=str(first.state)),
        owned_net(LabNet(77), second, tmp_path),
    ):
        pass


def test_a_net_is_free_again_after_its_lab(tmp_path: Path) -> None:
    paths = LabPaths(tmp_path / "lab")
    for _ in range(2):
        with owned_net(LabNet(77), paths, tmp_path), owned_net(LabNet(78), paths, tmp_path):
            pass
