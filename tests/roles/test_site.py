"""A whole small site from Muster's roles: what serves, what is served, and what a reboot leaves.

All in one file, so that one worker of pytest makes the site, and makes it once.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import subprocess
import urllib.error
import urllib.request
from pathlib import Path

import pytest

from inventory.nodeset import fold
from provision.ansible import PlayEventKind
from tests.roles import oci, stubs
from tests.roles.conftest import NET, PLAYBOOKS, ROOT
from tests.roles.keyboard import Operator, operator_of

pytestmark = [pytest.mark.lab, pytest.mark.slow, pytest.mark.timeout(900)]

SERVING = (
    "docker-registry", "nginx", "muster-mirror", "muster-mirror-nginx", "prometheus",
    "prometheus-alertmanager", "prometheus-ipmi-exporter", "prometheus-node-exporter", "containerd",
)  # fmt: skip
GPU_UNITS = (
    "nvidia-persistenced", "nvidia-fabricmanager", "nvidia-dcgm", "dcgm-exporter", "kraken-agent",
    "containerd", "prometheus-node-exporter",
)  # fmt: skip
KRAKEN_UNITS = ("kraken-origin", "kraken-build-index", "kraken-tracker", "kraken-proxy")


def fetch(url: str) -> tuple[int, bytes]:
    try:
        with urllib.request.urlopen(url, timeout=10) as answer:
            return answer.status, answer.read()
    except urllib.error.HTTPError as error:
        return error.code, error.read()


@pytest.mark.parametrize("name", ["infra", "gpu", "kraken", "puller"])
def test_a_second_run_and_a_check_change_nothing(site, name):
    node = getattr(site, name)
    again = site.again(node)
    assert (again.ok, again.changed) == (True, 0), again
    checked = site.again(node, check=True)
    assert (checked.ok, checked.changed) == (True, 0), checked


def test_a_node_that_runs_its_roles_itself_finds_nothing_to_change_and_is_rebooted_when_a_role_asks(site):
    """With stub drivers and fake tools, as on every node of this site."""
    for check in (False, True):
        result = site.on_gpu_itself(check=check)
        assert (result.ok, result.changed) == (True, 0), result
    boot = site.gpu.read("cat /proc/sys/kernel/random/boot_id")
    site.gpu.read("sudo mkdir -p /run/muster-reboot && sudo touch /run/muster-reboot/a-test")
    result = site.on_gpu_itself()
    assert (result.ok, result.changed) == (True, 1), result
    assert site.gpu.read("cat /proc/sys/kernel/random/boot_id") != boot
    assert site.gpu.run("ls /run/muster-reboot").stdout == ""


def test_what_serves_comes_back_after_kill_and_reboot(site):
    site.infra.kill_and_wait(*SERVING)
    site.infra.reboot()
    assert site.infra.read(f"systemctl is-active {' '.join(SERVING)}").split() == ["active"] * len(SERVING)
    host = site.infra.spec.address
    assert fetch(f"http://{host}:5000/v2/")[0] == 200
    assert fetch(f"http://{host}:8081/healthz")[0] == 200
    assert fetch(f"http://{host}:9100/metrics")[0] == 200
    assert b"vendor" in fetch(f"http://{host}:8080/")[1]


def test_a_file_that_is_put_into_the_mirror_is_the_services_own(site):
    token, data = "of-a-test", os.urandom(3 << 20)
    sha256, url = hashlib.sha256(data).hexdigest(), f"http://{site.infra.spec.address}:8081"
    known = f"tests sha256:{hashlib.sha256(token.encode()).hexdigest()}"
    site.infra.read(
        f"echo '{known}' | sudo tee -a /etc/muster/mirror-tokens && sudo systemctl restart muster-mirror"
        " && for _ in $(seq 80); do python3 -c 'import urllib.request as u;"
        ' u.urlopen("http://127.0.0.1:8081/healthz")\' 2> /dev/null && exit 0; sleep 0.25; done; exit 1'
    )
    headers = {"X-Sha256": sha256, "Authorization": f"Bearer {token}"}
    put = urllib.request.Request(f"{url}/api/files/f", data, headers, method="PUT")
    with urllib.request.urlopen(put, timeout=30) as answer:
        assert answer.status == 201
    assert fetch(f"{url}/files/f") == (200, data)
    assert site.infra.read(f"stat -c '%U %a %h' /srv/mirror/sha256/{sha256}") == "muster-mirror 444 1"
    # Who speaks to the service is believed, so that nobody else on this host gets there.
    assert site.infra.run("sudo -u www-data ls /run/muster-mirror/http.sock").returncode != 0


def test_rules_and_configuration_pass_promtool_and_rules_fire_when_they_should(site):
    cases = Path(__file__).with_name("rules-test.yml").read_bytes()
    site.infra.put(cases, "/tmp/rules-test.yml")
    site.infra.read("promtool check config /etc/prometheus/prometheus.yml")
    site.infra.read("promtool test rules /tmp/rules-test.yml")
    dashboard = json.loads(site.infra.read("cat /var/lib/muster/dashboards/muster-fleet.json"))
    assert all(panel["targets"][0]["expr"] for panel in dashboard["panels"])


def test_the_journal_of_a_node_arrives(site):
    site.gpu.read("logger --tag muster-test arrived")
    site.infra.read(
        "for _ in $(seq 80); do sudo journalctl --directory /var/log/journal/remote -t muster-test"
        " 2> /dev/null | grep -q arrived && exit 0; sleep 0.25; done; exit 1"
    )


def test_stub_drivers_come_from_the_snapshot_in_order_with_one_reboot_and_are_held(site):
    done = [one.task for one in site.seen[site.gpu.spec.name] if one.kind is PlayEventKind.CHANGED]
    assert done.count("Reboot") == 1
    drivers = [task for task in done if task in {"Install the drivers", "Install the driver", "Reboot"}]
    assert drivers == ["Install the drivers", "Install the driver", "Reboot"]
    held = set(site.gpu.read("apt-mark showhold").split())
    assert {"nvidia-kernel-open-dkms", "nvidia-fabricmanager-570", "doca-ofed", "containerd"} <= held
    assert site.gpu.read("cat /sys/module/nvidia/version /sys/module/mlx5_core/version").split() == [
        stubs.DRIVER,
        "25.01",
    ]
    policy = site.gpu.read("apt-cache policy nvidia-kernel-open-dkms")
    assert "8080/vendor" in policy
    assert "*** 570.86.15-1 1001" in policy


def test_stub_driver_services_and_the_stand_in_of_kraken_come_back_after_kill_and_reboot(site):
    site.gpu.kill_and_wait(*GPU_UNITS)
    site.kraken.kill_and_wait(*KRAKEN_UNITS)
    for node in (site.gpu, site.kraken):
        node.reboot()
    assert site.gpu.read(f"systemctl is-active {' '.join(GPU_UNITS)}").split() == ["active"] * len(GPU_UNITS)
    assert site.kraken.read(f"systemctl is-active {' '.join(KRAKEN_UNITS)}").split() == ["active"] * 4


def test_a_stand_in_of_kraken_gets_its_own_tmp_an_empty_conf_d_and_is_killed_as_a_whole(site):
    node = site.kraken
    node.read("echo 'server { listen 15002; }' | sudo tee /etc/nginx/conf.d/strange.conf")
    children = "cat /sys/fs/cgroup/system.slice/kraken-origin.service/cgroup.procs"
    before = set(node.read(children).split())
    assert len(before) > 1
    node.kill_and_wait("kraken-origin")
    node.read(
        "for _ in $(seq 80); do python3 -c 'import urllib.request as u; u.urlopen(\"http://127.0.0.1:15002/health\")'"
        " 2> /dev/null && exit 0; sleep 0.25; done; exit 1"
    )
    assert before.isdisjoint(node.read(children).split())
    assert node.run("ls /tmp/nginx").returncode != 0


def test_parts_that_are_left_out_are_named_with_the_reason(fresh):
    node = fresh(2)
    result, _ = node.play(PLAYBOOKS / "site.yml", muster_hardware=[], base_packages=["chrony", "procps"])
    assert result.ok, result
    log = (node.folder / "ansible.log").read_text()
    assert "nvidia_driver: no gpu in muster_hardware" in log
    assert "kraken_agent: not in muster_services" in log


@pytest.fixture(scope="module")
def digest(site) -> str:
    """The digest of an image that was pushed into the registry."""
    return oci.push(site.infra, "127.0.0.1:5000", "lab/site:1")


def test_an_image_is_pulled_on_four_nodes_with_the_digest_that_was_pushed(site, digest):
    for node in site.nodes:
        assert oci.pulled(node, f"docker.io/lab/site@{digest}") == digest
    assert oci.pulled(site.puller, "registry.example/lab/site:1") == digest


def test_what_the_registry_lacks_is_refused_and_not_fetched_from_outside(site, digest):
    absent = "docker.io/library/absent:1"
    refused = site.puller.run(f"{oci.PULL} {absent}")
    assert refused.returncode != 0
    assert "not found" in refused.stderr
    assert "registry-1.docker.io" not in refused.stderr

    variables = site.variables[site.puller.spec.name]
    opened = site.puller.roles("registry_client", **variables | {"registry_client_wan_fallback": True})
    assert opened.ok, opened
    assert "registry-1.docker.io" in site.puller.run(f"timeout 20 {oci.PULL} {absent}").stderr
    closed = site.puller.roles("registry_client", **variables)
    assert (closed.ok, closed.changed) == (True, 1)
    assert "registry-1.docker.io" not in site.puller.run(f"{oci.PULL} {absent}").stderr


def test_only_named_networks_may_push(site):
    url = f"http://{site.infra.spec.address}:5000/v2/lab/other/blobs/uploads/"
    with pytest.raises(urllib.error.HTTPError) as refused:
        urllib.request.urlopen(urllib.request.Request(url, method="POST"), timeout=10)
    refused.value.close()
    assert refused.value.code == 403
    allowed = url.replace(site.infra.spec.address, "127.0.0.1")
    script = f'import urllib.request as u; print(u.urlopen(u.Request("{allowed}", method="POST")).status)'
    assert site.infra.read(f"python3 -c '{script}'") == "202"


@pytest.fixture(scope="module")
def operator(site, lab, tmp_path_factory) -> Operator:
    """One who types commands here, at a site whose registry is this one's."""
    return operator_of(lab, tmp_path_factory.mktemp("operator"), f"http://{site.infra.spec.address}:5000")


@pytest.fixture(scope="module")
def archive(tmp_path_factory) -> oci.Archive:
    """A container image in a file here."""
    return oci.archive(tmp_path_factory.mktemp("archive") / "image.tar")


@pytest.fixture(scope="module")
def typed(site, operator, archive) -> dict[str, tuple[int, str, str]]:
    """How pushes ended: before this network might push, and then of two forms of one image."""
    path = archive.path
    saved = path.with_name("saved.tar")
    subprocess.run(
        ["skopeo", "copy", "--quiet", f"oci-archive:{path}", f"docker-archive:{saved}:saved:1"], check=True
    )
    variables = site.variables[site.infra.spec.name]
    writers = [*variables["image_registry_writers"], NET.gateway]
    push = ("images.push", "--source", f"oci-archive:{path}", "--image", "lab/train:1")
    ended = {"refused": operator.type(*push)}
    assert site.infra.roles("image_registry", **variables | {"image_registry_writers": writers}).ok
    try:
        ended["oci"] = operator.type(*push)
        ended["docker"] = operator.type(
            "images.push", "--source", f"docker-archive:{saved}", "--image", "lab/saved:1"
        )
    finally:
        assert site.infra.roles("image_registry", **variables).ok
    return ended


def test_an_image_is_pushed_from_a_named_network_only_and_its_digest_is_printed(typed, archive):
    status, out, err = typed["refused"]
    assert (status, out) == (2, "")
    assert err.startswith(f"error: registry: oci-archive:{archive.path} was not pushed\n  why: ")
    assert "403" in err
    assert err.endswith("next: docs/runbooks/image-push.md\n")
    assert typed["oci"] == (0, f"lab/train@{archive.digest}\n", "")
    status, out, err = typed["docker"]
    assert (status, err) == (0, "")
    assert re.fullmatch(r"lab/saved@sha256:[0-9a-f]{64}\n", out)


@pytest.mark.parametrize("form", ["oci", "docker"])
def test_an_image_is_preheated_on_four_nodes_and_every_byte_compared(site, operator, typed, archive, form):
    image = typed[form][1].strip()
    digest = image.partition("@")[2]
    names = fold(node.spec.name for node in site.nodes)
    status, out, err = operator.type("images.status", "--image", image, "--nodes", names)
    assert (status, err) == (0, "")
    assert out == f"registry  {digest}  3.0 MB\n{names}  not there\n"
    status, out, err = operator.type("images.preheat", "--image", image, "--nodes", names, "--jobs", "2")
    assert (status, out, err) == (0, f"registry  {digest}  3.0 MB\n{names}  same digest\n", "")
    for node in site.nodes:  # unpacked where pods will look, not where ctr would by itself
        assert archive.diff in node.read("sudo ctr -n k8s.io snapshots --snapshotter native ls")
    status, out, err = operator.type(
        "images.status", "--image", image, "--nodes", names, "--sample", "4", "--output", "json"
    )
    assert (status, err) == (0, "")
    rows = json.loads(out)["nodes"]
    assert {row["node"] for row in rows} == {node.spec.name for node in site.nodes}
    assert {(row["digest"], row["compared"], row["why"]) for row in rows} == {(digest, "equal", "")}


def test_an_output_that_there_is_not_is_refused_before_a_node_pulls(site, operator, typed):
    words = ("--image", "lab/saved:1", "--nodes", site.kraken.spec.name)
    status, out, err = operator.type("images.preheat", *words, "--output", "xml")
    assert (status, out) == (5, "")
    assert err.startswith("error: --output: xml is no output form\n")
    status, out, _ = operator.type("images.status", *words)
    assert (status, out.splitlines()[1]) == (0, f"{site.kraken.spec.name}  not there")


@pytest.mark.parametrize("task", ["images.status", "images.preheat"])
def test_an_image_that_the_registry_lacks_is_said_in_three_lines(site, operator, task):
    ended = operator.type(task, "--image", "lab/absent:1", "--nodes", site.puller.spec.name)
    assert ended == (
        5,
        "",
        "error: registry: it has no lab/absent:1\n"
        "  why: no such name, tag or digest was pushed\n"
        "  next: invoke images.push --help\n",
    )


def test_a_node_without_containerd_is_named_and_the_others_are_reported(site, operator, typed, archive):
    names = [node.spec.name for node in site.nodes]
    stopped = site.puller.spec.name
    others = fold(name for name in names if name != stopped)
    site.puller.read("sudo systemctl stop containerd")
    try:
        words = ("--image", "lab/train:1", "--nodes", ",".join(names))
        for task in ("images.preheat", "images.status"):
            status, out, err = operator.type(task, *words)
            assert status == 2
            assert out.splitlines() == [
                f"registry  {archive.digest}  3.0 MB", f"{stopped}  failed", f"{others}  same digest",
            ]  # fmt: skip
            first, following = err.splitlines()
            assert first.startswith(f"  {stopped}  ")
            assert "/run/containerd/containerd.sock" in first
            assert following == "    next: docs/runbooks/image-pull.md"
    finally:
        site.puller.read("sudo systemctl start containerd")


def test_a_node_whose_stored_bytes_changed_is_named_and_the_runbook_mends_it(site, operator, typed, archive):
    names = fold(node.spec.name for node in site.nodes)
    words = ("--image", "lab/train:1", "--nodes", names)
    assert operator.type("images.preheat", *words)[0] == 0
    broken, layer = site.puller, archive.layer.removeprefix("sha256:")
    runbook = (ROOT / "docs" / "runbooks" / "image-pull.md").read_text(encoding="utf-8")
    (mend,) = [line for line in runbook.splitlines() if "images rm" in line]
    try:
        stored = "/var/lib/containerd/io.containerd.content.v1.content/blobs/sha256"
        broken.read(f"printf rotten!! | sudo dd of={stored}/{layer} bs=1 seek=1000 conv=notrunc status=none")
        status, out, err = operator.type("images.status", *words, "--sample", "4")
        assert status == 2
        assert out.splitlines()[1:] == [
            f"{names}  same digest", "3 of 4 sampled nodes have the registry's bytes",
        ]  # fmt: skip
        assert f"  {broken.spec.name}  lab/train:1: blob sha256:{layer} has other bytes: " in err
        status, out, _ = operator.type("images.status", *words, "--sample", "4", "--output", "json")
        failed = [row for row in json.loads(out)["nodes"] if row["compared"] == "failed"]
        assert (status, [row["node"] for row in failed]) == (2, [broken.spec.name])
        assert "has other bytes" in failed[0]["why"]
    finally:
        broken.read(mend.replace("DIGEST", archive.digest))
    status, out, err = operator.type("images.status", *words, "--sample", "4")
    assert (status, out.splitlines()[2], err) == (0, "4 of 4 sampled nodes have the registry's bytes", "")
