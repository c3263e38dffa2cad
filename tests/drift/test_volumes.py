"""Volumes and junctions that differ, made behind our back in the lab."""

from __future__ import annotations

import dataclasses
import datetime as dt
import os
import uuid
from pathlib import Path
from typing import Any

import pytest
from django.utils import timezone

from provisioner.accounts.models import User
from provisioner.catalog.models import Template, VolumePolicy
from provisioner.drift.comparison.previews import preview
from provisioner.drift.models import DriftCheck, FarSide, Finding
from provisioner.drift.repairs.evidence import CannotRepair
from provisioner.drift.repairs.storage import remove_volume
from provisioner.engine.models import Operation
from provisioner.gateways.ontap.gateway import OntapGateway
from provisioner.gateways.ontap.types import CloneSpec, VolumeSettings, VolumeSpec
from provisioner.sites.models import Site
from provisioner.storage.actions import volume_policy_save
from provisioner.storage.models import Growth
from provisioner.workspaces.actions.retiring import workspace_retire
from provisioner.workspaces.models import (
    Rescue,
    Unsubmitted,
    Workspace,
    WorkspaceOperation,
)
from tests.support.drift_scene import (
    NOBODYS_TAG,
    A,
    K,
    check_drift,
    finding_asked,
    leftover_of,
    long_ago,
    only,
    resolve,
    some_time_later,
)
from tests.support.jobs import run_jobs_once, settle
from tests.support.lab import Lab

pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.usefixtures("foreign"),
]


def test_where_all_agree_nothing_is_found(
    lab_workspace: Workspace, lab_site: Site, lab_template: Template
) -> None:
    assert check_drift(lab_site) == []

    run = DriftCheck.objects.get(site=lab_site, system=FarSide.ONTAP)
    assert run.objects_seen >= 3  # the template, its snapshot, the clone
    assert run.checked_at is not None


def test_a_volume_of_nobody_waits_for_a_click(
    lab_workspace: Workspace, lab_site: Site, ontap: OntapGateway, admin: User
) -> None:
    stray = ontap.create_volume(
        VolumeSpec(
            name="cy_stray_w000000",
            aggregate=lab_site.aggregate,
            size_bytes=20 * 2**20,
            comment=NOBODYS_TAG,
            export_policy="default",
            uid=20000,
            gid=20000,
        )
    )
    ontap.mount_volume(stray.uuid, junction_path="/stray")

    for _ in range(3):
        found = only(check_drift(lab_site), K.VOLUME_WITHOUT_ROW)
        some_time_later()

    assert (found.action, found.is_automatic, found.times_seen) == (A.ADOPT, False, 3)
    assert found.external_id == stray.uuid
    assert "was split from its template" in resolve(found, admin).status_message
    assert ontap.find_volume("cy_stray_w000000") is not None
    ontap.unmount_volume(stray.uuid)
    ontap.delete_volume(stray.uuid, force=True)
    assert check_drift(lab_site) == []


def test_the_leftover_of_a_retirement_goes_by_itself_once_seen_twice(
    lab_workspace: Workspace, lab_site: Site, ontap: OntapGateway, perforce: Any
) -> None:
    name = leftover_of(lab_workspace, ontap, perforce)

    found = only(check_drift(lab_site), K.VOLUME_WITHOUT_ROW)
    assert found.is_automatic
    assert check_drift(lab_site) == [found]  # twice, but at once
    assert ontap.find_volume(name) is not None
    some_time_later()

    assert check_drift(lab_site) == []
    assert ontap.find_volume(name) is None
    found.refresh_from_db()
    assert found.resolution == f"The volume {name} was deleted."
    event = lab_workspace.events.get(kind="drift_resolved")
    assert (event.actor, event.subject) == (None, lab_workspace.name)


@pytest.mark.parametrize("why_not", ["mounted", "rescue", "no retirement", "parent"])
def test_a_leftover_that_may_hold_work_stays(
    why_not: str,
    lab_workspace: Workspace,
    lab_site: Site,
    ontap: OntapGateway,
    perforce: Any,
) -> None:
    uuid = lab_workspace.volume_uuid
    name = leftover_of(lab_workspace, ontap, perforce)
    retirement = lab_workspace.operations.get(kind=WorkspaceOperation.RETIRE)
    if why_not == "mounted":
        ontap.mount_volume(uuid, junction_path="/elsewhere")
    elif why_not == "rescue":
        Rescue.objects.create(workspace=lab_workspace, operation=retirement)
    elif why_not == "no retirement":
        Operation.objects.filter(pk=retirement.pk).update(state="failed")
    elif why_not == "parent":
        # The same tag on a copy that somebody made of the clone.
        snapshot = ontap.create_snapshot(uuid, name="s", comment="")
        copy = ontap.create_clone(
            CloneSpec(
                name=f"{name}_copy",
                parent_volume=name,
                parent_snapshot=snapshot.name,
                comment=lab_workspace.volume_comment,
                uid=None,
                gid=None,
            )
        )
        name = copy.name

    for _ in range(3):
        findings = check_drift(lab_site)
        some_time_later()

    found = next(finding for finding in findings if finding.subject == name)
    kind = K.VOLUME_TAG_COPIED if why_not == "parent" else K.VOLUME_WITHOUT_ROW
    action = A.REMOVE if why_not == "parent" else A.ADOPT
    assert (found.kind, found.action) == (kind, action)
    assert not found.is_automatic
    assert ontap.find_volume(name) is not None


def test_a_leftover_that_may_hold_work_is_retired_again_with_its_rescue(
    lab_workspace: Workspace,
    lab_site: Site,
    ontap: OntapGateway,
    perforce: Any,
    admin: User,
) -> None:
    untracked = lab_workspace.path / "src" / "notes.txt"
    untracked.write_text("untracked\n")
    if os.geteuid() == 0:
        os.chown(untracked, lab_workspace.uid, lab_workspace.gid)
    leftover_of(lab_workspace, ontap, perforce)
    retirement = lab_workspace.operations.get(kind=WorkspaceOperation.RETIRE)
    Operation.objects.filter(pk=retirement.pk).update(state="failed")
    name = lab_workspace.name
    found = only(check_drift(lab_site), K.VOLUME_WITHOUT_ROW)
    stale = Finding.objects.get(pk=found.pk)
    stale.action = A.REMOVE
    with pytest.raises(CannotRepair, match="adopt it, then retire it"):
        remove_volume(stale)

    assert "is being restored" in resolve(found, admin).resolution

    settle(lab_workspace)
    assert lab_workspace.state == Workspace.State.READY, lab_workspace.status_message
    assert (lab_workspace.retired_at, lab_workspace.name) == (None, name)
    workspace_retire(
        by=lab_workspace.owner, workspace=lab_workspace, unsubmitted=Unsubmitted.RESCUE
    )
    settle(lab_workspace)
    assert lab_workspace.state == Workspace.State.TRASHED, lab_workspace.status_message
    rescue = Rescue.objects.get(operation__subject__workspace=lab_workspace)
    assert "src/notes.txt" in (Path(rescue.directory) / "manifest.json").read_text()


def test_a_template_of_nobody_is_not_removed_below_its_clones(
    lab_workspace: Workspace, lab_site: Site, ontap: OntapGateway, admin: User
) -> None:
    """Restored from before its template was made: all of it stays, and mounted."""
    template = lab_workspace.template
    other = str(template.tag)[:8] + str(uuid.uuid4())[8:]  # named as it would name it
    comment = f"cloneyard:v1:template={other}"
    ontap.set_volume_comment(template.volume_uuid, comment=comment)
    try:
        found = next(
            each
            for each in check_drift(lab_site)
            if each.external_id == template.volume_uuid
            and each.kind == K.VOLUME_WITHOUT_ROW
        )

        assert found.action == A.ADOPT
        found.action = A.REMOVE  # as it was found before it had any
        with pytest.raises(CannotRepair, match="clones, which may have"):
            remove_volume(found)
        said = resolve(found, admin).status_message
        assert "Another template is called" in said
        seen = ontap.get_volume(template.volume_uuid)
        assert seen.junction_path == template.junction_path
    finally:
        ontap.set_volume_comment(template.volume_uuid, comment=template.volume_comment)


def test_what_came_into_use_again_is_not_removed(
    lab_workspace: Workspace,
    lab_site: Site,
    ontap: OntapGateway,
    perforce: Any,
) -> None:
    """The check before the act decides, not the finding."""
    uuid = lab_workspace.volume_uuid
    name = leftover_of(lab_workspace, ontap, perforce)
    found = only(check_drift(lab_site), K.VOLUME_WITHOUT_ROW)
    ontap.mount_volume(uuid, junction_path="/in-use")
    finding_asked(found)

    run_jobs_once()

    found.refresh_from_db()
    assert found.resolved_at is None
    assert "mounted at /in-use by now" in found.status_message
    assert ontap.find_volume(name) is not None


def test_a_lost_volume_fails_its_workspace_when_an_administrator_says_so(
    lab_workspace: Workspace, lab_site: Site, ontap: OntapGateway, admin: User
) -> None:
    ontap.delete_volume(lab_workspace.volume_uuid, force=True)

    for _ in range(3):
        found = only(check_drift(lab_site), K.ROW_WITHOUT_VOLUME)
        some_time_later()
    lab_workspace.refresh_from_db()
    assert lab_workspace.state == Workspace.State.READY

    resolve(found, admin)

    lab_workspace.refresh_from_db()
    assert lab_workspace.state == Workspace.State.FAILED
    assert lab_workspace.status_code == "volume_lost"
    assert found.resolution == "The workspace was marked as failed."
    assert check_drift(lab_site) == []


def test_a_tag_that_was_lost_is_put_back_where_all_else_proves_it_ours(
    lab_workspace: Workspace, lab_site: Site, ontap: OntapGateway, admin: User
) -> None:
    """A comment changed by hand hides the tag, not the volume."""
    ontap.set_volume_comment(lab_workspace.volume_uuid, comment="of alice")
    found = only(check_drift(lab_site), K.VOLUME_UNTAGGED)
    assert (found.action, found.is_automatic) == (A.FINISH, False)
    assert found.details["comment"] == "of alice"
    # Somebody else's volume by now: nothing is touched.
    change(ontap, lab_workspace.volume_uuid, name="cy_theirs")
    assert resolve(found, admin).resolved_at is None
    assert "are not those of" in found.status_message
    lost = only(check_drift(lab_site), K.ROW_WITHOUT_VOLUME)
    assert "somebody took it over" in lost.sentence
    assert ontap.get_volume(lab_workspace.volume_uuid).comment == "of alice"
    change(ontap, lab_workspace.volume_uuid, name=lab_workspace.volume_name)

    found = only(check_drift(lab_site), K.VOLUME_UNTAGGED)
    resolve(found, admin)

    volume = ontap.get_volume(lab_workspace.volume_uuid)
    assert volume.comment == lab_workspace.volume_comment
    assert "its comment was “of alice”" in found.resolution
    assert check_drift(lab_site) == []


def change(ontap: OntapGateway, uuid: str, **body: str) -> None:
    """Change a volume behind our back, by what no verb of ours does."""
    ontap._change_volume(
        uuid,
        body=body,
        is_done=lambda volume: True,
    )


def test_a_volume_that_is_offline_is_brought_back_to_its_place(
    lab_workspace: Workspace, lab_site: Site, ontap: OntapGateway, admin: User
) -> None:
    change(ontap, lab_workspace.volume_uuid, state="offline")
    found = only(check_drift(lab_site), K.VOLUME_OFFLINE)
    assert (found.action, found.is_automatic) == (A.FINISH, False)

    resolve(found, admin)

    volume = ontap.get_volume(lab_workspace.volume_uuid)
    assert (volume.state, volume.junction_path) == (
        "online",
        lab_workspace.junction_path,
    )
    assert (lab_workspace.path / "src").is_dir()
    assert check_drift(lab_site) == []


def test_a_volume_that_somebody_resized_gets_its_size_again(
    lab_workspace: Workspace, lab_site: Site, ontap: OntapGateway, admin: User
) -> None:
    template = lab_workspace.template
    uuid, size = template.volume_uuid, template.volume_size_bytes
    ontap.set_volume_size(uuid, size_bytes=size * 2)
    found = only(check_drift(lab_site), K.VOLUME_SIZE_DIFFERS)
    assert (found.action, found.is_automatic) == (A.FINISH, False)
    assert "and its definition says 100 MiB" in found.sentence

    resolve(found, admin)

    assert ontap.get_volume(uuid).size_bytes == size
    found.refresh_from_db()
    assert "has 100 MiB again, and had 200 MiB" in found.resolution
    assert check_drift(lab_site) == []
    # What ONTAP grew or shrank by itself is no drift.
    ontap.set_volume_size(uuid, size_bytes=size * 2)
    ontap.set_volume_settings(uuid, VolumeSettings(autosize_mode="grow"))
    assert check_drift(lab_site) == []
    ontap.set_volume_settings(uuid, VolumeSettings(autosize_mode="grow_shrink"))
    ontap.set_volume_size(uuid, size_bytes=size // 2)
    assert check_drift(lab_site) == []
    # Other tests have clones of the same volume.
    ontap.set_volume_settings(uuid, VolumeSettings(autosize_mode="off"))
    ontap.set_volume_size(uuid, size_bytes=size)


def test_a_clone_that_somebody_resized_gets_its_size_again(
    lab_workspace: Workspace, lab_site: Site, ontap: OntapGateway, admin: User
) -> None:
    uuid, size = lab_workspace.volume_uuid, lab_workspace.volume_size_bytes
    assert size == lab_workspace.template.volume_size_bytes
    ontap.set_volume_size(uuid, size_bytes=size * 2)
    # While a policy grows it, ONTAP may have done so already.
    growth = Growth.objects.create(
        workspace=lab_workspace, from_bytes=size, to_bytes=size * 2, percent=95
    )
    assert check_drift(lab_site) == []
    growth.delete()
    found = only(check_drift(lab_site), K.VOLUME_SIZE_DIFFERS)
    assert "has 200 MiB, and Cloneyard gave it 100 MiB" in found.sentence
    Workspace.objects.update(volume_size_bytes=1)
    kept = resolve(found, admin)
    assert "more than fits in 1 B. It keeps its size" in kept.status_message
    assert ontap.get_volume(uuid).size_bytes == size * 2
    Workspace.objects.update(volume_size_bytes=size)

    resolve(found, admin)

    assert ontap.get_volume(uuid).size_bytes == size
    lab_workspace.refresh_from_db()
    assert lab_workspace.actual_size_bytes == size
    assert check_drift(lab_site) == []


def test_settings_that_somebody_changed_are_restored_by_themselves_or_at_once(
    lab_workspace: Workspace, lab_site: Site, ontap: OntapGateway, admin: User, lab: Lab
) -> None:
    of_template, of_clone = (
        lab_workspace.template.volume_uuid,
        lab_workspace.volume_uuid,
    )
    before = ontap.get_volume_settings(of_template)
    policy = volume_policy_save(
        by=admin,
        site=lab_site,
        autosize_mode="grow",
        snapshot_reserve_percent=10,
        fractional_reserve=100,
    )
    differing = VolumeSettings(autosize_mode="off", snapshot_reserve_percent=5)
    assert check_drift(lab_site) == []  # it is not applied yet
    run_jobs_once()
    assert check_drift(lab_site) == []  # the clone is older
    ontap.set_volume_settings(of_template, differing)

    found = only(check_drift(lab_site), K.VOLUME_SETTINGS_DIFFER)

    assert (found.template, found.is_automatic) == (lab_workspace.template, True)
    assert "has autosize off, snapshot reserve 5 %, and its policy says autosize " in (
        found.sentence
    )
    assert found.details["fields"]["Snapshot reserve"] == {"is": "5 %", "was": "10 %"}
    assert "autosize grow, instead of off" in preview(found)[1]
    some_time_later()
    assert check_drift(lab_site) == []
    seen = ontap.get_volume_settings(of_template)
    assert (seen.autosize_mode, seen.snapshot_reserve_percent) == ("grow", 10)

    # A clone is compared with what it inherits from its template's volume.
    VolumePolicy.objects.filter(pk=policy.pk).update(
        applied_at=timezone.now() - dt.timedelta(days=1)
    )
    found = only(check_drift(lab_site), K.VOLUME_SETTINGS_DIFFER)
    assert "and it was made with fractional reserve 100 %." in found.sentence
    lab.break_ontap(
        {"method": "PATCH", "path": "/api/storage/volumes*", "status": 403, "code": "6"}
    )
    assert "not permitted" in resolve(found, admin).status_message
    lab.break_ontap()
    assert f"Set in ONTAP for {found.subject}: fractional reserve 100 %." == (
        resolve(found, admin).resolution
    )
    assert ontap.get_volume_settings(of_clone).fractional_reserve == 100
    assert check_drift(lab_site) == []
    # Other tests have clones of the same volume.
    changed = {
        name: getattr(before, name)
        for name in ("autosize_mode", "snapshot_reserve_percent", "fractional_reserve")
    }
    ontap.set_volume_settings(of_template, VolumeSettings(**changed))


def test_a_volume_whose_id_was_lost_is_adopted_by_a_failed_row(
    lab_workspace: Workspace, lab_site: Site, ontap: OntapGateway
) -> None:
    uuid = lab_workspace.volume_uuid
    Workspace.objects.filter(pk=lab_workspace.pk).update(
        volume_uuid="", state=Workspace.State.FAILED, status_code="unreachable"
    )

    found = only(check_drift(lab_site), K.VOLUME_WITHOUT_ROW)
    assert (found.action, found.is_automatic) == (A.ADOPT, True)
    some_time_later()
    assert check_drift(lab_site) == []

    lab_workspace.refresh_from_db()
    assert (lab_workspace.volume_uuid, lab_workspace.state) == (uuid, "failed")
    assert ontap.get_volume(uuid).comment == lab_workspace.volume_comment


@pytest.mark.integration
def test_a_copied_tag_makes_no_volume_ours_and_is_removed(
    lab_workspace: Workspace, lab_site: Site, ontap: OntapGateway, admin: User
) -> None:
    copy = ontap.create_volume(
        VolumeSpec(
            name="foreign_copy",
            aggregate=lab_site.aggregate,
            size_bytes=20 * 2**20,
            comment=lab_workspace.volume_comment,
            export_policy="default",
            uid=20000,
            gid=20000,
        )
    )

    found = only(check_drift(lab_site), K.VOLUME_TAG_COPIED)
    assert (found.subject, found.action) == (copy.name, A.REMOVE)
    assert not found.is_automatic
    assert found.details["own"]["uuid"] == lab_workspace.volume_uuid

    resolve(found, admin)

    assert ontap.get_volume(copy.uuid) == dataclasses.replace(copy, comment="")
    assert lab_workspace.volume_comment in found.resolution
    assert check_drift(lab_site) == []


@pytest.mark.integration
def test_a_template_without_its_volume_fails_when_an_administrator_says_so(
    built_template: Template, lab_site: Site, ontap: OntapGateway, admin: User
) -> None:
    long_ago()
    ontap.unmount_volume(built_template.volume_uuid)
    ontap.delete_volume(built_template.volume_uuid, force=True)

    found = only(check_drift(lab_site), K.ROW_WITHOUT_VOLUME)

    assert (found.template, found.action) == (built_template, A.FINISH)
    assert built_template.snapshots.filter(deleted_at=None).exists()

    resolve(found, admin)

    built_template.refresh_from_db()
    assert built_template.state == Template.State.FAILED
    assert built_template.status_code == "volume_lost"
    assert not built_template.snapshots.filter(deleted_at=None).exists()
    assert check_drift(lab_site) == []


def test_a_clone_that_was_unmounted_is_mounted_on_a_click(
    lab_workspace: Workspace, lab_site: Site, ontap: OntapGateway, admin: User
) -> None:
    ontap.unmount_volume(lab_workspace.volume_uuid)
    found = only(check_drift(lab_site), K.JUNCTION_DIFFERS)
    assert (found.action, found.is_automatic) == (A.FINISH, False)

    resolve(found, admin)

    assert (
        found.resolution == f"The volume was mounted at {lab_workspace.junction_path}."
    )
    assert check_drift(lab_site) == []


@pytest.mark.integration
def test_a_clone_that_was_mounted_elsewhere_comes_back(
    lab_workspace: Workspace, lab_site: Site, ontap: OntapGateway, admin: User
) -> None:
    ontap.unmount_volume(lab_workspace.volume_uuid)
    ontap.mount_volume(lab_workspace.volume_uuid, junction_path="/elsewhere")
    found = only(check_drift(lab_site), K.JUNCTION_DIFFERS)
    assert "/elsewhere" in found.sentence

    resolve(found, admin)

    volume = ontap.get_volume(lab_workspace.volume_uuid)
    assert volume.junction_path == lab_workspace.junction_path


@pytest.mark.integration
def test_what_is_in_the_trash_is_not_mounted(
    lab_workspace: Workspace,
    lab_site: Site,
    ontap: OntapGateway,
    perforce: Any,
    admin: User,
) -> None:
    perforce.clients.delete(lab_workspace.client_name)
    now = timezone.now()
    Workspace.objects.filter(pk=lab_workspace.pk).update(
        state=Workspace.State.TRASHED, trashed_at=now, purge_at=now
    )
    found = only(check_drift(lab_site), K.JUNCTION_DIFFERS)

    resolve(found, admin)

    assert ontap.get_volume(lab_workspace.volume_uuid).junction_path == ""
    assert check_drift(lab_site) == []
