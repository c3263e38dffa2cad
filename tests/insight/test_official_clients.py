"""Official clients appear with their own versions, read from a server's own log.

`official_clients.log` is the log of the lab after `p4 info` of p4 2025.1 for Linux,
`getServerInfo()` of P4Java 2025.1 and `p4.run("info")` of P4Python, as it was written.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import P4
import pytest

from provisioner.insight.models import ProgramUse
from provisioner.insight.programs import record_programs_of_log
from provisioner.server_log.following import read_once
from provisioner.server_log.models import ServerLog
from provisioner.sites.models import PerforceServer
from tests.support.factories import PerforceServerFactory
from tests.support.lab_perforce import lab_server

pytestmark = pytest.mark.django_db

RECORDED = Path(__file__).with_name("official_clients.log")


@pytest.fixture
def server(settings: Any) -> PerforceServer:
    settings.SERVER_LOG_DAYS = 20_000
    server: PerforceServer = PerforceServerFactory.create(p4user="svc")
    return server


def uses_in(server: PerforceServer, log: Path) -> set[tuple[str, str, str]]:
    """Return user, program and release of what a log tells."""
    read_once(server, log)
    assert not record_programs_of_log(ServerLog.objects.get(server=server))
    uses = ProgramUse.objects.filter(server=server)
    return set(uses.values_list("user", "program", "release"))


def test_p4_p4java_and_p4python_have_their_own_versions(
    server: PerforceServer,
) -> None:
    assert uses_in(server, RECORDED) == {
        ("ann", "p4", "2025.1"),
        ("bob", "Unknown P4Java program", "2025.1"),
        ("carol", "unnamed p4-python script", "2026.1"),
    }


def test_the_labs_log_names_a_client_and_its_version(
    server: PerforceServer, tmp_path: Path
) -> None:
    with lab_server(tmp_path, "-v", "server=3", "-v", "track=1") as lab:
        for name, version in (("nightly", ""), ("release", "7")):
            client = P4.P4(port=f"127.0.0.1:{lab.port}", user="ann", prog=name)
            if version:
                client.version = version
            with client.connect():
                client.run("info")
        written = (tmp_path / "log").read_text()
        found = uses_in(server, tmp_path / "log")

    release = P4.P4.identify().split("Rev. ")[1].split("/")[2]
    assert {("ann", "nightly", release), ("ann", "release", release)} <= found
    # Without a version of its own a program has the level of its protocol.
    assert re.search(r"\[nightly \[.*\]/v\d+\] 'user-info'", written)
    assert "]/7] 'user-info'" in written
