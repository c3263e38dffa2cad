"""Clients of strangers that have names like ours: not touched, and in nobody's way."""

from __future__ import annotations

import dataclasses

import pytest

from provisioner.audit_log.models import Event
from provisioner.catalog.models import Template
from provisioner.engine.models import Operation
from provisioner.gateways import registry
from provisioner.gateways.perforce.gateway import PerforceGateway
from provisioner.gateways.perforce.standins import Purpose
from provisioner.gateways.perforce.types import ClientSpec
from provisioner.workspaces.models import Unsubmitted, Workspace
from tests.support.jobs import settle
from tests.support.requests import workspace_create
from tests.support.retiring import restore, retire, retire_and_purge
from tests.support.work import AtWork

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def perforce(lab_workspace: Workspace) -> PerforceGateway:
    return registry.perforce(lab_workspace.site.perforce_server)


def strangers(
    perforce: PerforceGateway, workspace: Workspace, *, name: str, **fields: str
) -> ClientSpec:
    """Return a client of somebody else's at this name, made from ours."""
    ours = perforce.clients.find(workspace.client_name)
    assert ours is not None
    view = tuple(line.replace(f"//{ours.name}/", f"//{name}/") for line in ours.view)
    perforce.clients.save(
        dataclasses.replace(
            ours,
            **{"name": name, "owner": "bob", "root": "/home/bob", **fields},  # type: ignore[arg-type]  # all of it is text
            view=view,
        )
    )
    found = perforce.clients.find(name)
    assert found is not None
    return found


def forms(clients: list[ClientSpec]) -> list[ClientSpec]:
    return [dataclasses.replace(client, accessed_at=None) for client in clients]


def test_clients_named_like_stand_ins_survive_a_retirement(
    lab_workspace: Workspace, perforce: PerforceGateway
) -> None:
    base, tag = lab_workspace.client_name, lab_workspace.tag
    seen_before = lab_workspace.stand_ins.new_name(Purpose.COMPARE)
    theirs = [
        # What was handed out before, and what copies all that can be seen of ours.
        strangers(perforce, lab_workspace, name=f"{base}-look", description="Mine.\n"),
        strangers(
            perforce, lab_workspace, name=f"{base}-transfer", description=f"({tag})\n"
        ),
        strangers(
            perforce, lab_workspace, name=f"{base}-step", description=f"({tag})\n"
        ),
        strangers(perforce, lab_workspace, name=seen_before, description="Mine.\n"),
        strangers(
            *(perforce, lab_workspace),
            name=f"{base}-compare-{24 * '0'}",
            description=f"For the Cloneyard workspace {base} ({tag}).\n",
        ),
    ]

    operation = retire_and_purge(lab_workspace)

    assert operation.state == Operation.State.SUCCEEDED, operation.status_message
    assert perforce.clients.find(base) is None
    found = [perforce.clients.find(client.name) for client in theirs]
    assert forms([client for client in found if client]) == forms(theirs)


def test_a_stranger_who_took_the_name_of_a_client_keeps_it(
    lab_workspace: Workspace, perforce: PerforceGateway, at_work: AtWork
) -> None:
    at_work.change_without_opening()
    theirs = strangers(perforce, lab_workspace, name="bobs", description="Bob's.\n")
    perforce.clients.delete(lab_workspace.client_name)
    view = tuple(
        line.replace("//bobs/", f"//{lab_workspace.client_name}/")
        for line in theirs.view
    )
    locked = theirs.options.replace("unlocked", "locked")
    perforce.clients.save(
        dataclasses.replace(
            theirs, name=lab_workspace.client_name, view=view, options=locked
        )
    )
    before = perforce.clients.find(lab_workspace.client_name)
    assert before is not None

    refused = retire_and_purge(lab_workspace)
    assert refused.state == Operation.State.REFUSED
    assert "is gone from Perforce" in refused.status_message
    done = retire_and_purge(lab_workspace, unsubmitted=Unsubmitted.DISCARD)

    assert done.state == Operation.State.SUCCEEDED, done.status_message
    after = perforce.clients.find(lab_workspace.client_name)
    assert after is not None
    assert forms([after]) == forms([before])


def test_no_client_stops_what_names_none(
    lab_workspace: Workspace, perforce: PerforceGateway
) -> None:
    for name in ("cloneyard-neutral", "cloneyard-asks"):
        theirs = {"host": "bobs-host", "description": "Mine.\n"}
        strangers(perforce, lab_workspace, name=name, **theirs)

    assert registry.first_perforce(
        lab_workspace.site.perforce_server, seconds=10
    ).clients.types()
    operation = retire_and_purge(lab_workspace)
    assert operation.state == Operation.State.SUCCEEDED, operation.status_message


def copied(perforce: PerforceGateway, ours: ClientSpec, **fields: str) -> ClientSpec:
    """Return what a stranger makes of all that could be read of a client of ours."""
    theirs = dataclasses.replace(ours, **{"owner": "bob", "host": "b", **fields})  # type: ignore[arg-type]  # all of it is text
    perforce.clients.save(theirs)
    found = perforce.clients.find(ours.name)
    assert found is not None
    return found


def test_who_copies_a_client_that_is_in_the_trash_stops_neither_restore_nor_purge(
    lab_workspace: Workspace, perforce: PerforceGateway, at_work: AtWork
) -> None:
    at_work.open_for_edit()
    ours = perforce.clients.find(lab_workspace.client_name)
    assert ours is not None
    opened = {file.depot_file for file in perforce.changes.list_opened(ours.name)}
    retire(lab_workspace)
    theirs = copied(perforce, ours)

    restoration = restore(lab_workspace)

    assert restoration.state == Operation.State.SUCCEEDED, restoration.status_message
    again = lab_workspace.client_name
    assert again.startswith(f"{ours.name}-r")
    assert restoration.findings is not None
    [said] = restoration.findings["not_restored"]
    assert ours.name in said
    assert again in said
    assert f"P4CLIENT={again}\n" in (lab_workspace.path / ".p4config").read_text()
    assert opened == {f.depot_file for f in perforce.changes.list_opened(again)}
    have = perforce.files.have_list(again)
    assert have.count == lab_workspace.snapshot.have_count

    operation = retire_and_purge(lab_workspace, unsubmitted=Unsubmitted.RESCUE)

    assert operation.state == Operation.State.SUCCEEDED, operation.status_message
    assert lab_workspace.state == Workspace.State.RETIRED
    assert perforce.clients.find(again) is None
    after = perforce.clients.find(ours.name)
    assert after is not None
    assert forms([after]) == forms([theirs])


def test_a_strangers_client_at_our_root_stops_no_retirement(
    lab_workspace: Workspace, perforce: PerforceGateway
) -> None:
    ours = perforce.clients.find(lab_workspace.client_name)
    assert ours is not None
    perforce.clients.delete(ours.name)
    theirs = copied(perforce, ours, description="Mine.\n")

    done = retire_and_purge(lab_workspace, unsubmitted=Unsubmitted.DISCARD)

    assert done.state == Operation.State.SUCCEEDED, done.status_message
    assert lab_workspace.state == Workspace.State.RETIRED
    after = perforce.clients.find(ours.name)
    assert after is not None
    assert forms([after]) == forms([theirs])


def test_a_description_of_the_owners_own_leaves_the_client_theirs(
    lab_workspace: Workspace, perforce: PerforceGateway
) -> None:
    ours = perforce.clients.find(lab_workspace.client_name)
    assert ours is not None
    perforce.clients.save(dataclasses.replace(ours, description="For the release.\n"))

    assert retire(lab_workspace).state == Operation.State.SUCCEEDED
    assert perforce.clients.find(ours.name) is None
    assert restore(lab_workspace).state == Operation.State.SUCCEEDED

    again = perforce.clients.find(ours.name)
    assert again is not None
    assert again.description.startswith("For the release.\n")


def test_a_new_workspace_gets_another_name_where_that_of_its_client_is_taken(
    published_template: Template, lab_workspace: Workspace, perforce: PerforceGateway
) -> None:
    workspace = workspace_create(
        by=lab_workspace.owner, template=published_template, name="second"
    )
    wanted = workspace.client_name
    theirs = strangers(perforce, lab_workspace, name=wanted, description="Mine.\n")

    settle(workspace)

    assert workspace.state == Workspace.State.READY, workspace.status_message
    assert workspace.client_name.startswith(f"{wanted}-r")
    config = (workspace.path / ".p4config").read_text()
    assert f"P4CLIENT={workspace.client_name}\n" in config
    assert Event.objects.get(workspace=workspace, kind="client_renamed")
    after = perforce.clients.find(wanted)
    assert after is not None
    assert forms([after]) == forms([theirs])
