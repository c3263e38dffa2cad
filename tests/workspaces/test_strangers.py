"""Clients of strangers that have names like ours: not touched, and in nobody's way."""

from __future__ import annotations

import dataclasses

import pytest

from provisioner.engine.models import Operation
from provisioner.gateways import registry
from provisioner.gateways.perforce.gateway import PerforceGateway
from provisioner.gateways.perforce.standins import Purpose
from provisioner.gateways.perforce.types import ClientSpec
from provisioner.workspaces.models import Unsaved, Workspace
from tests.support.retiring import retire_and_purge
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
            perforce, lab_workspace, name=f"{base}-trial", description=f"({tag})\n"
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
    done = retire_and_purge(lab_workspace, unsaved=Unsaved.DISCARD)

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
