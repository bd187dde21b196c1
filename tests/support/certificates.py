"""A certificate authority and the TLS settings of servers with its certificates."""

import ssl
from datetime import UTC, datetime, timedelta
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from cryptography.x509.oid import NameOID

SIGNS_CERTIFICATES = x509.KeyUsage(
    digital_signature=False,
    content_commitment=False,
    key_encipherment=False,
    data_encipherment=False,
    key_agreement=False,
    key_cert_sign=True,
    crl_sign=True,
    encipher_only=False,
    decipher_only=False,
)
"""Python's default context demands it of an authority (VERIFY_X509_STRICT)."""


class Authority:
    """A certificate authority, and server certificates by it."""

    def __init__(self, name: str) -> None:
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
        constraints = x509.BasicConstraints(ca=True, path_length=None)
        self.certificate = self._issue(self._name, self._key.public_key(), constraints, SIGNS_CERTIFICATES)

    def _issue(
        self,
        subject: x509.Name,
        public_key: ec.EllipticCurvePublicKey,
        *extensions: x509.ExtensionType,
        days: int = 1,
    ) -> x509.Certificate:
        now = datetime.now(UTC)
        builder = (
            x509.CertificateBuilder()
            .subject_name(subject)
            .issuer_name(self._name)
            .public_key(public_key)
            .serial_number(x509.random_serial_number())
            .not_valid_before(now - timedelta(days=2))
            .not_valid_after(now + timedelta(days=days))
            .add_extension(x509.SubjectKeyIdentifier.from_public_key(public_key), critical=False)
            .add_extension(
                x509.AuthorityKeyIdentifier.from_issuer_public_key(self._key.public_key()), critical=False
            )
        )
        for extension in extensions:
            builder = builder.add_extension(extension, critical=True)
        return builder.sign(self._key, hashes.SHA256())

    def bundle(self, folder: Path) -> str:
        """Write the authority's certificate; return the path of the file."""
        path = folder / "ca.pem"
        path.write_bytes(self.certificate.public_bytes(Encoding.PEM))
        return str(path)

    def context(self, folder: Path, *names: x509.GeneralName, days: int = 1) -> ssl.SSLContext:
        """Return the TLS settings of a server with these names."""
        key = ec.generate_private_key(ec.SECP256R1())
        subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "server")])
        alternatives = x509.SubjectAlternativeName(names)
        certificate = self._issue(subject, key.public_key(), alternatives, days=days)
        path = folder / "server.pem"
        path.write_bytes(
            key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
            + certificate.public_bytes(Encoding.PEM)
        )
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(path)
        return context
