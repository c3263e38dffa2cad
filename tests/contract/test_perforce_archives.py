"""What is found in archives: lost and damaged revisions, until it is cut short."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from provisioner.gateways import fence, registry
from provisioner.gateways.perforce.connection import TicketHolder, connected
from provisioner.gateways.perforce.errors import VERIFY_FOUND, NotPermitted
from provisioner.gateways.perforce.library import Record
from provisioner.gateways.perforce.types import (
    DamagedRevision,
    Depot,
    PerforceAccount,
)
from provisioner.lib.refusals import StepCutShort
from tests.support.lab_perforce import (
    LabServer,
    Workspace,
    shelved,
    workspace,
)

pytestmark = pytest.mark.timeout(90, method="thread")


@pytest.fixture(scope="module")
def account(server: LabServer) -> PerforceAccount:
    return PerforceAccount(
        port=f"127.0.0.1:{server.port}",
        user="cloneyard",
        password=server.password,
        charset="none",
    )


@pytest.fixture(scope="module")
def ws(server: LabServer, tmp_path_factory: pytest.TempPathFactory) -> Workspace:
    """A lost and a damaged revision among others."""
    place = tmp_path_factory.mktemp("ws")
    made = workspace(server, place, name="ws", depot="//depot/tree")
    made.add({"lost": "lost\n", "damaged": "damaged\n", "whole": "whole\n"})
    made.edit("lost", "found\n")
    known = {
        (r["depotFile"].rpartition("/")[2], r["rev"]): r["digest"]
        for r in made.p4.run("verify", "//depot/...")
    }
    content_of(server, known["lost", "1"]).unlink()
    content_of(server, known["damaged", "1"]).chmod(0o644)
    content_of(server, known["damaged", "1"]).write_text("other\n")
    return made


def content_of(server: LabServer, digest: str) -> Path:
    return server.root / "content" / digest[:2] / digest


def test_lost_and_damaged_revisions_are_found(
    ws: Workspace, account: PerforceAccount
) -> None:
    archives = registry.perforce_as(account).archives
    found: list[DamagedRevision] = []

    archives.verify("depot", found=found.append)

    assert Depot(name="depot", kind="local") in archives.depots()
    names = [(each.path, each.revision, each.status) for each in found]
    assert sorted(names) == [
        (f"{ws.depot}/damaged", 1, "BAD"),
        (f"{ws.depot}/lost", 1, "MISSING"),
    ]
    assert {each.change for each in found} == {1}
    assert {(each.action, each.type) for each in found} == {("add", "text")}


def test_shelved_files_are_read_apart(
    ws: Workspace, server: LabServer, account: PerforceAccount
) -> None:
    archives = registry.perforce_as(account).archives
    found: list[DamagedRevision] = []
    archives.verify_shelved("depot", found=found.append)
    assert found == [], "without a shelf nothing is found"
    change = shelved(ws.p4, ws.write("whole", "on a shelf\n"))
    [record] = ws.p4.run("verify", "-S", "//depot/...")
    archives.verify_shelved("depot", found=found.append)
    assert found == []

    content_of(server, record["digest"]).unlink()

    archives.verify_shelved("depot", found=found.append)
    assert found == [
        DamagedRevision(
            path=f"{ws.depot}/whole",
            revision=None,
            change=int(change),
            action="edit",
            type="text",
            status="MISSING",
        )
    ]


def test_a_server_that_answers_in_messages_is_understood(
    ws: Workspace, account: PerforceAccount
) -> None:
    found: list[Record] = []

    with connected(account, holder=TicketHolder()) as connection:
        connection._library.tagged = False
        reply = connection.run(
            *("verify", "-q", "-z", "//depot/..."),
            each=found.append,
            each_message={VERIFY_FOUND},
        )

    assert sorted(each["status"] for each in found) == ["BAD!", "MISSING!"]
    assert {each["depotRev"] for each in found} == {"#1"}
    assert {each["change"] for each in found} == {"change 1"}
    assert [each.id for each in reply.messages] == []


def test_only_administrators_verify(
    ws: Workspace, server: LabServer, account: PerforceAccount
) -> None:
    server.person("mallory")
    theirs = PerforceAccount(
        port=account.port, user="mallory", password="mallory", charset="none"
    )

    with pytest.raises(NotPermitted):
        registry.perforce_as(theirs).archives.verify("depot", found=print)


def test_a_verification_ends_when_its_caller_may_not_act(
    ws: Workspace, server: LabServer, account: PerforceAccount
) -> None:
    server.faults({"command": "verify", "latency_seconds": 60})
    may_until = time.monotonic() + 1

    def leave() -> None:
        if time.monotonic() > may_until:
            raise StepCutShort

    began = time.monotonic()
    with fence.asking(leave), pytest.raises(StepCutShort):
        registry.perforce_as(account).archives.verify("depot", found=print)

    server.faults()
    assert time.monotonic() - began < 30
