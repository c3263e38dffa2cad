"""Clients that differ, made behind our back in the lab."""

from __future__ import annotations

import dataclasses
import uuid
from typing import Any

import pytest
from django.utils import timezone

from provisioner.accounts.models import User
from provisioner.drift.sweeps import known
from provisioner.gateways.ontap.gateway import OntapGateway
from provisioner.gateways.perforce.standins import Purpose
from provisioner.sites.models import Site
from provisioner.transfer.models import Transfer
from provisioner.workspaces.models import Workspace
from provisioner.workspaces.steps.provision import client_spec_of
from tests.support.drift_scene import (
    A_DAY,
    A,
    K,
    check_drift,
    client_named,
    made_long_ago,
    only,
    resolve,
    retired,
    some_time_later,
)
from tests.support.factories import copy_of
from tests.support.lab import DEPOT, Lab
from tests.support.work import AtWork

pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.usefixtures("foreign"),
]


def leave_client(workspace: Workspace, ontap: OntapGateway) -> None:
    """Retire a workspace, its volume and all, and leave its client."""
    ontap.unmount_volume(workspace.volume_uuid)
    ontap.delete_volume(workspace.volume_uuid, force=True)
    retired(workspace)


def test_the_empty_client_of_a_retired_workspace_goes_by_itself(
    lab_workspace: Workspace, lab_site: Site, ontap: OntapGateway, perforce: Any
) -> None:
    leave_client(lab_workspace, ontap)

    found = only(check_drift(lab_site), K.CLIENT_WITHOUT_ROW)
    assert (found.action, found.is_automatic) == (A.REMOVE, True)
    assert perforce.clients.find(lab_workspace.client_name) is not None
    some_time_later()

    assert check_drift(lab_site) == []
    assert perforce.clients.find(lab_workspace.client_name) is None


@pytest.mark.parametrize("stranger", [{"owner": "carol"}, {"root": "/home/carol"}])
def test_a_client_that_somebody_made_of_a_known_description_stays(
    stranger: dict[str, str],
    lab_workspace: Workspace,
    lab_site: Site,
    ontap: OntapGateway,
    perforce: Any,
) -> None:
    leave_client(lab_workspace, ontap)
    spec = perforce.clients.find(lab_workspace.client_name)
    perforce.clients.save(dataclasses.replace(spec, **stranger))

    for _ in range(2):
        found = only(check_drift(lab_site), K.CLIENT_WITHOUT_ROW)
        assert not found.is_automatic
        some_time_later()
    assert perforce.clients.find(lab_workspace.client_name) is not None


@pytest.mark.parametrize("work", ["opened", "pending", "shelved"])
def test_a_client_with_work_stays_whoever_clicks(
    work: str,
    lab_workspace: Workspace,
    lab_site: Site,
    ontap: OntapGateway,
    perforce: Any,
    p4: Any,
    admin: User,
    lab: Lab,
) -> None:
    p4.client = lab_workspace.client_name
    if work == "shelved":
        session = AtWork(lab_workspace, lab)
        session.shelve()
        session.end()
    elif work == "opened":
        p4.run("edit", "-k", f"//depot/{DEPOT}/src/file1.txt")
    else:
        p4.input = "Change: new\n\nDescription:\n\tLater.\n"
        p4.run("change", "-i")
    leave_client(lab_workspace, ontap)

    for _ in range(3):
        found = only(check_drift(lab_site), K.CLIENT_WITHOUT_ROW)
        some_time_later()
    assert not found.is_automatic
    assert "unsubmitted work" in found.sentence
    resolve(found, admin)

    assert found.resolved_at is None
    assert "It is kept until its owner has dealt with them." in found.status_message
    assert perforce.clients.find(lab_workspace.client_name) is not None
    # and it goes once that is settled
    if work == "opened":
        p4.run("revert", "-k", "//...")
    else:
        [change] = perforce.changes.list_pending(lab_workspace.client_name)
        if work == "shelved":
            assert change.is_shelved
            p4.run("shelve", "-f", "-d", "-c", str(change.change))
        p4.run("change", "-d", "-f", str(change.change))
    check_drift(lab_site)
    some_time_later()
    assert check_drift(lab_site) == []


def test_a_client_of_nobody_waits_for_a_click(
    lab_workspace: Workspace, lab_site: Site, perforce: Any, admin: User
) -> None:
    name = "cy-old-w123456"
    tag = "12345678-0000-4000-8000-000000000000"
    perforce.clients.save(
        client_named(name, description=f"Cloneyard workspace old ({tag}), a clone.")
    )

    for _ in range(3):
        found = only(check_drift(lab_site), K.CLIENT_WITHOUT_ROW)
        some_time_later()

    assert (found.subject, found.is_automatic) == (name, False)
    resolve(found, admin)
    assert perforce.clients.find(name) is None


def test_a_copied_description_makes_no_client_ours(
    lab_workspace: Workspace, lab_site: Site, perforce: Any, admin: User
) -> None:
    described = perforce.clients.find(lab_workspace.client_name).description
    perforce.clients.save(client_named("cy-copied-wabcdef", description=described))
    assert check_drift(lab_site) == []

    # With a name that fits, too, it is asked whose it is.
    copy = f"cy-copied-w{lab_workspace.tag.hex[:6]}"
    perforce.clients.save(client_named(copy, description=described))
    found = only(check_drift(lab_site), K.CLIENT_TAG_COPIED)
    before = perforce.clients.find(copy)
    resolve(found, admin)
    after = perforce.clients.find(copy)
    assert str(lab_workspace.tag) not in after.description
    assert "Cloneyard workspace" in after.description
    assert (after.owner, after.root, after.view) == (
        *(before.owner, before.root),
        before.view,
    )
    assert check_drift(lab_site) == []


def test_what_stood_in_for_a_client_is_removed_on_a_click(
    lab_workspace: Workspace, lab_site: Site, perforce: Any, admin: User
) -> None:
    source = copy_of(lab_workspace)
    source.tag, source.name = uuid.uuid4(), "before"
    source.state, source.volume_uuid = Workspace.State.RETIRED, ""
    source.retired_at = timezone.now() - A_DAY
    source.save()
    Transfer.objects.create(workspace=lab_workspace, source=source)
    stand_in = lab_workspace.stand_ins.new_name(Purpose.TRANSFER)
    description = f"Copies for the Cloneyard workspace hers ({lab_workspace.tag}).\n"
    perforce.clients.save(client_named(stand_in, description=description))
    found = only(check_drift(lab_site), K.CLIENT_WITHOUT_ROW)
    assert (found.action, found.is_automatic) == (A.REMOVE, False)

    resolve(found, admin)

    assert perforce.clients.find(stand_in) is None
    assert perforce.clients.find(lab_workspace.client_name) is not None
    assert check_drift(lab_site) == []


def test_a_templates_client_is_put_right_and_defined_again(
    lab_workspace: Workspace, lab_site: Site, perforce: Any, p4: Any, admin: User
) -> None:
    template = lab_workspace.template
    wanted = perforce.clients.find(template.client_name)
    p4.save_client({**p4.fetch_client(wanted.name), "Owner": "carol"}, "-f")
    found = only(check_drift(lab_site), K.CLIENT_DIFFERS)
    assert found.template == template
    resolve(found, admin)
    assert perforce.clients.find(wanted.name).owner == wanted.owner

    p4.run("client", "-d", wanted.name)
    resolve(only(check_drift(lab_site), K.ROW_WITHOUT_CLIENT), admin)

    again = perforce.clients.find(wanted.name)
    assert (again.root, again.view) == (wanted.root, wanted.view)
    assert check_drift(lab_site) == []


def test_a_lost_client_is_defined_again_on_a_click(
    lab_workspace: Workspace, lab_site: Site, perforce: Any, admin: User
) -> None:
    perforce.clients.delete(lab_workspace.client_name)
    found = only(check_drift(lab_site), K.ROW_WITHOUT_CLIENT)
    assert not found.is_automatic

    resolve(found, admin)

    assert perforce.clients.find(lab_workspace.client_name).root == str(
        lab_workspace.path
    )
    have, pin = (
        perforce.files.have_list(lab_workspace.client_name),
        lab_workspace.snapshot,
    )
    assert (have.count, have.digest) == (pin.have_count, pin.have_digest)
    assert f"flushed to change {pin.change}" in found.resolution
    assert check_drift(lab_site) == []


def test_a_repair_that_was_killed_before_its_flush_is_finished(
    lab_workspace: Workspace, lab_site: Site, perforce: Any, admin: User
) -> None:
    perforce.clients.delete(lab_workspace.client_name)
    found = only(check_drift(lab_site), K.ROW_WITHOUT_CLIENT)
    perforce.clients.save(client_spec_of(lab_workspace))

    resolve(found, admin)

    have, pin = (
        perforce.files.have_list(lab_workspace.client_name),
        lab_workspace.snapshot,
    )
    assert (have.count, have.digest) == (pin.have_count, pin.have_digest)


@pytest.mark.parametrize("host", ["", "elsewhere"])
def test_a_client_that_its_owner_defined_again_keeps_what_it_has(
    host: str,
    lab_workspace: Workspace,
    lab_site: Site,
    perforce: Any,
    p4: Any,
    admin: User,
) -> None:
    perforce.clients.delete(lab_workspace.client_name)
    found = only(check_drift(lab_site), K.ROW_WITHOUT_CLIENT)
    perforce.clients.save(client_spec_of(lab_workspace))
    p4.client = lab_workspace.client_name
    p4.run("flush", f"//depot/{DEPOT}/src/file1.txt")
    mine = dataclasses.replace(client_spec_of(lab_workspace), host=host)
    perforce.clients.save(mine)

    resolve(found, admin)

    assert found.resolution == "The difference was gone."
    perforce.clients.save(dataclasses.replace(mine, host=""))
    assert perforce.files.have_list(lab_workspace.client_name).count == 1


def test_a_changed_client_is_put_right_but_for_its_view(
    lab_workspace: Workspace, lab_site: Site, perforce: Any, p4: Any, admin: User
) -> None:
    narrow = f"//depot/{DEPOT}/src/... //{lab_workspace.client_name}/src/..."
    made_long_ago(lab_workspace)
    form = p4.fetch_client(lab_workspace.client_name)
    p4.save_client(
        {**form, "Root": "/elsewhere", "Owner": "carol", "Host": "h", "View": [narrow]},
        "-f",
    )
    [found, _] = check_drift(lab_site)
    assert found.kind == K.CLIENT_DIFFERS
    assert set(found.details["fields"]) == {"Root", "Owner", "Host"}

    resolve(found, admin)

    client = perforce.clients.find(lab_workspace.client_name)
    wanted = client_spec_of(lab_workspace)
    assert (client.root, client.owner, client.host) == (wanted.root, wanted.owner, "")
    assert client.view == (narrow,)
    found = only(check_drift(lab_site), K.CLIENT_VIEW_DIFFERS)
    assert (found.action, found.is_automatic) == (A.FINISH, False)
    assert found.details["lines_out"] == [narrow]
    assert found.details["lines_in"] == list(wanted.view)

    resolve(found, admin)

    again = perforce.clients.find(lab_workspace.client_name)
    assert dataclasses.replace(again, updated_at=None, accessed_at=None) == (
        dataclasses.replace(wanted, description=client.description)
    )
    assert check_drift(lab_site) == []


def test_a_view_with_files_opened_outside_the_one_of_before_stays(
    lab_workspace: Workspace, lab_site: Site, perforce: Any, p4: Any, admin: User
) -> None:
    name = lab_workspace.client_name
    made_long_ago(lab_workspace)
    wide = f"//depot/{DEPOT}-more/... //{name}/more/..."
    form = p4.fetch_client(name)
    p4.save_client({**form, "View": [*client_spec_of(lab_workspace).view, wide]}, "-f")
    p4.client = name
    p4.run("add", "-t", "text", f"//depot/{DEPOT}-more/new.txt")
    found = only(check_drift(lab_site), K.CLIENT_VIEW_DIFFERS)

    resolve(found, admin)

    assert found.resolved_at is None
    assert f"//depot/{DEPOT}-more/new.txt is opened in {name}" in found.status_message
    assert wide in perforce.clients.find(name).view
    p4.run("revert", "-k", "//...")
    resolve(found, admin)
    assert perforce.clients.find(name).view == client_spec_of(lab_workspace).view


def test_a_view_is_read_once_per_change(
    lab_workspace: Workspace, lab_site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Reading it refreshes the client's Access date, by which people judge."""
    # The second in which the client was made just now counts as over.
    monkeypatch.setattr(known, "SECOND_OVER_AFTER", -A_DAY)
    made_long_ago(lab_workspace)
    check_drift(lab_site)
    lab_workspace.refresh_from_db()
    seen = lab_workspace.client_seen
    assert seen["view"] == list(client_spec_of(lab_workspace).view)

    Workspace.objects.filter(pk=lab_workspace.pk).update(
        client_seen={**seen, "view": ["//depot/made-up/... //c/..."]}
    )

    # What was remembered is believed: nothing was read again.
    only(check_drift(lab_site), K.CLIENT_VIEW_DIFFERS)


def test_what_was_read_in_the_second_of_a_change_is_not_believed(
    lab_workspace: Workspace, lab_site: Site
) -> None:
    """Another change may have come in the same second, with the same Update date."""
    made_long_ago(lab_workspace)
    check_drift(lab_site)
    lab_workspace.refresh_from_db()
    assert lab_workspace.client_seen == {}


def test_another_sites_clients_and_volumes_are_its_own(
    lab_workspace: Workspace, lab_site: Site
) -> None:
    """Two sites may share an SVM and a Perforce server."""
    twin = Site.objects.get(pk=lab_site.pk)
    twin.pk, twin.name, twin.mount_root = None, "twin", f"{twin.mount_root}-twin"
    twin.save()

    assert check_drift(twin) == []
    assert check_drift(lab_site) == []
