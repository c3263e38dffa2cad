"""The life of a template: rename, hand over, archive, delete."""

from __future__ import annotations

from django.db import transaction

from provisioner.accounts import permissions
from provisioner.accounts.models import User
from provisioner.accounts.names import one_line
from provisioner.accounts.refusals import AccountNotActive
from provisioner.audit_log.actions import record_event
from provisioner.catalog.actions.templates import is_settling
from provisioner.catalog.dependents import delete_dependents, goes_with, needed_by
from provisioner.catalog.models import (
    PinnedTemplate,
    Snapshot,
    Template,
    TemplateOperation,
    TemplateWatch,
    VolumePolicy,
)
from provisioner.catalog.refusals import TemplateBusy, TemplateNeeded
from provisioner.catalog.states import set_template_state
from provisioner.engine.models import Operation
from provisioner.engine.starting import start_operation
from provisioner.lib import clocks

LONGEST_TITLE = 100
LONGEST_REASON = 500


def template_rename(*, by: User, template: Template, title: str) -> Template:
    """Change a template's title. Its name does not change.

    Raises: NotAllowed, InvalidRequest.
    """
    permissions.require(permissions.can_change_template(by, template))
    title = one_line(title, word="A title", most=LONGEST_TITLE)
    with transaction.atomic():
        row = _locked(template)
        if row.title != title:
            row.title = title
            row.save(update_fields=["title"])
            called = f"Titled “{title}”." if title else "Removed its title."
            record_event(row, kind="template_renamed", message=called, actor=by)
    return row


def template_hand_over(*, by: User, template: Template, owner: User) -> Template:
    """Make somebody else the owner of a template.

    Raises: NotAllowed, AccountNotActive.
    """
    permissions.require(permissions.can_change_template(by, template))
    if not owner.is_active:
        raise AccountNotActive(username=owner.username)
    with transaction.atomic():
        row = _locked(template)
        before = row.owner
        if before != owner:
            row.owner = owner
            row.save(update_fields=["owner"])
            record_event(
                row,
                kind="template_handed_over",
                message=f"Its owner is {owner.username} now, and was "
                f"{before.username}.",
                actor=by,
                data={"owner": {"before": before.username, "after": owner.username}},
            )
    return row


def template_archive(*, by: User, template: Template, reason: str = "") -> Template:
    """Archive a template: stop offering it and building it.

    Existing workspaces live on, a running build finishes, and warm pools are emptied.
    An archived template stays archived, with its first reason.

    Raises: NotAllowed, InvalidRequest.
    """
    permissions.require(permissions.can_change_template(by, template))
    reason = one_line(reason, word="A reason", most=LONGEST_REASON)
    with transaction.atomic():
        row = _locked(template)
        if not row.is_archived:
            _archive(row, by=by, reason=reason)
    return row


def template_unarchive(*, by: User, template: Template) -> Template:
    """Unarchive a template: offer it again, and build it as before.

    Raises: NotAllowed, TemplateBusy (it is being deleted).
    """
    permissions.require(permissions.can_change_template(by, template))
    with transaction.atomic():
        row = _locked(template)
        if row.state == Template.State.DELETING:
            raise TemplateBusy(name=row.name)
        if row.is_archived:
            row.archived_at, row.archived_by, row.archive_reason = None, None, ""
            row.save(update_fields=["archived_at", "archived_by", "archive_reason"])
            record_event(
                row,
                kind="template_unarchived",
                message="Unarchived: it gives new workspaces again.",
                actor=by,
            )
    return row


def template_delete(*, by: User, template: Template, reason: str = "") -> Operation:
    """Delete a template that nothing needs: its client, its volume, its snapshots.

    Rows that refer to it are deleted as well, except history. A repeated call returns
    the operation under way.

    Raises: NotAllowed, InvalidRequest, TemplateBusy, TemplateNeeded.
    """
    permissions.require(permissions.can_manage_templates(by))
    reason = one_line(reason, word="A reason", most=LONGEST_REASON)
    with transaction.atomic():
        row = _locked(template)
        if row.state == Template.State.DELETING:
            return row.operations.filter(kind=TemplateOperation.DELETE)[:1].get()
        if row.state == Template.State.BUILDING or is_settling(row):
            raise TemplateBusy(name=row.name)
        # Whoever asks for a workspace of one holds its lock until that row is there.
        list(row.snapshots.select_for_update().order_by("pk"))
        if found := needed_by(row):
            what = ", ".join(each.words for each in found)
            raise TemplateNeeded(name=row.name, what=what)
        gone = [each.words for each in goes_with(row)]
        Snapshot.objects.filter(template=row).mark_deleted(at=clocks.database_now())
        delete_dependents(row)
        PinnedTemplate.objects.filter(template=row).delete()
        VolumePolicy.objects.filter(template=row).delete()
        if not row.is_archived:
            _archive(row, by=by, reason=reason)
        set_template_state(
            row,
            Template.State.DELETING,
            message="Requested its deletion with its snapshots, volume and client"
            f"{''.join(f', {each}' for each in gone)}.",
            actor=by,
        )
        return start_operation(TemplateOperation.DELETE, by=by, about=row)


def _locked(template: Template) -> Template:
    # Not as a key: workspaces that refer to it are being asked for meanwhile.
    templates = Template.objects.select_for_update(of=("self",), no_key=True)
    return templates.select_related("owner", "site__perforce_server").get(
        pk=template.pk
    )


def _archive(row: Template, *, by: User, reason: str) -> None:
    row.archived_at, row.archived_by = clocks.database_now(), by
    row.archive_reason = reason
    row.save(update_fields=["archived_at", "archived_by", "archive_reason"])
    # What is submitted meanwhile is looked up when it is unarchived.
    TemplateWatch.objects.filter(template=row).delete()
    record_event(
        row,
        kind="template_archived",
        message="Archived: no new workspaces, existing ones stay.",
        reason=reason,
        actor=by,
    )
