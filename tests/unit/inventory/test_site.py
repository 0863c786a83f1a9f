"""Site files: what they say, and that every mistake is said with its file and line."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from inventory.errors import SiteFileError
from inventory.model import BmcProtocol
from inventory.site import load

SITES = Path(__file__).parents[3] / "inventory" / "sites"

SITE = """\
name: hall
maas: {url: "http://10.0.0.2:5240/MAAS/", key: env:MAAS_KEY}
ssh:
  user: ops
  key: file:keys/ssh
credentials:
  bmc: {username: admin, password: file:keys/bmc}
"""
PROFILES = """\
profiles:
  small:
    vendor: Acme
    deadlines: {deployed: 600}
    limits:
      gpu.count: 8
      link.speeds: [400, 400]
      firmware: "1.10"
"""
RACKS = """\
racks:
  r1:
    profile: small
    bmc: {credential: bmc}
    nodes:
      "r1-n[01-03]":
        bmc: "10.0.1.{n}"
        serial: "AC{n:04}"
        mac: "52:54:00:AA:00:{n:02x}"
        address: "10.1.1.{n+100}"
      r1-n09:
        bmc: {host: 10.0.1.9, protocol: redfish}
"""


@pytest.fixture(params=["libyaml", "python"], autouse=True)
def parser(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Both parsers that PyYAML may have: they must say the same of every file."""
    if request.param == "python":
        monkeypatch.delattr(yaml, "CSafeLoader", raising=False)
    elif not hasattr(yaml, "CSafeLoader"):
        pytest.skip("PyYAML was built without libyaml")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A site folder that is right; tests spoil it."""
    for name, text in (("site", SITE), ("profiles", PROFILES), ("racks", RACKS)):
        (tmp_path / f"{name}.yaml").write_text(text)
    return tmp_path


def spoil(folder: Path, file: str, old: str, new: str) -> SiteFileError:
    """Change one text of one file and return the error that reading gives."""
    path = folder / file
    text = path.read_text()
    assert text.count(old) == 1, "the test must change exactly one place"
    path.write_text(text.replace(old, new))
    with pytest.raises(SiteFileError) as caught:
        load(folder)
    assert caught.value.path == path
    return caught.value


def test_reads_nodes_described_by_pattern_and_one_by_one(folder: Path) -> None:
    site = load(folder)
    assert [node.name for node in site.nodes] == ["r1-n01", "r1-n02", "r1-n03", "r1-n09"]
    third, ninth = site.nodes[2], site.nodes[3]
    assert (third.bmc.host, third.serial, third.address) == ("10.0.1.3", "AC0003", "10.1.1.103")
    assert third.macs == ("52:54:00:aa:00:03",)
    assert third.bmc.protocol is BmcProtocol.AUTO
    assert (ninth.bmc.protocol, ninth.bmc.credential) == (BmcProtocol.REDFISH, "bmc")
    assert site.rack_of(ninth).name == "r1"


def test_reads_what_the_site_and_its_profiles_say(folder: Path) -> None:
    site = load(folder)
    assert site.maas.url == "http://10.0.0.2:5240/MAAS"
    assert site.credentials["bmc"].password == "file:keys/bmc"
    profile = site.profiles["small"]
    assert profile.deadlines == {"deployed": 600.0}
    assert profile.limit("gpu.count") == 8
    assert profile.limit("link.speeds") == (400, 400)
    assert profile.limit("firmware") == "1.10"


@pytest.mark.parametrize("name", ["lab", "example"])
def test_the_sites_that_come_with_muster_are_right(name: str) -> None:
    site = load(SITES / name)
    assert site.nodes
    assert site.name == name


@pytest.mark.parametrize("name", ["lab", "example"])
def test_the_sites_that_come_with_muster_hold_no_secret(name: str) -> None:
    site = load(SITES / name)
    references = [site.maas.key, site.ssh.key, *(c.password for c in site.credentials.values())]
    assert all(reference.startswith(("env:", "file:")) for reference in references)


def test_the_lab_is_where_its_emulators_answer() -> None:
    nodes = {node.name: node for node in load(SITES / "lab").nodes}
    assert len(nodes) == 9
    assert (nodes["lab-n08"].bmc.host, nodes["lab-n08"].macs) == ("127.77.1.8", ("52:54:00:77:01:08",))
    assert (nodes["lab-n08"].address, nodes["lab-n08"].serial) == ("10.77.1.8", "LAB-N08")
    assert (nodes["lab-real-n01"].bmc.host, nodes["lab-real-n01"].serial) == ("127.77.2.1", "LAB-R01")


@pytest.mark.parametrize(
    ("file", "old", "new", "line", "words"),
    [
        pytest.param("site.yaml", "  user: ops", "  user: [", 6, "that begins on line 4", id="syntax"),
        pytest.param("site.yaml", "  user: ops", "\tuser: ops", 4, "is not YAML", id="tab"),
        pytest.param("site.yaml", "  user: ops", "  usr: ops", 4, "did you mean user?", id="unknown-key"),
        pytest.param("site.yaml", "  user: ops\n", "", 4, "needs a key user", id="missing-key"),
        pytest.param("site.yaml", "name: hall", "name: [hall]", 1, "must be text, not a list", id="type"),
        pytest.param("site.yaml", "name: hall", "name:", 1, "must be text, not nothing", id="null"),
        pytest.param("site.yaml", "name: hall", "name: a\nname: b", 2, "said twice", id="key-twice"),
        pytest.param("site.yaml", "http://10.0.0.2:5240/MAAS/", "10.0.0.2", 2, "maas.url", id="url"),
        pytest.param("site.yaml", "http://10", "http://u:p@10", 2, "holds a password", id="url-password"),
        pytest.param("site.yaml", "file:keys/ssh", "env:KEY", 5, "ssh.key must be file:PATH", id="key-env"),
        pytest.param(
            "site.yaml", "name: hall", "name: hall\nspare_share: 2", 2, "outside 0 to 0.5", id="range"
        ),
        pytest.param(
            "profiles.yaml", "deployed: 600", "deploy: 600", 4, "did you mean deployed?", id="stage"
        ),
        pytest.param("profiles.yaml", "deployed: 600", "deployed: soon", 4, "must be a number", id="number"),
        pytest.param("profiles.yaml", "deployed: 600", 'deployed: "600"', 4, "must be a number", id="quoted"),
        pytest.param("profiles.yaml", '"1.10"', "1.10", 8, "as a text in quotes", id="version"),
        pytest.param(
            "profiles.yaml", "    vendor: Acme", "    os_image: jammy", 3, "OSYSTEM/SERIES", id="image"
        ),
        pytest.param(
            "racks.yaml", "  profile: small", "  profile: smaall", 3, "did you mean small?", id="profile"
        ),
        pytest.param("racks.yaml", "    profile: small\n", "", 6, "needs a key profile", id="no-profile"),
        pytest.param(
            "racks.yaml", "credential: bmc", "credential: bcm", 4, "did you mean bmc?", id="credential"
        ),
        pytest.param("racks.yaml", "{credential: bmc}", "{}", 7, "no credential", id="no-credential"),
        pytest.param("racks.yaml", "      r1-n09:", "      r1-n02:", 11, "described twice", id="node-twice"),
        pytest.param("racks.yaml", "host: 10.0.1.9", "host: 10.0.1.2", 12, "also r1-n02's", id="bmc-address"),
        pytest.param("racks.yaml", '"AC{n:04}"', "AC1", 8, "also r1-n01's (racks.yaml:8)", id="serial-twice"),
        pytest.param("racks.yaml", ":{n:02x}", ":01", 9, "also r1-n01's", id="mac-twice"),
        pytest.param("racks.yaml", "10.1.1.{n+100}", "10.1.1.7", 10, "also r1-n01's", id="address-twice"),
        pytest.param("racks.yaml", "52:54:00:AA:00:", "52:54:00:AA:", 9, "no MAC address", id="mac"),
        pytest.param(
            "racks.yaml", "52:54:00:AA:00:", "53:54:00:AA:00:", 9, "group address", id="mac-multicast"
        ),
        pytest.param(
            "racks.yaml", "10.1.1.{n+100}", "10.1.1.{n+300}", 10, "neither an address", id="address"
        ),
        pytest.param(
            "racks.yaml", "host: 10.0.1.9", "host: 10.0.1.999", 12, "neither an address", id="bmc-host"
        ),
        pytest.param(
            "racks.yaml", "host: 10.0.1.9", 'host: "10.0.1.{n}"', 12, "no meaning here", id="no-pattern"
        ),
        pytest.param("racks.yaml", "r1-n[01-03]", "r1-n[01-03", 6, "must have one range", id="open-range"),
        pytest.param("racks.yaml", "r1-n[01-03]", "r1-n[03-01]", 6, "not a pattern", id="backward-range"),
        pytest.param("racks.yaml", "r1-n[01-03]", "r1-n[1-9999999]", 6, "more than", id="wide-range"),
        pytest.param("racks.yaml", "r1-n[01-03]", "r[1-2]-n[01-03]", 6, "one range", id="two-ranges"),
        pytest.param("racks.yaml", "      r1-n09:", "      R1_N09:", 11, "lower-case", id="name"),
        pytest.param(
            "racks.yaml", "protocol: redfish", "protocol: redfsh", 12, "did you mean redfish?", id="protocol"
        ),
    ],
)
def test_a_mistake_is_said_with_file_and_line(
    folder: Path, file: str, old: str, new: str, line: int, words: str
) -> None:
    error = spoil(folder, file, old, new)
    assert (error.line, words in error.what) == (line, True), str(error)
    assert str(error).startswith(f"{folder / file}:{line}: ")


def test_a_password_in_place_of_a_reference_is_refused_and_not_repeated(folder: Path) -> None:
    error = spoil(folder, "site.yaml", "file:keys/bmc", "hunter2secret")
    assert error.line == 7
    assert "hunter2secret" not in str(error)


@pytest.mark.parametrize("file", ["site.yaml", "racks.yaml", "profiles.yaml"])
def test_a_file_that_is_missing_is_named(folder: Path, file: str) -> None:
    (folder / file).unlink()
    with pytest.raises(SiteFileError, match=f"{file}: cannot be read: No such file"):
        load(folder)


def test_an_empty_file_and_one_that_is_no_text_are_named(folder: Path) -> None:
    (folder / "racks.yaml").write_text("# nothing\n")
    with pytest.raises(SiteFileError, match=r"racks\.yaml: is empty"):
        load(folder)
    (folder / "racks.yaml").write_bytes(b"racks:\n  r1: \xff\n")
    with pytest.raises(SiteFileError, match=r"racks\.yaml:2: is not UTF-8"):
        load(folder)


def test_a_folder_that_is_none_is_named(tmp_path: Path) -> None:
    with pytest.raises(SiteFileError, match="is not a folder"):
        load(tmp_path / "nowhere")


def test_an_unquoted_number_stays_the_text_it_was(folder: Path) -> None:
    path = folder / "racks.yaml"
    path.write_text(
        path.read_text().replace("{host: 10.0.1.9, protocol: redfish}", "10.0.1.9\n        serial: 0012")
    )
    assert load(folder).nodes[3].serial == "0012"


def test_a_file_nested_beyond_reason_is_refused(folder: Path) -> None:
    (folder / "racks.yaml").write_text("racks: " + "[" * 2000)
    with pytest.raises(SiteFileError, match=r"racks\.yaml"):
        load(folder)


def test_a_racks_pod_is_its_zone_unless_it_is_said_and_slurm_is_asked_only_where_it_runs(
    folder: Path,
) -> None:
    assert (load(folder).racks[0].pod, load(folder).slurm) == ("default", False)
    racks, site = folder / "racks.yaml", folder / "site.yaml"
    racks.write_text(RACKS.replace("  r1:\n", "  r1:\n    zone: hall-a\n"))
    site.write_text(SITE + "slurm: true\n")
    assert (load(folder).racks[0].pod, load(folder).slurm) == ("hall-a", True)
    racks.write_text(RACKS.replace("  r1:\n", "  r1:\n    zone: hall-a\n    pod: su-1\n"))
    assert load(folder).racks[0].pod == "su-1"
    site.write_text(SITE + "slurm: maybe\n")
    with pytest.raises(SiteFileError, match="slurm must be true or false"):
        load(folder)
