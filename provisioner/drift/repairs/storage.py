"""Repairs on ONTAP: volumes, junctions, snapshots, jobs.

Each returns how it was resolved.
"""

from __future__ import annotations

from collections.abc import Callable

from django.db import transaction

from provisioner.catalog.models import Snapshot, Template
from provisioner.catalog.states import set_template_state
from provisioner.catalog.volume_policies import policies_of as volume_policies_of
from provisioner.catalog.volume_policies import settings_text
from provisioner.copies.models import WorkspaceCopy
from provisioner.drift.comparison.wanted import settings_wanted, wanted_size
from provisioner.drift.models import Finding
from provisioner.drift.repairs.adopting import (
    adopt_mirror,
    adopt_template,
    adopt_workspace,
    bring_back,
)
from provisioner.drift.repairs.evidence import (
    GONE,
    CannotRepair,
    find_volume,
    resting_row,
    resting_row_or_mirror,
    volume_now,
    without_hidden_parent,
    workspace_in,
)
from provisioner.gateways import registry
from provisioner.gateways.errors import NotFound
from provisioner.gateways.ontap.gateway import OntapGateway
from provisioner.gateways.ontap.types import Volume
from provisioner.lib import clocks
from provisioner.lib.sizes import size_text
from provisioner.mirrors.models import Mirror
from provisioner.mirrors.queries import parent_volume
from provisioner.sites.export_policies import ensure_policy_rules, policies_of
from provisioner.workspaces.models import Workspace
from provisioner.workspaces.queries import parent_of
from provisioner.workspaces.states import set_workspace_state


def remove_volume(finding: Finding) -> str:
    row = resting_row(finding)
    if isinstance(row, Workspace) and row.state != Workspace.State.RETIRED:
        raise CannotRepair(f"The workspace is {row.get_state_display().lower()}.")
    if isinstance(row, Workspace) and not finding.is_automatic:
        raise CannotRepair("It may hold work: adopt it, then retire it.")
    if isinstance(row, Template):
        raise CannotRepair("It is a template's volume.")
    if finding.tag_kind == Finding.TagKind.WORKSPACE:
        raise CannotRepair("It may hold work: adopt it, then retire it.")
    if finding.tag and Template.objects.filter(tag=finding.tag).exists():
        raise CannotRepair("Its tag belongs to a row now.")
    volume = volume_now(finding)
    if volume is None:
        return GONE
    ontap = registry.ontap(finding.site)
    if row is None:
        require_no_clones(ontap, volume)
        _require_no_owners(ontap, volume)
    if volume.junction_path:
        if row is not None:
            raise CannotRepair(f"It is mounted at {volume.junction_path} by now.")
        ontap.unmount_volume(volume.uuid)
    ontap.delete_volume(volume.uuid, force=False)
    return f"The volume {volume.name} was deleted."


def require_no_clones(ontap: OntapGateway, volume: Volume) -> None:
    """Refuse before anything is unmounted: clones hold work, and need their parent.

    Raises: CannotRepair.
    """
    clones = sorted(
        each.name
        for each in ontap.list_volumes()
        if each.clone_parent and each.clone_parent.volume_uuid == volume.uuid
    )
    if clones:
        raise CannotRepair(
            f"{volume.name} has {len(clones)} clones, which may have unsubmitted "
            f"work; the first is {clones[0]}. Nothing was changed. Handle these "
            "first."
        )


def _require_no_owners(ontap: OntapGateway, volume: Volume) -> None:
    """Refuse a volume whose snapshots clones or SnapMirror need.

    Raises: CannotRepair.
    """
    for snapshot in ontap.list_snapshots(volume.uuid):
        if snapshot.owners:
            raise CannotRepair(
                f"The snapshot {snapshot.name} of {volume.name} is in use: "
                f"{', '.join(snapshot.owners)}. Nothing was changed."
            )


_ADOPTED_BY: dict[str, Callable[[Finding], str]] = {
    Finding.TagKind.TEMPLATE: adopt_template,
    Finding.TagKind.WORKSPACE: adopt_workspace,
    Finding.TagKind.MIRROR: adopt_mirror,
}


def adopt_volume(finding: Finding) -> str:
    row = resting_row_or_mirror(finding)
    if row is None:
        return _ADOPTED_BY[finding.tag_kind](finding)
    volume = volume_now(finding)
    if volume is None:
        return GONE
    if volume.name != row.volume_name:
        raise CannotRepair(f"The volume is named {volume.name} by now.")
    if isinstance(row, Workspace) and row.state == Workspace.State.RETIRED:
        return bring_back(row, volume, by=finding.asked_by)
    type(row)._default_manager.filter(pk=row.pk).update(volume_uuid=volume.uuid)
    return f"The volume {volume.name} was adopted."


def remove_tag(finding: Finding) -> str:
    row = resting_row_or_mirror(finding)
    assert row is not None
    volume = find_volume(finding)
    if volume is None or not row.is_tagged(volume.comment):
        return GONE
    is_own = (
        volume.uuid == row.volume_uuid
        if row.volume_uuid
        else volume.name == row.volume_name
    )
    if is_own:
        raise CannotRepair(f"The volume {volume.name} is the one of {row.name} by now.")
    registry.ontap(finding.site).set_volume_comment(volume.uuid, comment="")
    return f"The tag of {volume.name} was removed; it was {volume.comment}."


def put_tag_back(finding: Finding) -> str:
    row = resting_row_or_mirror(finding)
    assert row is not None
    volume = find_volume(finding)
    if volume is None or row.is_tagged(volume.comment):
        return GONE
    volume = without_hidden_parent(registry.ontap(finding.site), volume)
    parent = ""
    if isinstance(row, Workspace) and not row.is_independent:
        parent = parent_of(row)
    if isinstance(row, WorkspaceCopy):
        parent = parent_volume(row.workspace.snapshot, row.site)
    seen_parent = volume.clone_parent.volume_name if volume.clone_parent else ""
    is_proven = (volume.uuid, volume.name) == (row.volume_uuid, row.volume_name)
    if not is_proven or seen_parent not in ("", parent):
        raise CannotRepair(
            f"Name, id or parent of the volume {volume.name} are not those of "
            f"{row.name} by now."
        )
    registry.ontap(finding.site).set_volume_comment(
        volume.uuid, comment=row.volume_comment
    )
    return (
        f"The volume {volume.name} has its tag again; its comment was "
        f"“{volume.comment}”."
    )


def bring_online(finding: Finding) -> str:
    row = resting_row_or_mirror(finding)
    volume = volume_now(finding)
    if row is None or volume is None or volume.state == "online":
        return GONE
    ontap = registry.ontap(finding.site)
    volume = ontap.bring_volume_online(volume.uuid)
    if isinstance(row, Mirror | WorkspaceCopy) or volume.junction_path:
        return "The volume is online again."
    if row.state in (Workspace.State.READY, Template.State.READY):
        ontap.mount_volume(volume.uuid, junction_path=row.junction_path)
        return f"The volume is online again, and mounted at {row.junction_path}."
    return "The volume is online again."


def resize(finding: Finding) -> str:
    row, volume = resting_row_or_mirror(finding), volume_now(finding)
    wanted = None if row is None else wanted_size(row)
    if volume is None or wanted is None or not volume.is_resized_from(wanted):
        return GONE
    if not volume.fits_in(wanted):
        raise CannotRepair(
            f"The volume {volume.name} holds {size_text(volume.used_bytes or 0)}, more "
            f"than fits in {size_text(wanted)}. It keeps its size."
            + (" Give the template more." if isinstance(row, Template) else "")
        )
    ontap = registry.ontap(finding.site)
    resized = ontap.set_volume_size(volume.uuid, size_bytes=wanted)
    if isinstance(row, Template | Workspace):
        rows = type(row)._default_manager.filter(pk=row.pk)
        rows.update(actual_size_bytes=resized.size_bytes)
    return (
        f"The volume {volume.name} has {size_text(resized.size_bytes)} again, and had "
        f"{size_text(volume.size_bytes)}."
    )


def restore_settings(finding: Finding) -> str:
    row, volume = resting_row_or_mirror(finding), volume_now(finding)
    if row is None or volume is None:
        return GONE
    ontap = registry.ontap(finding.site)
    wanted = settings_wanted(row, volume_policies_of(finding.site), volume=volume)
    lacking = wanted.lacking_in(ontap.get_volume_settings(volume.uuid))
    if not lacking:
        return GONE
    ontap.set_volume_settings(volume.uuid, lacking)
    return f"Set in ONTAP for {volume.name}: {settings_text(lacking)}."


def finish_lost_volume(finding: Finding) -> str:
    row = resting_row(finding)
    assert row is not None
    if _is_there(finding, row):
        return "The volume is there."
    if isinstance(row, Template):
        return _fail_template(row)
    workspace = workspace_in(finding, Workspace.State.READY, Workspace.State.TRASHED)
    set_workspace_state(
        workspace,
        Workspace.State.FAILED,
        code="volume_lost",
        message=f"Its volume {workspace.volume_name} is gone from ONTAP, and nobody "
        "asked Cloneyard for that. Retire the workspace to remove what is left of it.",
    )
    return "The workspace was marked as failed."


def _is_there(finding: Finding, row: Workspace | Template) -> bool:
    """Return whether the row's volume exists, by its tag or by its uuid and name."""
    ontap = registry.ontap(finding.site)
    by_name = ontap.find_volume(row.volume_name)
    if by_name is not None and (
        row.is_tagged(by_name.comment) or by_name.uuid == row.volume_uuid
    ):
        return True
    if not row.volume_uuid:
        return False
    try:
        return row.is_tagged(ontap.get_volume(row.volume_uuid).comment)
    except NotFound:
        return False


def _fail_template(template: Template) -> str:
    with transaction.atomic():
        set_template_state(
            template,
            Template.State.FAILED,
            code="volume_lost",
            message=f"Its volume {template.volume_name} is gone from ONTAP, and nobody "
            "asked Cloneyard for that. Build the template to make a new one.",
        )
        Snapshot.objects.filter(template=template).mark_deleted(
            at=clocks.database_now()
        )
    return "The template was marked as failed, and its snapshots were withdrawn."


def finish_junction(finding: Finding) -> str:
    row = resting_row(finding)
    volume = volume_now(finding)
    if row is None or volume is None:
        return GONE
    is_trashed = isinstance(row, Workspace) and row.state == Workspace.State.TRASHED
    if not is_trashed and row.state not in (
        Workspace.State.READY,
        Template.State.READY,
    ):
        raise CannotRepair(f"It is {row.get_state_display().lower()} by now.")
    wanted = "" if is_trashed else row.junction_path
    if volume.junction_path == wanted:
        return GONE
    ontap = registry.ontap(finding.site)
    if volume.junction_path:
        ontap.unmount_volume(volume.uuid)
    if wanted:
        _let_its_owner_in(row, volume)
        ontap.mount_volume(volume.uuid, junction_path=wanted)
        return f"The volume was mounted at {wanted}."
    return "The volume was unmounted."


def _let_its_owner_in(row: Workspace | Template, volume: Volume) -> None:
    """Restore a clone's site policy if a forgotten retirement had closed it.

    That happens after an older backup of the database was restored.
    """
    site = row.site
    if isinstance(row, Template) or volume.export_policy != site.frozen_policy:
        return
    ontap, policy = registry.ontap(site), site.export_policy
    ensure_policy_rules(ontap, policy, rules=policies_of(site)[policy])
    ontap.set_volume_policies(volume.uuid, export_policy=policy)


def remove_snapshot(finding: Finding) -> str:
    row = resting_row(finding)
    assert isinstance(row, Template)
    name = finding.snapshot
    rows = Snapshot.objects.filter(template=row, name=name)
    needed = Workspace.objects.filter(snapshot__in=rows).there()
    if rows.there().exists() or needed.exists():
        raise CannotRepair(f"The snapshot {name} is needed now.")
    ontap = registry.ontap(finding.site)
    found = ontap.find_snapshot(finding.volume_uuid, name=name)
    if found is None or found.uuid != finding.external_id:
        return GONE
    if found.owners:
        raise CannotRepair(f"The snapshot {name} is in use: {', '.join(found.owners)}.")
    ontap.delete_snapshot(finding.volume_uuid, snapshot_uuid=found.uuid)
    return f"The snapshot {name} was deleted."


def finish_lost_snapshot(finding: Finding) -> str:
    row = resting_row(finding)
    assert isinstance(row, Template)
    there = registry.ontap(finding.site).list_snapshots(finding.volume_uuid)
    if finding.external_id in {snapshot.uuid for snapshot in there}:
        return GONE
    lost = Snapshot.objects.filter(template=row, ontap_uuid=finding.external_id)
    lost.mark_deleted(at=clocks.database_now())
    return f"The snapshot {finding.snapshot} was withdrawn."


def cancel_job(finding: Finding) -> str:
    resting_row_or_mirror(finding)
    ontap = registry.ontap(finding.site)
    job = finding.external_id
    if job not in {each.uuid for each in ontap.list_unfinished_jobs()}:
        return "The job had ended."
    ontap.cancel_job(job)
    return f"The job {job} was canceled."
