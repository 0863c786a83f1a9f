"""A client's certificate opens the mirror for writing, as nginx checked it; nothing else stands for one."""

from __future__ import annotations

import datetime
import ssl
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from inventory.secrets import Secret
from provision.mirror import config, serve
from provision.mirror.client import Credentials, Mirror
from provision.mirror.errors import MirrorAuthRejected
from tests.contract.mirror.bench import TOKEN, Served, free_port, run_nginx, write_config

Key = ec.EllipticCurvePrivateKey
_DAY = datetime.timedelta(days=1)


@dataclass(frozen=True)
class Authority:
    """One that signs certificates, which are written to `folder`."""

    folder: Path
    name: str
    key: Key

    @classmethod
    def new(cls, folder: Path, name: str) -> Authority:
        made = cls(folder, name, ec.generate_private_key(ec.SECP256R1()))
        (folder / f"{name}.pem").write_bytes(made._signed(name, made.key, ca=True))
        return made

    @property
    def path(self) -> Path:
        return self.folder / f"{self.name}.pem"

    def issue(self, name: str) -> tuple[Path, Path]:
        """Return the files of a new certificate and its key."""
        key = ec.generate_private_key(ec.SECP256R1())
        certificate, secret = self.folder / f"{self.name}-{name}.pem", self.folder / f"{self.name}-{name}.key"
        certificate.write_bytes(self._signed(name, key, ca=False))
        secret.write_bytes(
            key.private_bytes(
                serialization.Encoding.PEM,
                serialization.PrivateFormat.PKCS8,
                serialization.NoEncryption(),
            )
        )
        return certificate, secret

    def _signed(self, name: str, key: Key, *, ca: bool) -> bytes:
        now = datetime.datetime.now(datetime.UTC)
        made = (
            x509.CertificateBuilder()
            .subject_name(x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)]))
            .issuer_name(x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, self.name)]))
            .public_key(key.public_key())
            .serial_number(x509.random_serial_number())
            .not_valid_before(now - _DAY)
            .not_valid_after(now + _DAY)
            .add_extension(x509.BasicConstraints(ca=ca, path_length=None), critical=True)
            .add_extension(x509.SubjectAlternativeName([x509.DNSName("localhost")]), critical=False)
            .sign(self.key, hashes.SHA256())
        )
        return made.public_bytes(serialization.Encoding.PEM)


@pytest.fixture
def authority(tmp_path: Path) -> Authority:
    return Authority.new(tmp_path, "site")


@pytest.fixture
def mirror(tmp_path: Path, authority: Authority) -> Iterator[Served]:
    """A mirror over TLS that asks for certificates of the site's authority."""
    root, port = tmp_path / "root", free_port()
    root.mkdir()
    write_config(tmp_path, root, "reserve_bytes: 0\n")
    certificate, key = authority.issue("localhost")
    front = serve.Front(
        (f"127.0.0.1:{port}",),
        access_log=f"{tmp_path}/reads.log",
        certificate=str(certificate),
        certificate_key=str(key),
        client_ca=str(authority.path),
    )
    part = serve.nginx(config.load(tmp_path / "mirror.yaml"), front)
    tls = ssl.create_default_context(cafile=str(authority.path))
    served = Served(tmp_path, root, f"https://localhost:{port}", tls)
    with run_nginx(tmp_path, port, part):
        try:
            served.start()
            yield served
        finally:
            served.close()


def client(
    mirror: Served, authority: Authority, *, shown: tuple[Path, Path] | None, token: str = ""
) -> Mirror:
    """A client that trusts the site, and shows a certificate or none."""
    tls = ssl.create_default_context(cafile=str(authority.path))
    if shown:
        tls.load_cert_chain(*shown)
    return Mirror(mirror.url, Credentials(Secret(token) if token else None, tls))


async def test_the_name_in_a_certificate_is_who_wrote(mirror, authority, tmp_path):
    file = tmp_path / "driver.run"
    file.write_bytes(b"driver")
    async with client(mirror, authority, shown=authority.issue("ana")) as one:
        await one.put(file, "driver.run")
        (kept,) = await one.files()
    assert kept.by == "cn:ana"


@pytest.mark.parametrize("who", ["nobody", "a stranger", "a wrong token"])
async def test_whoever_shows_no_certificate_of_the_site_reads_and_does_not_write(
    mirror, authority, tmp_path, who
):
    file = tmp_path / "driver.run"
    file.write_bytes(b"driver")
    stranger = Authority.new(tmp_path, "elsewhere")
    shown = {
        "nobody": None, "a stranger": stranger.issue("ana"), "a wrong token": authority.issue("ana"),
    }[who]  # fmt: skip
    token = "not-" + TOKEN if who == "a wrong token" else ""
    async with client(mirror, authority, shown=shown, token=token) as one:
        with pytest.raises(MirrorAuthRejected):
            await one.put(file, "driver.run")
    async with client(mirror, authority, shown=None) as reader:
        assert list(await reader.files()) == []


async def test_a_client_does_not_say_itself_who_it_is(mirror, authority, tmp_path):
    async with client(mirror, authority, shown=None) as one:
        headers = {"X-Client-Verify": "SUCCESS", "X-Client-Name": "CN=ana", "X-Sha256": "0" * 64}
        async with one._open.put(
            f"{mirror.url}/api/files/f", data=b"x", headers=headers, raise_for_status=False
        ) as answer:
            assert answer.status == 401
