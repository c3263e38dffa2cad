"""Certificates of `ssl:` ports: made once per root, like those of `p4d -Gc`.

A second one is shown when a fault says that the key has changed. Only servers that
encrypt import this module: it needs packages that the others do not.

Source: p4 trust; the fingerprint is that of NetSslCredentials in the published client.
"""

from __future__ import annotations

import hashlib
import os
import ssl
from pathlib import Path

import trustme
from cryptography import x509
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat


class Credentials:
    """A key with its certificate, in a private file below the root."""

    def __init__(self, root: Path, *, name: str, host: str) -> None:
        directory = root / "sslkeys"
        directory.mkdir(mode=0o700, exist_ok=True)
        self._file = directory / f"{name}.pem"
        if not self._file.exists():
            self._make(host)
        self.context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self.context.load_cert_chain(self._file)
        # The client's library waits for ever for what follows a session ticket.
        self.context.num_tickets = 0
        pem = self._file.read_bytes()
        self._certificate = x509.load_pem_x509_certificate(
            pem[pem.index(b"-----BEGIN CERTIFICATE") :]
        )

    def _make(self, host: str) -> None:
        issued = trustme.CA(organization_name="Cloneyard lab").issue_cert(host)
        draft = self._file.with_suffix(f".{os.getpid()}")
        descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(descriptor, "wb") as file:
            file.write(issued.private_key_and_cert_chain_pem.bytes())
        draft.rename(self._file)

    @property
    def fingerprint(self) -> str:
        """Return the SHA-1 of the public key as `p4 trust -l` shows it."""
        key = self._certificate.public_key().public_bytes(
            Encoding.DER, PublicFormat.SubjectPublicKeyInfo
        )
        return hashlib.sha1(key, usedforsecurity=False).digest().hex(":").upper()

    @property
    def expires(self) -> str:
        """Return the expiry of the certificate, as OpenSSL prints it."""
        return self._certificate.not_valid_after_utc.strftime("%b %e %H:%M:%S %Y GMT")
