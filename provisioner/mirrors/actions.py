"""Actions on mirrors: create, transfer, retry, change, delete."""

from __future__ import annotations

import datetime as dt
from typing import Any

from django.db import transaction

from provisioner.accounts import permissions
from provisioner.accounts.models import User
from provisioner.audit_log.actions import record_event
from provisioner.audit_log.changes import changes_between
from provisioner.catalog.models import Snapshot, Template
from provisioner.catalog.refusals import require_not_archived, require_offered
from provisioner.engine.models import Operation
from provisioner.engine.starting import start_operation
from provisioner.lib import clocks
from provisioner.lib.refusals import ActionRefused, InvalidRequest, StateChanged
from provisioner.lib.schedules import next_time, read_schedule
from provisioner.mirrors.models import (
    Mirror,
    MirroredSnapshot,
    MirrorOperation,
    TransferParameters,
)
from provisioner.mirrors.queries import has_clones
from provisioner.mirrors.refusals import (
    MirrorBusy,
    MirrorExists,
    MirrorInUse,
    MirrorSiteUnfit,
    SnapshotMirrored,
)
from provisioner.mirrors.states import begin_transfer_of, set_mirror_state
from provisioner.sites.models import Site
from provisioner.sites.queries import same_installation


def mirror_create(
    *, by: User, template: Template, site: Site, **settings: Any
) -> Mirror:
    """Begin to mirror a template to another site; its default snapshot goes first.

    `settings` are the columns `start`, `cron`, `throttle_kilobytes` and `keep`.

    Raises: NotAllowed, InvalidRequest (the schedule), TemplateArchived,
    MirrorSiteUnfit, MirrorExists.
    """
    permissions.require(permissions.can_manage_templates(by))
    require_not_archived(template)
    require_fit(template, site)
    settings = _checked(settings, before=Mirror())
    name = f"{template.name} at {site.name}"
    with transaction.atomic():
        mirror, is_new = Mirror.objects.get_or_create(
            template=template,
            site=site,
            defaults={
                "name": name,
                "next_transfer_at": _next_transfer_at(settings),
                **settings,
            },
        )
        if not is_new:
            raise MirrorExists(template=template.name, site=site.name)
        record_event(
            mirror,
            kind="mirror_creating",
            message=f"Mirror {template.name} to {site.name}.",
            actor=by,
        )
        start_operation(MirrorOperation.CREATE, about=mirror, by=by)
    return mirror


def mirror_update(*, by: User, mirror: Mirror, **settings: Any) -> Mirror:
    """Change when transfers start, how fast they may be, and how many are kept.

    A relationship gets the policy for another number at once, and keeps by it from the
    next transfer on.

    Raises: NotAllowed, InvalidRequest, MirrorBusy (another number is to be kept).
    """
    permissions.require(permissions.can_manage_templates(by))
    with transaction.atomic():
        row = Mirror.objects.select_for_update(of=("self",), no_key=True)
        mirror = row.get(pk=mirror.pk)
        settings = _checked(settings, before=mirror)
        before = {name: getattr(mirror, name) for name in settings}
        changes = changes_between(before, settings)
        if changes:
            if {"start", "cron"} & changes.keys():
                settings["next_transfer_at"] = _next_transfer_at(settings)
            Mirror.objects.filter(pk=mirror.pk).update(**settings)
            record_event(
                mirror,
                kind="mirror_changed",
                message="Settings changed.",
                actor=by,
                data=changes,
            )
        if "keep" in changes and mirror.relationship_uuid:
            message = f"Keep {settings['keep']} snapshots."
            _set_state(mirror, Mirror.State.CREATING, message=message, by=by)
            start_operation(MirrorOperation.CHANGE, about=mirror, by=by)
        elif "keep" in changes and mirror.is_moving:
            raise MirrorBusy(site=mirror.site.name)
    mirror.refresh_from_db()
    return mirror


def _checked(settings: dict[str, Any], *, before: Mirror) -> dict[str, Any]:
    """Return new settings with a valid schedule.

    Raises: InvalidRequest (the schedule).
    """
    start = settings.get("start", before.start)
    cron = settings.get("cron", before.cron).strip()
    if cron or start == Mirror.Start.SCHEDULE:
        cron = read_schedule(cron, field="cron")
    return {**settings, "start": start, "cron": cron}


def _next_transfer_at(settings: dict[str, Any]) -> dt.datetime | None:
    if settings["start"] != Mirror.Start.SCHEDULE:
        return None
    return next_time(settings["cron"], after=clocks.database_now())


def mirror_retry(*, by: User, mirror: Mirror) -> Operation:
    """Try again after a failure or trouble, from the first step that is not done.

    Raises: NotAllowed, MirrorBusy.
    """
    permissions.require(permissions.can_manage_templates(by))
    with transaction.atomic():
        _set_state(mirror, Mirror.State.CREATING, message="Retried.", by=by)
        return start_operation(MirrorOperation.CREATE, about=mirror, by=by)


def mirror_transfer(*, by: User, mirror: Mirror, snapshot: Snapshot) -> Operation:
    """Begin to transfer a snapshot to a mirror.

    Raises: NotAllowed, InvalidRequest (a snapshot of another template), SnapshotGone,
    SnapshotWithdrawn, SnapshotMirrored, MirrorBusy.
    """
    permissions.require(permissions.can_change_template(by, mirror.template))
    if snapshot.template_id != mirror.template_id:
        raise InvalidRequest.at("snapshot", "The template has no such snapshot.")
    require_offered(snapshot)
    return begin_transfer(by=by, mirror=mirror, snapshot=snapshot)


def begin_transfer(*, by: User, mirror: Mirror, snapshot: Snapshot) -> Operation:
    """Begin a transfer; `mirror_transfer` has checked who may request one.

    Raises: SnapshotMirrored, MirrorBusy.
    """
    with transaction.atomic():
        Mirror.objects.select_for_update(of=("self",)).get(pk=mirror.pk)
        mirrored, is_new = MirroredSnapshot.objects.get_or_create(
            mirror=mirror, snapshot=snapshot
        )
        if mirrored.state == MirroredSnapshot.State.AVAILABLE:
            raise SnapshotMirrored(snapshot=snapshot.name, site=mirror.site.name)
        message = f"Transfer {snapshot.name}."
        _set_state(mirror, Mirror.State.TRANSFERRING, message=message, by=by)
        if not is_new:
            begin_transfer_of(mirrored)
        return start_operation(
            MirrorOperation.TRANSFER,
            about=mirror,
            by=by,
            parameters=TransferParameters(mirrored=mirrored.pk),
        )


def mirror_delete(*, by: User, mirror: Mirror) -> Operation:
    """Begin to delete a mirror with its relationship and its volume.

    Raises: NotAllowed, MirrorInUse, MirrorBusy.
    """
    permissions.require(permissions.can_manage_templates(by))
    with transaction.atomic():
        Mirror.objects.select_for_update(of=("self",)).get(pk=mirror.pk)
        # From here on nobody gets a clone of it.
        _set_state(mirror, Mirror.State.DELETING, message="Delete it.", by=by)
        if has_clones(mirror):
            raise MirrorInUse(site=mirror.site.name)
        return start_operation(MirrorOperation.DELETE, about=mirror, by=by)


def _set_state(mirror: Mirror, to: Mirror.State, *, message: str, by: User) -> None:
    try:
        set_mirror_state(mirror, to, message=message, actor=by)
    except StateChanged as error:
        raise MirrorBusy(site=mirror.site.name) from error


def fitting_sites(template: Template) -> tuple[list[Site], list[tuple[Site, str]]]:
    """Return the sites for a mirror, and the others with what is against each."""
    fitting: list[Site] = []
    others: list[tuple[Site, str]] = []
    mirrored = set(Mirror.objects.filter(template=template).values_list("site"))
    for site in Site.objects.select_related("perforce_server").order_by("name"):
        try:
            if (site.pk,) in mirrored:
                raise MirrorExists(template=template.name, site=site.name)
            require_fit(template, site)
        except ActionRefused as refusal:
            others.append((site, refusal.sentence))
        else:
            fitting.append(site)
    return fitting, others


def require_fit(template: Template, site: Site) -> None:
    """Refuse a site where a mirror of the template would be of no use.

    Raises: MirrorSiteUnfit.
    """
    home = template.site
    if site == home:
        raise MirrorSiteUnfit(f"The template is already at {site.name}.")
    if not same_installation(site.perforce_server, home.perforce_server):
        raise MirrorSiteUnfit(
            f"{site.name} uses another Perforce installation than {home.name}: "
            "workspaces there could not be flushed to the template's changes."
        )
    if _svm_of(site) == _svm_of(home):
        raise MirrorSiteUnfit(
            f"{site.name} and {home.name} are on the same SVM. Clones there need no "
            "mirror."
        )


def _svm_of(site: Site) -> tuple[str, int, str]:
    return site.ontap_host, site.ontap_port, site.svm
