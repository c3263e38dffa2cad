"""The lab's certificates: an authority of its own, made once per root."""

from __future__ import annotations

import datetime
import os
import ssl
from pathlib import Path

import trustme

NAMES = ("localhost", "127.0.0.1", "::1")


def ensure_certificates(root: Path, *, host: str) -> tuple[Path, Path]:
    """Return the authority's file and the server's key with certificate."""
    ca_file, server_file = root / "ca.pem", root / "server.pem"
    names = tuple(dict.fromkeys((*NAMES, host)))
    if not (ca_file.exists() and server_file.exists()):
        authority = trustme.CA(organization_name="Cloneyard lab")
        write_server(authority, server_file, names=names)
        authority.cert_pem.write_to_path(str(ca_file))
    return ca_file, server_file


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
    """Return what the server speaks TLS with."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(server_file)
    return context
