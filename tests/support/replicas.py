"""Servers that follow the lab's Perforce server, and their rows."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from provisioner.sites.models import PerforceServer, ServerKind, Site
from tests.support.lab import Lab
from tests.support.lab_perforce import LabServer, following


@contextmanager
def replica_of_lab(
    lab: Lab, site: Site, directory: Path, *, kind: ServerKind, name: str
) -> Iterator[tuple[LabServer, PerforceServer]]:
    """Run a server that follows the lab's; yield it and its row."""
    port = int(lab.perforce["port"].rpartition(":")[2])
    upstream = LabServer(root=lab.root / "perforce", port=port)
    services = {ServerKind.EDGE: "edge-server"}.get(kind, kind.value)
    with following(upstream, directory, kind=services, name=name) as server:
        row = PerforceServer.objects.create(
            name=name,
            kind=kind,
            upstream=site.perforce_server,
            server_id=name,
            p4port=f"127.0.0.1:{server.port}",
            p4user=lab.perforce["user"],
        )
        yield server, row
