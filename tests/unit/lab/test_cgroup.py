"""Finding the control group hierarchy on machines of both kinds."""

from __future__ import annotations

from pathlib import Path

import pytest

from lab.errors import Refused
from lab.nodes.cgroup import unified_hierarchy

PURE = "31 23 0:27 / /sys/fs/cgroup rw,nosuid - cgroup2 cgroup2 rw,nsdelegate\n"
HYBRID = (
    "30 23 0:26 / /sys/fs/cgroup rw - tmpfs tmpfs rw,mode=755\n"
    "32 30 0:28 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n"
    "33 30 0:29 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n"
)


@pytest.mark.parametrize(("text", "where"), [(PURE, "/sys/fs/cgroup"), (HYBRID, "/sys/fs/cgroup/unified")])
def test_finds_the_second_version_beside_or_without_the_first(tmp_path: Path, text: str, where: str) -> None:
    mounts = tmp_path / "mountinfo"
    mounts.write_text(text)
    assert unified_hierarchy(mounts) == Path(where)


def test_refuses_a_machine_that_has_only_the_first_version(tmp_path: Path) -> None:
    mounts = tmp_path / "mountinfo"
    mounts.write_text(HYBRID.rsplit("33", maxsplit=1)[0])
    with pytest.raises(Refused, match="no cgroup v2"):
        unified_hierarchy(mounts)
