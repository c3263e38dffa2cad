"""Actions on mirrors: create, transfer, retry, change, delete."""

from __future__ import annotations

import datetime as dt
from typing import Any

from django.db import transaction
from django.db.models import F, Q

from provisioner.accounts import permissions
from provisioner.accounts.models import User
from provisioner.audit_log.actions import record_event
from provisioner.audit_log.changes import changes_between
from provisioner.catalog.actions.templates import check_aggregate, is_settling
from provisioner.catalog.models import (
    MOVING_TEMPLATES,
    Snapshot,
    Template,
    VolumePolicy,
)
from provisioner.catalog.refusals import (
    TemplateBusy,
    require_not_archived,
    require_offered,
)
from provisioner.engine.models import Operation
from provisioner.engine.starting import start_operation
from provisioner.lib import clocks
from provisioner.lib.refusals import ActionRefused, InvalidRequest, StateChanged
from provisioner.lib.schedules import next_time, read_schedule
from provisioner.mirrors.events import before_creating, before_deleting
from provisioner.mirrors.models import (
    FORMER_HOMES,
    MOVING_MIRRORS,
    Mirror,
    MirroredSnapshot,
    MirrorOperation,
    TransferParameters,
)
from provisioner.mirrors.previews import discarded_with_clones, obstacle_to_promotion
from provisioner.mirrors.queries import AVAILABLE, has_clones, next_client_number
from provisioner.mirrors.refusals import (
    FormerHomeInUse,
    MirrorBusy,
    MirrorExists,
    MirrorInUse,
    MirrorNotPromotable,
    MirrorSiteUnfit,
    NotAFormerHome,
    SnapshotMirrored,
)
from provisioner.mirrors.states import (
    begin_transfer_of,
    mark_gone,
    set_mirror_state,
)
from provisioner.mirrors.steps.prerequisites import require_connectable
from provisioner.routing.queries import Route
from provisioner.sites.models import Site
from provisioner.sites.queries import same_installation


def mirror_create(
    *,
    by: User,
    template: Template,
    site: Site,
    aggregate: str = "",
    **settings: Any,
) -> Mirror:
    """Begin to mirror a template to another site; its default snapshot goes first.

    `aggregate` is where its volume will be; "" leaves that to the site. `settings` are
    the columns `start`, `cron`, `throttle_kilobytes` and `keep`. ONTAP of both ends is
    asked first, so no transaction may be open.

    Raises: NotAllowed, InvalidRequest (the schedule, the aggregate), TemplateArchived,
    MirrorSiteUnfit, MirrorExists, LimitReached.
    """
    permissions.require(permissions.can_manage_templates(by))
    require_not_archived(template)
    require_fit(template, site)
    settings = _checked(settings, before=Mirror())
    if Mirror.objects.filter(template=template, site=site).exists():
        raise MirrorExists(template=template.name, site=site.name)
    if aggregate:
        check_aggregate(site, aggregate)
    require_connectable(template, site, aggregate=aggregate)
    name = f"{template.name} at {site.name}"
    with transaction.atomic():
        before_creating.send(Mirror, template=template, site=site, aggregate=aggregate)
        mirror, is_new = Mirror.objects.get_or_create(
            template=template,
            site=site,
            defaults={
                "name": name,
                "chosen_aggregate": aggregate,
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

    Raises: NotAllowed, MirrorInUse, MirrorBusy, CopiesLeadThere.
    """
    permissions.require(permissions.can_manage_templates(by))
    with transaction.atomic():
        Mirror.objects.select_for_update(of=("self",)).get(pk=mirror.pk)
        # From here on nobody gets a clone of it.
        _set_state(mirror, Mirror.State.DELETING, message="Delete it.", by=by)
        if has_clones(mirror):
            raise MirrorInUse(site=mirror.site.name)
        before_deleting.send(Mirror, mirror=mirror)
        return start_operation(MirrorOperation.DELETE, about=mirror, by=by)


def mirror_promote(*, by: User, mirror: Mirror) -> Operation:
    """Begin to make a mirror's site the home of its template.

    The former home is not asked: it may be lost.

    Raises: NotAllowed, TemplateBusy (a build runs), MirrorNotPromotable, MirrorBusy.
    """
    permissions.require(permissions.can_manage_templates(by))
    with transaction.atomic():
        # Builds that are requested meanwhile wait for this, and are refused then.
        template = Template.objects.select_for_update(of=("self",), no_key=True).get(
            pk=mirror.template_id
        )
        if template.state in MOVING_TEMPLATES or is_settling(template):
            raise TemplateBusy(name=template.name)
        if obstacle := obstacle_to_promotion(mirror):
            raise MirrorNotPromotable(obstacle)
        _set_state(
            mirror,
            Mirror.State.PROMOTING,
            message=f"Make {mirror.site.name} the home of {template.name}.",
            by=by,
        )
        return start_operation(MirrorOperation.PROMOTE, about=mirror, by=by)


def mirror_reestablish(*, by: User, mirror: Mirror) -> Operation:
    """Begin to make a former home a mirror of the new one.

    What it has since the newest common snapshot is discarded.

    Raises: NotAllowed, FormerHomeInUse, NotAFormerHome, MirrorBusy.
    """
    permissions.require(permissions.can_manage_templates(by))
    with transaction.atomic():
        _require_former(mirror)
        if clones := discarded_with_clones(mirror):
            raise FormerHomeInUse(
                site=mirror.site.name, snapshots=", ".join(s.name for s in clones)
            )
        _set_state(
            mirror,
            Mirror.State.RETURNING,
            message=f"Let {mirror.site.name} follow {mirror.template.site.name}.",
            by=by,
        )
        return start_operation(MirrorOperation.REESTABLISH, about=mirror, by=by)


def mirror_give_up(*, by: User, mirror: Mirror) -> Operation:
    """Begin to give a former home up; its volume stays until the mirror is deleted.

    Raises: NotAllowed, NotAFormerHome, MirrorBusy.
    """
    permissions.require(permissions.can_manage_templates(by))
    with transaction.atomic():
        _require_former(mirror)
        _set_state(mirror, Mirror.State.GIVING_UP, message="Give it up.", by=by)
        return start_operation(MirrorOperation.GIVE_UP, about=mirror, by=by)


def _require_former(mirror: Mirror) -> None:
    row = Mirror.objects.select_for_update(of=("self",)).filter(pk=mirror.pk)
    if not row.filter(~Q(state=Mirror.State.GIVEN_UP), is_former_home=True).exists():
        raise NotAFormerHome(site=mirror.site.name)


def move_home(mirror: Mirror, *, by: User) -> Mirror:
    """Make a promoted mirror its template's home; return the row of the former one.

    Snapshots that only the former home has are no longer published. The other mirrors
    begin to follow the new home. Call it in a transaction.
    """
    template = (
        Template.objects.select_for_update(of=("self",), no_key=True)
        .select_related("site")
        .get(pk=mirror.template_id)
    )
    home, site = template.site, mirror.site
    message = f"{template.name} is built at {site.name} from now on."
    set_mirror_state(mirror, Mirror.State.PROMOTED, message=message, actor=by)
    former = _former_home(template, mirror)
    _move_snapshots(template, mirror, former)
    Template.objects.filter(pk=template.pk).update(
        site=site,
        volume_uuid=mirror.volume_uuid,
        aggregate=mirror.aggregate,
        client_number=next_client_number(template, site),
        # Its client is at the server of the site now; its next build is routed again.
        **Route(site=site).columns,
    )
    VolumePolicy.objects.filter(template=template).update(site=site)
    # Its volume there gets what they say.
    policies = VolumePolicy.objects.filter(Q(template=None) | Q(template=template))
    policies.filter(site=site).update(applied_at=None)
    record_event(
        template,
        kind="template_home_moved",
        message=f"Its home is {site.name} now. It was {home.name}.",
        actor=by,
        data={"site": {"from": home.name, "to": site.name}},
    )
    for other in _others(mirror):
        set_mirror_state(
            other,
            Mirror.State.CREATING,
            message=f"Follow the new home at {site.name}.",
            actor=by,
        )
        start_operation(MirrorOperation.CREATE, about=other, by=by)
    return former


def _former_home(template: Template, mirror: Mirror) -> Mirror:
    """Return a new row for the site that was the home, with the mirror's settings."""
    home = template.site
    moves = next_client_number(template, mirror.site) != template.client_number
    former = Mirror.objects.create(
        template=template,
        site=home,
        name=f"{template.name} at {home.name}",
        state=Mirror.State.FORMER,
        is_former_home=True,
        volume_uuid=template.volume_uuid,
        aggregate=template.aggregate,
        former_client=template.client_name if moves else "",
        start=mirror.start,
        cron=mirror.cron,
        next_transfer_at=mirror.next_transfer_at,
        throttle_kilobytes=mirror.throttle_kilobytes,
        keep=mirror.keep,
    )
    record_event(
        former,
        kind="mirror_former",
        message=f"{mirror.site.name} became the home of {template.name}.",
    )
    return former


def _move_snapshots(template: Template, mirror: Mirror, former: Mirror) -> None:
    """Publish what the new home has, and note what the former one has."""
    arrived = dict(
        mirror.snapshots.filter(state=AVAILABLE).values_list("snapshot", "ontap_uuid")
    )
    for snapshot in Snapshot.objects.there().filter(template=template):
        is_common = snapshot.pk in arrived
        MirroredSnapshot.objects.create(
            mirror=former,
            snapshot=snapshot,
            ontap_uuid=snapshot.ontap_uuid,
            state=AVAILABLE if is_common else MirroredSnapshot.State.ONLY_THERE,
            # The newest common one is kept: a resync goes back to it.
            arrived_at=snapshot.created_at,
        )
    only_there = Snapshot.objects.filter(template=template).exclude(pk__in=arrived)
    only_there.mark_deleted(at=clocks.database_now())
    for pk, ontap_uuid in arrived.items():
        Snapshot.objects.filter(pk=pk).update(ontap_uuid=ontap_uuid)
    mark_gone(mirror)


def _others(mirror: Mirror) -> list[Mirror]:
    """Return the template's other mirrors that rest and have a relationship.

    Those that move fail without the former home; a retry lets them follow.
    """
    others = Mirror.objects.filter(template=mirror.template_id)
    resting = others.exclude(state__in=(*MOVING_MIRRORS, *FORMER_HOMES))
    return list(resting.exclude(site=F("template__site")).select_related("site"))


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
