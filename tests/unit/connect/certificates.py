"""Certificates made on the spot: an authority, and what it signs."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone
from ipaddress import ip_address
from typing import TYPE_CHECKING

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import pkcs12
from cryptography.x509.oid import NameOID

if TYPE_CHECKING:
    from pathlib import Path

STORE_PASSWORD = "store-hunter2"
_PLAIN = serialization.NoEncryption()
_PEM = serialization.Encoding.PEM


class Authority:
    """Signs certificates and keeps every file in one folder."""

    def __init__(self, folder: Path, name: str) -> None:
        self.folder, self.name = folder, name
        self.key = ec.generate_private_key(ec.SECP256R1())
        self.certificate = self._sign(name, self.key, True)
        self.pem = folder / f"{name}.pem"
        self.pem.write_bytes(self.certificate.public_bytes(_PEM))
        self.store = folder / f"{name}.p12"
        trusted = pkcs12.PKCS12Certificate(self.certificate, name.encode())
        locked = serialization.BestAvailableEncryption(STORE_PASSWORD.encode())
        self.store.write_bytes(
            pkcs12.serialize_java_truststore([trusted], encryption_algorithm=locked)
        )

    def issue(self, name: str) -> Issued:
        """A certificate for a server on the loopback address, or for one of its clients."""
        key = ec.generate_private_key(ec.SECP256R1())
        return Issued(self, name, key, self._sign(name, key, False))

    def _sign(
        self, name: str, key: ec.EllipticCurvePrivateKey, authority: bool
    ) -> x509.Certificate:
        def named(text: str) -> x509.Name:
            return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, text)])

        now = datetime.now(timezone.utc)
        here = x509.SubjectAlternativeName([x509.IPAddress(ip_address("127.0.0.1"))])
        return (
            x509.CertificateBuilder()
            .subject_name(named(name))
            .issuer_name(named(self.name))
            .public_key(key.public_key())
            .serial_number(x509.random_serial_number())
            .not_valid_before(now - timedelta(days=1))
            .not_valid_after(now + timedelta(days=1))
            .add_extension(x509.BasicConstraints(authority, None), critical=True)
            .add_extension(here, critical=False)
            .sign(self.key, hashes.SHA256())
        )


class Issued:
    """A certificate and its key: as PEM for us, as a key store for Java."""

    def __init__(
        self,
        authority: Authority,
        name: str,
        key: ec.EllipticCurvePrivateKey,
        certificate: x509.Certificate,
    ) -> None:
        folder = authority.folder
        self.cert, self.key = folder / f"{name}-cert.pem", folder / f"{name}-key.pem"
        self.store = folder / f"{name}.p12"
        self.cert.write_bytes(certificate.public_bytes(_PEM))
        self.key.write_bytes(key.private_bytes(_PEM, serialization.PrivateFormat.PKCS8, _PLAIN))
        locked = serialization.BestAvailableEncryption(STORE_PASSWORD.encode())
        chain = [authority.certificate]
        self.store.write_bytes(
            pkcs12.serialize_key_and_certificates(name.encode(), key, certificate, chain, locked)
        )
