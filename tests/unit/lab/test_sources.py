"""Nodes are made from this machine's own package sources, whichever form they are written in."""

from __future__ import annotations

from pathlib import Path

import pytest

from lab.errors import NoService
from lab.nodes.rootfs import recipe_key
from lab.nodes.sources import Archive, Source, machine_archive, parse_sources

STANZAS = """\
Types: deb deb-src
# a comment inside
URIs: http://archive.example/debian https://second.example/debian
Suites: trixie trixie-updates
Components: main
 contrib
Signed-By: /usr/share/keyrings/archive.gpg

Enabled: no
Types: deb
URIs: http://off.example/debian
Suites: trixie
Components: main

Types: deb
URIs: mirror+file:/etc/apt/mirrors.txt
Suites: trixie
Components: main
"""
LINES = """\
# deb http://commented.example/debian trixie main
deb [arch=amd64 signed-by=/etc/apt/one.gpg] http://archive.example:8080/debian trixie main contrib # x
deb-src http://archive.example/debian trixie main
deb https://tools.example/apt tools-trixie main
"""


def test_stanzas_give_one_source_for_each_uri_and_suite(tmp_path: Path) -> None:
    path = tmp_path / "debian.sources"
    path.write_text(STANZAS)
    found = parse_sources(path)
    assert [(one.uri, one.suite) for one in found] == [
        ("http://archive.example/debian", "trixie"),
        ("http://archive.example/debian", "trixie-updates"),
        ("https://second.example/debian", "trixie"),
        ("https://second.example/debian", "trixie-updates"),
    ]
    assert found[0].components == ("main", "contrib")
    assert found[0].signed_by == "/usr/share/keyrings/archive.gpg"


def test_one_line_sources_keep_their_port_and_keyring(tmp_path: Path) -> None:
    path = tmp_path / "sources.list"
    path.write_text(LINES)
    first, second = parse_sources(path)
    assert first.authority == ("archive.example", 8080)
    assert first.line == (
        "deb [signed-by=/etc/apt/one.gpg] http://archive.example:8080/debian trixie main contrib"
    )
    assert second.authority == ("tools.example", 443)


def test_a_key_written_into_the_stanza_is_not_taken_for_a_file(tmp_path: Path) -> None:
    path = tmp_path / "inline.sources"
    path.write_text(
        "Types: deb\nURIs: http://a.example/\nSuites: s\nComponents: main\n"
        "Signed-By:\n -----BEGIN PGP PUBLIC KEY BLOCK-----\n .\n abc\n"
    )
    assert parse_sources(path)[0].signed_by is None


def test_only_sources_of_this_machines_release_count(tmp_path: Path) -> None:
    (tmp_path / "sources.list.d").mkdir()
    (tmp_path / "sources.list").write_text(LINES)
    release = tmp_path / "os-release"
    release.write_text("VERSION_CODENAME=trixie\n")
    archive = machine_archive(tmp_path, release)
    assert [source.uri for source in archive.sources] == ["http://archive.example:8080/debian"]
    assert archive.authorities == {("archive.example", 8080)}


def test_a_machine_without_sources_is_told_so(tmp_path: Path) -> None:
    release = tmp_path / "os-release"
    release.write_text("VERSION_CODENAME=trixie\n")
    with pytest.raises(NoService, match="no package source for trixie"):
        machine_archive(tmp_path, release)


def test_the_cache_key_follows_the_sources() -> None:
    source = Source("http://a.example/debian", "trixie", ("main",), None)
    other = Source("http://b.example/debian", "trixie", ("main",), None)
    keys = {recipe_key(Archive("trixie", (one,), (), None)) for one in (source, other)}
    assert len(keys) == 2
