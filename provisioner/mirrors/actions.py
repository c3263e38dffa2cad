"""What is asked of mirrors."""

from __future__ import annotations

from django.db import IntegrityError, transaction

from provisioner.accounts import permissions
from provisioner.accounts.models import User
from provisioner.audit_log.actions import record_event
from provisioner.catalog.models import Snapshot, Template
from provisioner.catalog.refusals import (
    SnapshotGone,
    SnapshotWithdrawn,
    require_not_archived,
)
from provisioner.engine.models import Operation
from provisioner.engine.tasks import start_operation
from provisioner.lib.refusals import InvalidRequest, StateChanged
from provisioner.mirrors.models import (
    Mirror,
    MirrorOperation,
    SnapshotCopy,
    TransferParameters,
)
from provisioner.mirrors.refusals import (
    CopyThere,
    MirrorBusy,
    MirrorExists,
    MirrorSiteUnfit,
)
from provisioner.mirrors.states import begin_copy, set_mirror_state
from provisioner.sites.models import Site


def mirror_create(
    *, by: User, template: Template, site: Site, throttle_kilobytes: int = 0
) -> Mirror:
    """Begin to mirror a template to another site; its default snapshot goes first.

    Raises: NotAllowed, TemplateArchived, MirrorSiteUnfit, MirrorExists.
    """
    permissions.require(permissions.can_manage_templates(by))
    require_not_archived(template)
    _require_fit(template, site)
    try:
        with transaction.atomic():
            mirror = Mirror.objects.create(
                template=template,
                site=site,
                name=f"{template.name} at {site.name}",
                throttle_kilobytes=throttle_kilobytes,
            )
            record_event(
                template,
                kind="mirror_defined",
                message=f"Mirrored to {site}.",
                actor=by,
            )
            start_operation(MirrorOperation.CREATE, about=mirror, by=by)
    except IntegrityError as error:
        if "mirror_once_at_a_site" in str(error):
            raise MirrorExists(template=template.name, site=site.name) from error
        raise
    return mirror


def mirror_retry(*, by: User, mirror: Mirror) -> Operation:
    """Begin again to create a mirror that could not be.

    Raises: NotAllowed, MirrorBusy.
    """
    permissions.require(permissions.can_manage_templates(by))
    with transaction.atomic():
        try:
            set_mirror_state(
                mirror, Mirror.State.CREATING, message="Tried again.", actor=by
            )
        except StateChanged as error:
            raise MirrorBusy(site=mirror.site.name) from error
        return start_operation(MirrorOperation.CREATE, about=mirror, by=by)


def mirror_transfer(*, by: User, mirror: Mirror, snapshot: Snapshot) -> Operation:
    """Begin to transfer a snapshot to a mirror.

    Raises: NotAllowed, InvalidRequest (a snapshot of another template), SnapshotGone,
    SnapshotWithdrawn, CopyThere, MirrorBusy.
    """
    permissions.require(permissions.can_change_template(by, mirror.template))
    if snapshot.template_id != mirror.template_id:
        raise InvalidRequest("snapshot: it is one of another template.")
    if snapshot.deleted_at is not None:
        raise SnapshotGone(snapshot=snapshot.name)
    if snapshot.is_withdrawn:
        raise SnapshotWithdrawn(snapshot=snapshot.name, reason=snapshot.withdraw_reason)
    return transfer_begin(by=by, mirror=mirror, snapshot=snapshot)


def transfer_begin(*, by: User, mirror: Mirror, snapshot: Snapshot) -> Operation:
    """Begin a transfer that somebody may ask for, or that follows from what they did.

    Raises: CopyThere, MirrorBusy.
    """
    with transaction.atomic():
        Mirror.objects.select_for_update(of=("self",)).get(pk=mirror.pk)
        copy, is_new = SnapshotCopy.objects.get_or_create(
            mirror=mirror, snapshot=snapshot
        )
        if copy.state == SnapshotCopy.State.AVAILABLE:
            raise CopyThere(snapshot=snapshot.name, site=mirror.site.name)
        try:
            set_mirror_state(
                mirror,
                Mirror.State.TRANSFERRING,
                message=f"Transferring {snapshot.name}.",
                actor=by,
            )
        except StateChanged as error:
            raise MirrorBusy(site=mirror.site.name) from error
        if not is_new:
            begin_copy(copy)
        return start_operation(
            MirrorOperation.TRANSFER,
            about=mirror,
            by=by,
            parameters=TransferParameters(copy=copy.pk),
        )


def _require_fit(template: Template, site: Site) -> None:
    """Refuse a site that a mirror of the template would be of no use at.

    Raises: MirrorSiteUnfit.
    """
    home = template.site
    if site == home:
        raise MirrorSiteUnfit(f"The template is at {site} already.")
    if site.perforce_server_id != home.perforce_server_id:
        raise MirrorSiteUnfit(
            f"{site} uses another Perforce server than {home}: workspaces there could "
            "not be flushed to the template's changes."
        )
    if _svm_of(site) == _svm_of(home):
        raise MirrorSiteUnfit(f"{site} and {home} are at the same SVM.")


def _svm_of(site: Site) -> tuple[str, int, str]:
    return site.ontap_host, site.ontap_port, site.svm
