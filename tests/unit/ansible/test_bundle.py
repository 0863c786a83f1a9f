"""A bundle holds what it says, is the same to the byte, and runs where nothing else is installed."""

from __future__ import annotations

import subprocess
import sys
import tarfile

import pytest

from provision.ansible_bundle import CONTENTS, Contents, main, pack, required

SMALL = Contents(("provision/__init__.py", "provision/mirror"), ("jinja2",))


def test_what_a_distribution_requires_comes_with_it():
    assert required(["Jinja2"]) == ("jinja2", "markupsafe")
    assert {"ansible-core", "packaging", "pyyaml", "cryptography"} <= set(required(["ansible-core"]))
    assert "pytest" not in required(CONTENTS["worker"].distributions)


def test_two_bundles_are_equal_and_one_runs_by_itself(tmp_path):
    first, second = tmp_path / "a.tar", tmp_path / "b.tar"
    assert pack(SMALL, first) == pack(SMALL, second)
    assert first.read_bytes() == second.read_bytes()
    assert list(tmp_path.glob(".*")) == []
    with tarfile.open(first) as tar:
        assert {"provision/mirror/serve.py", "markupsafe/__init__.py"} <= set(tar.getnames())
        tar.extractall(tmp_path / "out", filter="data")
    script = "import jinja2, provision.mirror.refusals; print(jinja2.__file__)"
    done = subprocess.run(
        [sys.executable, "-I", "-S", "-c", f"import sys; sys.path.insert(0, 'out'); {script}"],
        cwd=tmp_path, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip().endswith("out/jinja2/__init__.py")


def test_the_command_prints_the_checksum_that_roles_ask_for(tmp_path, capsys, monkeypatch):
    monkeypatch.setitem(CONTENTS, "mirror", SMALL)
    assert main(["--for", "mirror", "--out", str(tmp_path / "mirror.tar")]) == 0
    digest, path, python = capsys.readouterr().out.split()
    assert len(digest) == 64
    assert path == str(tmp_path / "mirror.tar")
    assert python == f"python{sys.version_info.major}.{sys.version_info.minor}"
    with pytest.raises(SystemExit):
        main(["--for", "nothing", "--out", "x"])


def test_the_mirror_starts_from_its_bundle_alone(tmp_path):
    pack(CONTENTS["mirror"], tmp_path / "mirror.tar")
    with tarfile.open(tmp_path / "mirror.tar") as tar:
        tar.extractall(tmp_path / "inside", filter="data")
    script = (
        "import runpy, sys; sys.path.insert(0, 'inside');"
        " runpy.run_module('provision.mirror.serve', run_name='__main__')"
    )
    done = subprocess.run(
        [sys.executable, "-I", "-S", "-c", script, "--help"],
        cwd=tmp_path, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert "--config" in done.stdout
