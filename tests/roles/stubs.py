"""Stub packages of drivers that a lab node cannot run, in an apt repository of their own, and fake tools.

A stub's "module" is loaded at the next boot, by a unit that lays a folder of its own over /sys/module:
so a role sees a new driver built, then a reboot, then the driver that runs, as on hardware.
"""

from __future__ import annotations

import functools
import gzip
import hashlib
import http.server
import subprocess
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

DRIVER, BRANCH = "570.86.15", "570"
DCGM, TOOLKIT, DOCA, EXPORTER = "4.2.3", "1.17.8", "2.10.0", "4.2.0"

_PROGRAM = "#!/bin/sh\ntrap 'exit 0' TERM\nwhile :; do sleep 1 & wait $!; done\n"
_LOAD = """#!/bin/sh
mountpoint -q /sys/module || mount -t tmpfs modules /sys/module
for about in /usr/lib/stub-modules/*; do
  mkdir -p "/sys/module/${about##*/}" && cat "$about" > "/sys/module/${about##*/}/version"
done
"""
_LOAD_UNIT = """[Unit]
DefaultDependencies=no
Before=sysinit.target
[Service]
Type=oneshot
RemainAfterExit=yes
ExecStart=/usr/lib/stub-load
[Install]
WantedBy=sysinit.target
"""


def _unit(program: str) -> str:
    return f"[Service]\nExecStart={program}\n[Install]\nWantedBy=multi-user.target\n"


@dataclass(frozen=True)
class Stub:
    """One package: its files with their text; what begins with #! may be run."""

    name: str
    version: str
    files: Mapping[str, str] = field(default_factory=dict)
    postinst: str = ""


def _module(name: str, version: str) -> dict[str, str]:
    return {
        f"usr/lib/stub-modules/{name}": f"{version}\n",
        f"lib/systemd/system/stub-load-{name}.service": _LOAD_UNIT.replace("stub-load", f"stub-load-{name}"),
        f"usr/lib/stub-load-{name}": _LOAD,
    }


def _load_at_boot(name: str) -> str:
    return f"#!/bin/sh\nset -e\nsystemctl --quiet enable stub-load-{name}.service\n"


def driver(version: str = DRIVER) -> tuple[Stub, ...]:
    """Return the driver's own packages."""
    debian = f"{version}-1"
    return (
        Stub("nvidia-kernel-open-dkms", debian, _module("nvidia", version), _load_at_boot("nvidia")),
        Stub("nvidia-driver-cuda", debian),
        Stub(
            "nvidia-persistenced", debian,
            {"usr/bin/nvidia-persistenced": _PROGRAM,
             "lib/systemd/system/nvidia-persistenced.service": _unit("/usr/bin/nvidia-persistenced")},
        ),
        Stub(
            f"nvidia-fabricmanager-{version.split('.')[0]}", debian,
            {"usr/bin/nv-fabricmanager": _PROGRAM,
             "lib/systemd/system/nvidia-fabricmanager.service": _unit("/usr/bin/nv-fabricmanager")},
        ),
    )  # fmt: skip


STUBS = (
    *driver(),
    Stub(
        "doca-ofed", f"{DOCA}-0.1",
        _module("mlx5_core", "25.01") | {"usr/bin/ofed_info": "#!/bin/sh\necho OFED-stub-25.01:\n"},
        _load_at_boot("mlx5_core"),
    ),
    Stub(
        "datacenter-gpu-manager-4-core", f"1:{DCGM}-1",
        {"usr/bin/nv-hostengine": _PROGRAM,
         "lib/systemd/system/nvidia-dcgm.service": _unit("/usr/bin/nv-hostengine -n")},
    ),
    Stub("datacenter-gpu-manager-4-cuda12", f"1:{DCGM}-1"),
    Stub(
        "dcgm-exporter", EXPORTER,
        {"usr/bin/dcgm-exporter": _PROGRAM,
         "lib/systemd/system/dcgm-exporter.service": _unit("/usr/bin/dcgm-exporter")},
    ),
    Stub("nvidia-container-toolkit", f"{TOOLKIT}-1", {"usr/bin/nvidia-ctk": "#!/bin/sh\nexit 0\n"}),
    Stub("nvidia-container-toolkit-base", f"{TOOLKIT}-1"),
    Stub("libnvidia-container-tools", f"{TOOLKIT}-1"),
    Stub("libnvidia-container1", f"{TOOLKIT}-1"),
)  # fmt: skip

# What roles ask about hardware, as a node with two GPUs, a switch and a network card would answer.
FAKE_TOOLS = r"""
set -eu
fake() { printf '#!/bin/sh\n%s\n' "$2" > "/usr/local/sbin/$1"; chmod 755 "/usr/local/sbin/$1"; }
fake lspci 'cat /opt/lspci'
cat > /opt/lspci <<'END'
0000:18:00.0 3D controller [0302]: NVIDIA Corporation GH100 [H100 SXM5 80GB] [10de:2330] (rev a1)
0000:2a:00.0 3D controller [0302]: NVIDIA Corporation GH100 [H100 SXM5 80GB] [10de:2330] (rev a1)
0000:07:00.0 Bridge [0680]: NVIDIA Corporation GH100 [NVSwitch] [10de:22a3] (rev a1)
0000:3a:00.0 Infiniband controller [0207]: Mellanox Technologies MT2910 Family [ConnectX-7] [15b3:1021]
END
fake mokutil 'cat /opt/secure-boot 2> /dev/null || echo SecureBoot disabled'
fake modinfo 'for last in "$@"; do :; done; cat "/usr/lib/stub-modules/$last" 2> /dev/null'
kernel=$(uname -r)
mkdir -p "/lib/modules/$kernel/build" /boot
: > "/boot/vmlinuz-$kernel"
rm -f /etc/systemd/system/nvidia-persistenced.service /etc/systemd/system/nvidia-fabricmanager.service
id nvidia-persistenced > /dev/null 2>&1 || useradd --system --no-create-home nvidia-persistenced
systemctl daemon-reload
"""


class Repository:
    """A flat apt repository in a folder; packages may be added and broken while it is served."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._about: dict[str, str] = {}

    def add(self, *stubs: Stub) -> None:
        """Build packages and write the index anew."""
        for stub in stubs:
            file = self._build(stub)
            data = file.read_bytes()
            self._about[file.name] = (
                f"{_control(stub)}Filename: {file.name}\nSize: {len(data)}\n"
                f"SHA256: {hashlib.sha256(data).hexdigest()}\n"
            )
        self._write_index()

    def break_package(self, name: str) -> Path:
        """Change a byte of a package behind its index's back; return its file."""
        (file,) = self.folder.glob(f"{name}_*.deb")
        data = bytearray(file.read_bytes())
        data[-1] ^= 1
        file.write_bytes(bytes(data))
        return file

    def _build(self, stub: Stub) -> Path:
        tree = self.folder / "tree" / f"{stub.name}-{stub.version.replace(':', '.')}"
        for name, text in {"DEBIAN/control": _control(stub), **stub.files}.items():
            path = tree / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
            path.chmod(0o755 if text.startswith("#!") else 0o644)
        if stub.postinst:
            path = tree / "DEBIAN/postinst"
            path.write_text(stub.postinst)
            path.chmod(0o755)
        target = self.folder / f"{stub.name}_{stub.version.replace(':', '.')}_all.deb"
        subprocess.run(
            ["dpkg-deb", "--root-owner-group", "-Znone", "--build", str(tree), str(target)],
            check=True, capture_output=True,
        )  # fmt: skip
        return target

    def _write_index(self) -> None:
        packages = "\n".join(self._about.values()).encode()
        files = {"Packages": packages, "Packages.gz": gzip.compress(packages, mtime=0)}
        lines = []
        for name, data in files.items():
            (self.folder / name).write_bytes(data)
            lines.append(f" {hashlib.sha256(data).hexdigest()} {len(data)} {name}\n")
        release = f"Suite: stable\nArchitectures: amd64\nComponents: main\nSHA256:\n{''.join(lines)}"
        (self.folder / "Release").write_text(release)


def _control(stub: Stub) -> str:
    about = {
        "Package": stub.name, "Version": stub.version, "Architecture": "all", "Section": "admin",
        "Priority": "optional", "Maintainer": "Lab <lab@example.org>", "Description": f"stub of {stub.name}",
    }  # fmt: skip
    return "".join(f"{name}: {value}\n" for name, value in about.items())


@contextmanager
def served(folder: Path, address: str) -> Iterator[str]:
    """Serve a folder over HTTP, and give its URL."""
    handler = functools.partial(_Quiet, directory=str(folder))
    with http.server.ThreadingHTTPServer((address, 0), handler) as server:
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        try:
            yield f"http://{address}:{server.server_address[1]}"
        finally:
            server.shutdown()
            thread.join()


class _Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *_args: object) -> None:
        """Keep the test's output free of requests."""
