"""Certificates that a BMC makes for itself: sound, expired, or asked for by a signing request."""

from __future__ import annotations

import datetime
import hashlib
import ipaddress
import ssl
import tempfile
from dataclasses import dataclass, field
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

VALID = datetime.timedelta(days=3650)
EXPIRED_SINCE = datetime.timedelta(days=30)


@dataclass(frozen=True, slots=True)
class Identity:
    """A certificate and its key, both PEM."""

    certificate: str
    key: str = field(repr=False)

    @property
    def fingerprint(self) -> str:
        """SHA-256 over the certificate's DER form, as hex pairs."""
        digest = hashlib.sha256(ssl.PEM_cert_to_DER_cert(self.certificate)).hexdigest().upper()
        return ":".join(digest[start : start + 2] for start in range(0, len(digest), 2))


def make_identity(name: str, host: str, now: datetime.datetime, *, expired: bool = False) -> Identity:
    """Make a self-signed certificate for a BMC."""
    key = ec.generate_private_key(ec.SECP256R1())
    return Identity(_sign(key, name, host, now, expired=expired), _key_text(key))


def expired_twin(identity: Identity, name: str, host: str, now: datetime.datetime) -> Identity:
    """Make a certificate for the same key whose time is over."""
    key = serialization.load_pem_private_key(identity.key.encode(), None)
    if not isinstance(key, ec.EllipticCurvePrivateKey):
        raise TypeError("the key of a lab BMC is elliptic")
    return Identity(_sign(key, name, host, now, expired=True), identity.key)


def signing_request(name: str, host: str) -> tuple[str, str]:
    """Return a certificate signing request and its new key, both PEM."""
    key = ec.generate_private_key(ec.SECP256R1())
    request = (
        x509.CertificateSigningRequestBuilder()
        .subject_name(_subject(name))
        .add_extension(_addresses(host), critical=False)
        .sign(key, hashes.SHA256())
    )
    return request.public_bytes(serialization.Encoding.PEM).decode(), _key_text(key)


def load(context: ssl.SSLContext, identity: Identity) -> None:
    """Show the certificate from the next handshake on. Raises ssl.SSLError for a wrong pair."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "identity.pem"
        path.touch(mode=0o600)
        path.write_text(identity.key + identity.certificate)
        context.load_cert_chain(path)


def dates(certificate: str) -> tuple[datetime.datetime, datetime.datetime]:
    """Return from when until when a certificate is valid."""
    parsed = x509.load_pem_x509_certificate(certificate.encode())
    return parsed.not_valid_before_utc, parsed.not_valid_after_utc


def _sign(
    key: ec.EllipticCurvePrivateKey, name: str, host: str, now: datetime.datetime, *, expired: bool
) -> str:
    ends = now - EXPIRED_SINCE if expired else now + VALID
    certificate = (
        x509.CertificateBuilder()
        .subject_name(_subject(name))
        .issuer_name(_subject(name))
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - VALID)
        .not_valid_after(ends)
        .add_extension(_addresses(host), critical=False)
        .sign(key, hashes.SHA256())
    )
    return certificate.public_bytes(serialization.Encoding.PEM).decode()


def _subject(name: str) -> x509.Name:
    return x509.Name(
        [
            x509.NameAttribute(NameOID.ORGANIZATION_NAME, "Lab"),
            x509.NameAttribute(NameOID.COMMON_NAME, f"idrac-{name}"),
        ]
    )


def _addresses(host: str) -> x509.SubjectAlternativeName:
    return x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address(host))])


def _key_text(key: ec.EllipticCurvePrivateKey) -> str:
    return key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    ).decode()
