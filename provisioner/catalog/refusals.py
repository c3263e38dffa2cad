"""Refusals about templates, builds and snapshots."""

from __future__ import annotations

from provisioner.catalog.models import Snapshot, Template
from provisioner.lib.refusals import ActionRefused


class NoSnapshot(ActionRefused):
    """The template “{template}” has no published snapshot yet. Build it first, or wait
    for its build to end.
    """

    code = "no_snapshot"


class NoGoodSnapshot(ActionRefused):
    """The template “{template}” has no snapshot that is {quality}. Choose one of those
    that it has, or wait for a build that is."""

    code = "no_good_snapshot"


class SnapshotGone(ActionRefused):
    """The snapshot “{snapshot}” of this template is gone. Choose a newer one."""

    code = "snapshot_gone"


class SnapshotWithdrawn(ActionRefused):
    """The snapshot “{snapshot}” was withdrawn ({reason}). Choose another one."""

    code = "snapshot_withdrawn"


class SnapshotInParts(ActionRefused):
    """The snapshot “{snapshot}” has parts at another change. Use one of a whole build,
    or build the template."""

    code = "snapshot_in_parts"


class NothingToRollBackTo(ActionRefused):
    """The template “{template}” has no good snapshot from before that build. Choose one
    on its page, or build an older change."""

    code = "nothing_to_roll_back_to"


class BuildDidNotFail(ActionRefused):
    """Only a build of the template that failed can be rolled back."""

    code = "build_did_not_fail"


class RefreshUnchanged(ActionRefused):
    """The refresh of “{template}” is {how}."""

    code = "refresh_unchanged"


class TemplateBusy(ActionRefused):
    """The template “{name}” is being built, moved, resized or deleted. Wait for that
    to end."""

    code = "template_busy"


class TemplateArchived(ActionRefused):
    """The template “{name}” is archived: nobody gets a new workspace of it, and it is
    not built. Choose another one, or ask its owner to unarchive it."""

    code = "template_archived"


class TemplateNeeded(ActionRefused):
    """The template “{name}” is still needed by {what}. Deal with these first."""

    code = "template_needed"


class NothingToStop(ActionRefused):
    """The template “{name}” is not being built, or its snapshot is being taken: there
    is nothing left to stop."""

    code = "nothing_to_stop"


class TemplateInvalid(ActionRefused):
    """This template cannot be used as it is."""

    code = "template_invalid"
    http_status = 400


class NothingToRefresh(ActionRefused):
    """The template “{template}” has no snapshot of its whole view of which parts could
    be brought up to date. Build all of it first."""

    code = "nothing_to_refresh"


def require_not_archived(template: Template) -> None:
    """Refuse an archived template.

    Raises: TemplateArchived.
    """
    if template.is_archived:
        raise TemplateArchived(name=template.name)


def require_offered(snapshot: Snapshot) -> None:
    """Refuse a snapshot that is deleted or withdrawn.

    Raises: SnapshotGone, SnapshotWithdrawn.
    """
    if not snapshot.is_there:
        raise SnapshotGone(snapshot=snapshot.name)
    if snapshot.is_withdrawn:
        reason = snapshot.withdraw_reason
        raise SnapshotWithdrawn(snapshot=snapshot.name, reason=reason)
