"""The lab's certificates, from an authority of its own that each root has."""

from __future__ import annotations

import datetime
import os
import ssl
from dataclasses import dataclass
from pathlib import Path

import trustme

NAMES = ("localhost", "127.0.0.1", "::1")


@dataclass(frozen=True)
class Certificates:
    """Files: the authority, and keys with certificates for the server."""

    authority: Path
    server: Path
    expired: Path


def ensure_certificates(root: Path, *, host: str) -> Certificates:
    """Return the files, created once; one of the certificates has expired."""
    files = Certificates(root / "ca.pem", root / "server.pem", root / "expired.pem")
    names = tuple(dict.fromkeys((*NAMES, host)))
    wanted = (files.authority, files.server, files.expired)
    if not all(path.exists() for path in wanted):
        authority = trustme.CA(organization_name="Cloneyard lab")
        yesterday = datetime.datetime.now(datetime.UTC) - datetime.timedelta(days=1)
        write_server(authority, files.server, names=names)
        write_server(authority, files.expired, names=names, not_after=yesterday)
        authority.cert_pem.write_to_path(str(files.authority))
    return files


def write_server(
    authority: trustme.CA,
    path: Path,
    *,
    names: tuple[str, ...],
    not_after: datetime.datetime | None = None,
) -> None:
    """Write a private file with a server's key and certificate."""
    server = authority.issue_cert(*names, not_after=not_after)
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(descriptor, "wb") as file:
        file.write(server.private_key_and_cert_chain_pem.bytes())


def server_context(server_file: Path) -> ssl.SSLContext:
    """Return the server's TLS context."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(server_file)
    return context
